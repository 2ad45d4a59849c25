/*
 * bench-half.c: time of the convolutions of a training step of RetinaNet R50 on 608x1024, batch 2, in single
 * and in half precision, alternately in one process; the first stage is frozen. Arguments: repetitions; -v
 * for a line per layer; -c for the time of all processors, which other programs disturb less (with
 * OMP_WAIT_POLICY=passive). Not built by default.
 */
#include "config.h"

#include "kernels/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum
{
  FWD = 1,
  DATA = 2,
  WEIGHTS = 4,
  ALL = FWD | DATA | WEIGHTS,
  LOGITS = 8, /* stored as F32 in every precision */
  IMAGE = 16,
  PLAIN = 32 /* a bias instead of a folded batch norm */
};

typedef struct
{
  int64_t ic, oc, h, w; /* of the source */
  int kernel, stride, times, flags;
} Layer;

static const Layer layers[] = {
  { 3, 64, 608, 1024, 7, 2, 1, FWD | IMAGE },
  /* layer1 */
  { 64, 64, 152, 256, 1, 1, 1, FWD },
  { 64, 64, 152, 256, 3, 1, 3, FWD },
  { 64, 256, 152, 256, 1, 1, 4, FWD },
  { 256, 64, 152, 256, 1, 1, 2, FWD },
  /* layer2 */
  { 256, 128, 152, 256, 1, 1, 1, FWD | WEIGHTS },
  { 128, 128, 152, 256, 3, 2, 1, ALL },
  { 256, 512, 152, 256, 1, 2, 1, FWD | WEIGHTS },
  { 128, 512, 76, 128, 1, 1, 4, ALL },
  { 512, 128, 76, 128, 1, 1, 3, ALL },
  { 128, 128, 76, 128, 3, 1, 3, ALL },
  /* layer3 */
  { 512, 256, 76, 128, 1, 1, 1, ALL },
  { 256, 256, 76, 128, 3, 2, 1, ALL },
  { 512, 1024, 76, 128, 1, 2, 1, ALL },
  { 256, 1024, 38, 64, 1, 1, 6, ALL },
  { 1024, 256, 38, 64, 1, 1, 5, ALL },
  { 256, 256, 38, 64, 3, 1, 5, ALL },
  /* layer4 */
  { 1024, 512, 38, 64, 1, 1, 1, ALL },
  { 512, 512, 38, 64, 3, 2, 1, ALL },
  { 1024, 2048, 38, 64, 1, 2, 1, ALL },
  { 512, 2048, 19, 32, 1, 1, 3, ALL },
  { 2048, 512, 19, 32, 1, 1, 2, ALL },
  { 512, 512, 19, 32, 3, 1, 2, ALL },
  /* FPN: lateral, output and extra levels */
  { 512, 256, 76, 128, 1, 1, 1, ALL | PLAIN },
  { 1024, 256, 38, 64, 1, 1, 1, ALL | PLAIN },
  { 2048, 256, 19, 32, 1, 1, 1, ALL | PLAIN },
  { 256, 256, 76, 128, 3, 1, 1, ALL | PLAIN },
  { 256, 256, 38, 64, 3, 1, 1, ALL | PLAIN },
  { 256, 256, 19, 32, 3, 1, 1, ALL | PLAIN },
  { 2048, 256, 19, 32, 3, 2, 1, ALL | PLAIN },
  { 256, 256, 10, 16, 3, 2, 1, ALL | PLAIN },
  /* head: two towers of four, then the logits */
  { 256, 256, 76, 128, 3, 1, 8, ALL | PLAIN },
  { 256, 256, 38, 64, 3, 1, 8, ALL | PLAIN },
  { 256, 256, 19, 32, 3, 1, 8, ALL | PLAIN },
  { 256, 256, 10, 16, 3, 1, 8, ALL | PLAIN },
  { 256, 256, 5, 8, 3, 1, 8, ALL | PLAIN },
  { 256, 180, 76, 128, 3, 1, 1, ALL | PLAIN | LOGITS },
  { 256, 180, 38, 64, 3, 1, 1, ALL | PLAIN | LOGITS },
  { 256, 180, 19, 32, 3, 1, 1, ALL | PLAIN | LOGITS },
  { 256, 180, 10, 16, 3, 1, 1, ALL | PLAIN | LOGITS },
  { 256, 36, 76, 128, 3, 1, 1, ALL | PLAIN | LOGITS },
  { 256, 36, 38, 64, 3, 1, 1, ALL | PLAIN | LOGITS },
  { 256, 36, 19, 32, 3, 1, 1, ALL | PLAIN | LOGITS },
};

static const RnDType types[] = { RN_F32, RN_F16, RN_BF16 };
static const char *const type_names[] = { "f32", "f16", "bf16" };
static const char *const directions[] = { "fwd", "bwd_data", "bwd_weights" };

static gboolean verbose, cpu_time;

/* A prepared call with its memory. */
typedef struct
{
  RnOpCall call;
  RnPrepared prepared;
  void *in[RN_OP_MAX_IN], *out[RN_OP_MAX_OUT], *workspace;
  gint64 best; /* microseconds */
} Run;

static void *
memory_new (gsize bytes)
{
  void *memory = aligned_alloc (64, (bytes + 63) / 64 * 64);
  if (memory == NULL)
    g_error ("no memory");
  memset (memory, 0, bytes); /* zeros are no denormals, and times do not depend on values */
  return memory;
}

static void
set_in (Run *r, int slot, RnTensorDesc d)
{
  r->call.in[slot] = d;
  r->call.in_present |= 1u << slot;
  r->in[slot] = memory_new (rn_desc_bytes (&d));
}

static void
set_out (Run *r, int slot, RnTensorDesc d)
{
  r->call.out[slot] = d;
  r->call.out_present |= 1u << slot;
  r->out[slot] = memory_new (rn_desc_bytes (&d));
}

static void
run_init (Run *r, RnDevice *device, const Layer *l, int direction, RnDType type)
{
  const int64_t b = device->cblk;
  const int pad = l->kernel / 2;
  const int64_t oh = rn_window_size (l->h, l->kernel, l->stride, pad, 1, FALSE);
  const int64_t ow = rn_window_size (l->w, l->kernel, l->stride, pad, 1, FALSE);
  const gboolean image = (l->flags & IMAGE) != 0, plain = (l->flags & PLAIN) != 0;
  RnTensorDesc src = rn_desc_nchw (image ? RN_F32 : type, 2, l->ic, l->h, l->w, image ? 1 : b);
  RnTensorDesc dst = rn_desc_nchw ((l->flags & LOGITS) != 0 ? RN_F32 : type, 2, l->oc, oh, ow, b);
  RnTensorDesc weights = rn_desc_nchw (RN_F32, l->oc, l->ic, l->kernel, l->kernel, 1);
  RnTensorDesc vector = rn_desc_vector (RN_F32, l->oc);
  g_autoptr (GError) error = NULL;

  memset (r, 0, sizeof *r);
  r->best = G_MAXINT64;
  r->call.op = (RnOp[]){ RN_OP_CONV2D_FWD, RN_OP_CONV2D_BWD_DATA, RN_OP_CONV2D_BWD_WEIGHTS }[direction];
  r->call.args.conv = (RnConvArgs){ .kernel = { l->kernel, l->kernel },
                                    .stride = { l->stride, l->stride },
                                    .pad = { pad, pad },
                                    .dilation = { 1, 1 },
                                    .groups = 1,
                                    .eps = 1e-5f,
                                    .compute = type };
  if (direction == 0)
    {
      set_in (r, RN_CONV_SRC, src);
      set_in (r, RN_CONV_WEIGHTS, weights);
      if (plain)
        set_in (r, RN_CONV_BIAS, vector);
      for (int slot = RN_CONV_GAMMA; !plain && slot <= RN_CONV_VAR; slot++)
        set_in (r, slot, vector);
      set_out (r, RN_CONV_DST, dst);
      r->call.args.conv.relu = (l->flags & LOGITS) == 0;
    }
  else if (direction == 1)
    {
      set_in (r, RN_CONV_BD_DIFF_DST, dst);
      set_in (r, RN_CONV_BD_WEIGHTS, weights);
      if (!plain)
        {
          set_in (r, RN_CONV_BD_GAMMA, vector);
          set_in (r, RN_CONV_BD_VAR, vector);
        }
      set_out (r, RN_CONV_BD_DIFF_SRC, src);
    }
  else
    {
      set_in (r, RN_CONV_BW_SRC, src);
      set_in (r, RN_CONV_BW_DIFF_DST, dst);
      if (!plain)
        set_in (r, RN_CONV_BW_WEIGHTS, weights);
      for (int slot = RN_CONV_BW_GAMMA; !plain && slot <= RN_CONV_BW_VAR; slot++)
        set_in (r, slot, vector);
      set_out (r, RN_CONV_BW_DIFF_WEIGHTS, weights);
      if (plain)
        set_out (r, RN_CONV_BW_DIFF_BIAS, vector);
      for (int slot = RN_CONV_BW_DIFF_GAMMA; !plain && slot <= RN_CONV_BW_DIFF_BETA; slot++)
        set_out (r, slot, vector);
    }
  if (!rn_device_prepare (device, &r->call, &r->prepared, &error)
      || !rn_device_finalize (device, &r->call, &r->prepared, &error))
    g_error ("%s", error->message);
  r->workspace = memory_new (MAX (r->prepared.workspace_bytes, 1));
}

/* Microseconds of wall time, or of this process on all processors. */
static gint64
now (void)
{
  return cpu_time ? (gint64) clock () * G_USEC_PER_SEC / CLOCKS_PER_SEC : g_get_monotonic_time ();
}

static void
run_once (Run *r, RnDevice *device)
{
  gint64 start = now ();
  RnStatus status = r->prepared.kernel->run (device, &r->call, r->prepared.state, (const void *const *) r->in,
                                             r->out, r->workspace);
  if (status != RN_STATUS_OK)
    g_error ("%s: %s", r->prepared.kernel->name, rn_status_name (status));
  r->best = MIN (r->best, now () - start);
}

static void
run_clear (Run *r)
{
  rn_prepared_release (&r->prepared);
  for (int i = 0; i < RN_OP_MAX_IN; i++)
    free (r->in[i]);
  for (int i = 0; i < RN_OP_MAX_OUT; i++)
    free (r->out[i]);
  free (r->workspace);
}

int
main (int argc, char **argv)
{
  int repeats = 3;
  g_autoptr (GError) error = NULL;
  g_autoptr (RnDevice) device = rn_device_new_cpu (2, &error);
  double sum[G_N_ELEMENTS (types)][G_N_ELEMENTS (directions)] = { { 0 } };
  gsize workspace[G_N_ELEMENTS (types)] = { 0 };

  if (device == NULL)
    g_error ("%s", error->message);
  for (int i = 1; i < argc; i++)
    if (g_str_equal (argv[i], "-v"))
      verbose = TRUE;
    else if (g_str_equal (argv[i], "-c"))
      cpu_time = TRUE;
    else
      repeats = MAX (atoi (argv[i]), 1);
  for (guint i = 0; i < G_N_ELEMENTS (layers); i++)
    for (guint d = 0; d < G_N_ELEMENTS (directions); d++)
      {
        Run runs[G_N_ELEMENTS (types)];
        if ((layers[i].flags & (1 << d)) == 0)
          continue;
        for (guint t = 0; t < G_N_ELEMENTS (types); t++)
          run_init (&runs[t], device, &layers[i], (int) d, types[t]);
        for (int k = 0; k < repeats; k++)
          for (guint t = 0; t < G_N_ELEMENTS (types); t++)
            run_once (&runs[t], device);
        for (guint t = 0; t < G_N_ELEMENTS (types); t++)
          {
            sum[t][d] += 1e-3 * (double) runs[t].best * layers[i].times;
            workspace[t] = MAX (workspace[t], runs[t].prepared.workspace_bytes);
          }
        if (verbose)
          {
            g_autofree char *text = rn_op_describe (&runs[0].call);
            printf ("%s x%d\n", text, layers[i].times);
            for (guint t = 0; t < G_N_ELEMENTS (types); t++)
              printf ("  %-4s %8.2f ms  %5.1f MiB  %s %s\n", type_names[t], 1e-3 * (double) runs[t].best,
                      (double) runs[t].prepared.workspace_bytes / 1048576, runs[t].prepared.kernel->name,
                      runs[t].prepared.detail);
          }
        for (guint t = 0; t < G_N_ELEMENTS (types); t++)
          run_clear (&runs[t]);
      }
  printf ("%-12s %10s %10s %10s\n", "ms", "f32", "f16", "bf16");
  double total[G_N_ELEMENTS (types)] = { 0 };
  for (guint d = 0; d < G_N_ELEMENTS (directions); d++)
    {
      printf ("%-12s %10.1f %10.1f %10.1f   f16/f32 %.3f  bf16/f32 %.3f\n", directions[d], sum[0][d],
              sum[1][d], sum[2][d], sum[1][d] / sum[0][d], sum[2][d] / sum[0][d]);
      for (guint t = 0; t < G_N_ELEMENTS (types); t++)
        total[t] += sum[t][d];
    }
  printf ("%-12s %10.1f %10.1f %10.1f   f16/f32 %.3f  bf16/f32 %.3f\n", "total", total[0], total[1], total[2],
          total[1] / total[0], total[2] / total[0]);
  printf ("%-12s %10.1f %10.1f %10.1f   MiB, largest\n", "workspace", (double) workspace[0] / 1048576,
          (double) workspace[1] / 1048576, (double) workspace[2] / 1048576);
  return 0;
}
