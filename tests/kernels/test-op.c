/*
 * test-op.c: the op schema: window sizes, refusals, cost, messages; and how a device chooses among kernels.
 */
#include "config.h"

#include "kernels/device.h"

#include <string.h>

static RnOpCall
conv_call (void)
{
  RnOpCall call = {
    .op = RN_OP_CONV2D_FWD,
    .args.conv = { .kernel = { 3, 3 },
                   .stride = { 2, 2 },
                   .pad = { 1, 1 },
                   .dilation = { 1, 1 },
                   .groups = 1 },
    .in_present = 1u << RN_CONV_SRC | 1u << RN_CONV_WEIGHTS,
    .out_present = 1u << RN_CONV_DST,
  };
  call.in[RN_CONV_SRC] = rn_desc_nchw (RN_F32, 2, 16, 9, 8, 8);
  call.in[RN_CONV_WEIGHTS] = rn_desc_nchw (RN_F32, 20, 16, 3, 3, 1);
  call.out[RN_CONV_DST] = rn_desc_nchw (RN_F32, 2, 20, 5, 4, 8);
  return call;
}

static void
test_window (void)
{
  g_assert_cmpint (rn_window_size (608, 7, 2, 3, 1, FALSE), ==, 304);
  g_assert_cmpint (rn_window_size (19, 3, 2, 1, 1, FALSE), ==, 10);
  g_assert_cmpint (rn_window_size (12, 3, 1, 2, 2, FALSE), ==, 12);
  g_assert_cmpint (rn_window_size (2, 3, 1, 0, 1, FALSE), ==, 0);
  g_assert_cmpint (rn_window_size (4, 3, 0, 0, 1, FALSE), ==, 0);
  g_assert_cmpint (rn_window_size (5, 2, 2, 0, 1, FALSE), ==, 2);
  g_assert_cmpint (rn_window_size (5, 2, 2, 0, 1, TRUE), ==, 3);
  /* As in PyTorch, a window that would start behind the source is left out also in ceil mode. */
  g_assert_cmpint (rn_window_size (1, 2, 2, 1, 1, TRUE), ==, 1);
}

static void
test_names (void)
{
  for (int op = 0; op < RN_OP_COUNT; op++)
    {
      g_assert_nonnull (rn_op_name (op));
      for (int i = 0; i < rn_op_n_in (op); i++)
        g_assert_nonnull (rn_op_in_name (op, i));
      for (int i = 0; i < rn_op_n_out (op); i++)
        {
          g_assert_nonnull (rn_op_out_name (op, i));
          g_assert_cmphex (rn_op_alias_mask (op, i) >> rn_op_n_in (op), ==, 0);
        }
      g_assert_cmphex (rn_op_optional_in (op) >> rn_op_n_in (op), ==, 0);
      g_assert_cmphex ((rn_op_optional_out (op) | rn_op_update_mask (op)) >> rn_op_n_out (op), ==, 0);
    }
}

typedef void (*Spoil) (RnOpCall *call);

static void
spoil_op (RnOpCall *c)
{
  c->op = RN_OP_COUNT;
}
static void
spoil_missing (RnOpCall *c)
{
  c->in_present &= ~(1u << RN_CONV_WEIGHTS);
}
static void
spoil_slot (RnOpCall *c)
{
  c->out_present |= 2;
}
static void
spoil_dtype (RnOpCall *c)
{
  c->in[RN_CONV_SRC].dtype = RN_F16;
}
static void
spoil_unknown_dtype (RnOpCall *c)
{
  c->in[RN_CONV_SRC].dtype = RN_DTYPE_COUNT;
}
static void
spoil_rank (RnOpCall *c)
{
  c->in[RN_CONV_SRC].rank = 5;
}
static void
spoil_block (RnOpCall *c)
{
  c->in[RN_CONV_SRC].cblk = 0;
}
static void
spoil_size (RnOpCall *c)
{
  c->in[RN_CONV_SRC].dims[0] = c->out[0].dims[0] = -2;
}
static void
spoil_huge (RnOpCall *c)
{
  c->in[RN_CONV_SRC].dims[0] = c->out[0].dims[0] = G_MAXINT64 / 1000;
}
static void
spoil_huge_channels (RnOpCall *c)
{
  c->in[RN_CONV_SRC].dims[1] = G_MAXINT64;
}
static void
spoil_out (RnOpCall *c)
{
  c->out[RN_CONV_DST].dims[3] = 5;
}
static void
spoil_groups (RnOpCall *c)
{
  c->args.conv.groups = 3;
}
static void
spoil_no_groups (RnOpCall *c)
{
  c->args.conv.groups = 0;
}
static void
spoil_weights (RnOpCall *c)
{
  c->in[RN_CONV_WEIGHTS].dims[1] = 15;
}
static void
spoil_batch (RnOpCall *c)
{
  c->out[RN_CONV_DST].dims[0] = 3;
}

static void
spoil_bias (RnOpCall *c)
{
  c->in[RN_CONV_BIAS] = rn_desc_vector (RN_F32, 19);
  c->in_present |= 1u << RN_CONV_BIAS;
}

static void
spoil_fold (RnOpCall *c)
{
  c->in[RN_CONV_GAMMA] = rn_desc_vector (RN_F32, 20);
  c->in_present |= 1u << RN_CONV_GAMMA;
}

static void
spoil_residual (RnOpCall *c)
{
  c->in[RN_CONV_RESIDUAL] = rn_desc_nchw (RN_F32, 2, 20, 5, 4, 16);
  c->in_present |= 1u << RN_CONV_RESIDUAL;
}

static void
test_check (void)
{
  static const Spoil spoils[] = {
    spoil_op,        spoil_missing, spoil_slot,  spoil_dtype,         spoil_unknown_dtype, spoil_rank,
    spoil_block,     spoil_size,    spoil_huge,  spoil_huge_channels, spoil_out,           spoil_groups,
    spoil_no_groups, spoil_weights, spoil_batch, spoil_bias,          spoil_fold,          spoil_residual,
  };
  RnOpCall call = conv_call ();

  g_assert_null (rn_op_check (&call));
  for (guint i = 0; i < G_N_ELEMENTS (spoils); i++)
    {
      call = conv_call ();
      spoils[i](&call);
      const char *reason = rn_op_check (&call);
      g_test_message ("%u: %s", i, reason);
      g_assert_nonnull (reason);
    }
}

/* Sums are one number for each channel of a map, from the mask to the convolution. */
static void
test_check_sums (void)
{
  const RnTensorDesc map = rn_desc_nchw (RN_F16, 2, 20, 5, 4, 8);
  RnOpCall mask = { .op = RN_OP_RELU_BWD, .in_present = 3, .out_present = 3 };
  mask.in[RN_RELU_BWD_Y] = mask.in[RN_RELU_BWD_A] = mask.out[RN_RELU_BWD_DST] = map;
  mask.out[RN_RELU_BWD_SUMS] = rn_desc_vector (RN_F32, 20);
  g_assert_null (rn_op_check (&mask));
  mask.out[RN_RELU_BWD_SUMS] = rn_desc_vector (RN_F32, 24);
  g_assert_nonnull (rn_op_check (&mask));
  mask.out[RN_RELU_BWD_SUMS] = rn_desc_vector (RN_F16, 20);
  g_assert_nonnull (rn_op_check (&mask));
  mask.in[RN_RELU_BWD_Y] = mask.in[RN_RELU_BWD_A] = mask.out[RN_RELU_BWD_DST] = rn_desc_vector (RN_F32, 20);
  mask.out[RN_RELU_BWD_SUMS] = rn_desc_vector (RN_F32, 20);
  g_assert_nonnull (rn_op_check (&mask));

  RnOpCall conv = conv_call ();
  conv.op = RN_OP_CONV2D_BWD_WEIGHTS;
  conv.in[RN_CONV_BW_DIFF_DST] = conv.out[RN_CONV_DST];
  conv.in[RN_CONV_BW_SUMS] = conv.out[RN_CONV_BW_DIFF_BIAS] = rn_desc_vector (RN_F32, 20);
  conv.in_present = 1u << RN_CONV_BW_SRC | 1u << RN_CONV_BW_DIFF_DST | 1u << RN_CONV_BW_SUMS;
  conv.out_present = 1u << RN_CONV_BW_DIFF_BIAS;
  g_assert_null (rn_op_check (&conv));
  conv.in[RN_CONV_BW_SUMS].dims[0] = 16;
  g_assert_nonnull (rn_op_check (&conv));
}

/* A level that reaches behind the labels would read foreign memory. */
static void
test_check_focal (void)
{
  RnOpCall call = {
    .op = RN_OP_FOCAL_LOSS,
    .args.focal = { .alpha = 0.25f,
                    .gamma = 2,
                    .weight = 1,
                    .num_classes = 3,
                    .anchors_per_cell = 2,
                    .anchor_offset = 4 },
    .in_present = 15,
    .out_present = 1,
  };
  call.in[RN_FOCAL_LOGITS] = rn_desc_nchw (RN_F32, 1, 6, 2, 2, 8);
  call.in[RN_FOCAL_LABELS] = (RnTensorDesc){ RN_I16, 2, { 1, 12 }, 1 };
  call.in[RN_FOCAL_AVG] = call.in[RN_FOCAL_GRAD_SCALE] = call.out[RN_LOSS_VALUE] = rn_desc_vector (RN_F32, 1);

  g_assert_null (rn_op_check (&call));
  call.args.focal.anchor_offset = 5;
  g_assert_nonnull (rn_op_check (&call));
  call.args.focal.anchor_offset = G_MAXINT64;
  g_assert_nonnull (rn_op_check (&call));
  call.args.focal.anchor_offset = -1;
  g_assert_nonnull (rn_op_check (&call));
}

static RnOpCall
normalize_call (void)
{
  return (RnOpCall){
    .op = RN_OP_NORMALIZE,
    .in_present = 7,
    .out_present = 1,
    .in = { { RN_U8, 3, { 2, 5, 12, 1 }, 1 },
            { RN_I32, 2, { 2, 2, 1, 1 }, 1 },
            { RN_F32, 3, { 2, 3, 256, 1 }, 1 } },
    .out = { rn_desc_nchw (RN_F16, 2, 3, 5, 4, 8) },
  };
}

/* Kernels read as many bytes as the destination has elements. */
static void
test_check_normalize (void)
{
  RnOpCall call = normalize_call ();

  g_assert_null (rn_op_check (&call));
  for (int slot = 0; slot < RN_NORMALIZE_IN_COUNT; slot++)
    {
      for (int k = 0; k < call.in[slot].rank; k++)
        for (int change = -1; change <= 1; change += 2)
          {
            call = normalize_call ();
            call.in[slot].dims[k] += change;
            g_assert_nonnull (rn_op_check (&call));
          }
      call = normalize_call ();
      call.in[slot].dtype = slot == RN_NORMALIZE_PIXELS ? RN_I16 : RN_U8;
      g_assert_nonnull (rn_op_check (&call));
      call = normalize_call ();
      call.in_present &= ~(1u << slot);
      g_assert_nonnull (rn_op_check (&call));
    }
  for (int k = 0; k < 4; k++)
    {
      static const int64_t sizes[] = { -1, 0, 6, G_MAXINT64 / 3, G_MAXINT64 };
      for (guint i = 0; i < G_N_ELEMENTS (sizes); i++)
        {
          call = normalize_call ();
          call.out[0].dims[k] = sizes[i];
          g_assert_nonnull (rn_op_check (&call));
        }
    }
  call = normalize_call ();
  call.out[0].dtype = RN_U8;
  g_assert_nonnull (rn_op_check (&call));
  /* Sizes that agree, but whose product does not fit. */
  call = normalize_call ();
  call.in[RN_NORMALIZE_PIXELS].dims[1] = call.out[0].dims[2] = G_MAXINT64 / 8;
  g_assert_cmpstr (rn_op_check (&call), ==, "a tensor is too large");
  call = normalize_call ();
  call.in[RN_NORMALIZE_PIXELS].dims[2] = 3 * (call.out[0].dims[3] = G_MAXINT64 / 8);
  g_assert_nonnull (rn_op_check (&call));
}

static void
test_cost (void)
{
  RnOpCall call = conv_call ();
  RnOpCost cost = rn_op_cost (&call);
  g_assert_cmpint (cost.macs, ==, 2 * 20 * 5 * 4 * 16 * 9);
  g_assert_cmpint (cost.bytes, ==,
                   4 * (2 * 16 * 9 * 8 + 20 * 16 * 9 + 2 * 24 * 5 * 4)); /* 20 channels are stored as 24 */

  RnOpCall sgd = { .op = RN_OP_SGD, .in_present = 3, .out_present = 3 };
  sgd.in[RN_SGD_GRAD] = sgd.out[RN_SGD_PARAM] = sgd.out[RN_SGD_MOMENTUM] = rn_desc_vector (RN_F32, 10);
  sgd.in[RN_SGD_HYPER] = rn_desc_vector (RN_F32, RN_HYPER_COUNT + 3 * RN_GROUP_COUNT);
  cost = rn_op_cost (&sgd);
  g_assert_cmpint (cost.macs, ==, 0);
  g_assert_cmpint (cost.bytes, ==, 4 * (10 + RN_HYPER_COUNT + 3 * RN_GROUP_COUNT + 2 * (10 + 10)));
}

static void
test_describe (void)
{
  RnOpCall call = conv_call ();
  spoil_bias (&call);
  call.args.conv.relu = TRUE;
  call.args.conv.pad[1] = 0;
  g_autofree char *text = rn_op_describe (&call);
  g_assert_cmpstr (text, ==, "conv2d_fwd 2x16x9x8/8 -> 2x20x5x4/8 k3 s2 p1x0 +bias +relu");
}

static const char *
chosen (RnDevice *device, const RnOpCall *call, GError **error)
{
  RnPrepared prepared = { NULL };
  if (!rn_device_prepare (device, call, &prepared, error))
    return NULL;
  const char *name = prepared.kernel->name;
  rn_prepared_release (&prepared);
  g_assert_null (prepared.state);
  return name;
}

static void
test_dispatch (void)
{
  char *refs[] = { (char *) "ref:*", NULL }, *all[] = { (char *) "*", NULL },
       *fast[] = { (char *) "*:openmp", (char *) "*:onednn", NULL };
  g_autoptr (GError) error = NULL;
  g_autoptr (RnDevice) device = rn_device_new_cpu (1, &error);
  RnOpCall call = { .op = RN_OP_RELU_FWD, .in_present = 1, .out_present = 1 };

  g_assert_no_error (error);
  call.in[0] = call.out[0] = rn_desc_nchw (RN_F32, 1, 3, 2, 2, 8);
  g_assert_cmpstr (chosen (device, &call, &error), ==, "cpu:relu_fwd:openmp");
  device->prefer = refs;
  g_assert_cmpstr (chosen (device, &call, &error), ==, "ref:relu_fwd");
  device->prefer = NULL;
  device->forbid = fast;
  g_assert_cmpstr (chosen (device, &call, &error), ==, "ref:relu_fwd");
  g_assert_no_error (error);

  /* The reference needs no workspace. */
  RnOpCall conv = conv_call ();
  device->forbid = NULL;
  device->workspace_limit = 1;
  g_assert_cmpstr (chosen (device, &conv, &error), ==, "ref:conv2d_fwd");
  g_assert_no_error (error);
  device->workspace_limit = 0;

  device->forbid = all;
  g_assert_null (chosen (device, &call, &error));
  g_assert_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL);
  g_assert_nonnull (strstr (error->message, "relu_fwd 1x3x2x2/8 -> 1x3x2x2/8"));
  g_clear_error (&error);

  device->forbid = NULL;
  call.out[0].dims[1] = 4;
  g_assert_null (chosen (device, &call, &error));
  g_assert_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL);
}

/* By priority, all ops covered, names unique and made of their parts. */
static void
test_table (void)
{
  const RnKernel *const *kernels = rn_kernels_all ();
  guint seen = 0;
  g_autoptr (GHashTable) names = g_hash_table_new (g_str_hash, g_str_equal);

  for (int i = 0; kernels[i] != NULL; i++)
    {
      if (i > 0)
        g_assert_cmpint (kernels[i]->priority, <=, kernels[i - 1]->priority);
      g_assert_nonnull (strstr (kernels[i]->name, rn_op_name (kernels[i]->op)));
      g_assert_true (g_hash_table_add (names, (gpointer) kernels[i]->name));
      g_assert_true (kernels[i]->run != NULL);
      seen |= g_str_has_prefix (kernels[i]->name, "ref:") ? 1u << kernels[i]->op : 0;
    }
  g_assert_cmphex (seen, ==, (1u << RN_OP_COUNT) - 1);
}

static void
test_memory (void)
{
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  void *memory = NULL;
  char back[4] = "";

  g_assert_cmpint (device->vtbl->alloc (device, 100, &memory), ==, RN_STATUS_OK);
  g_assert_cmphex ((guintptr) memory % 64, ==, 0);
  g_assert_cmpint (device->vtbl->copy_in (device, memory, "abc", 4), ==, RN_STATUS_OK);
  g_assert_cmpint (device->vtbl->fill (device, memory, 'x', 1), ==, RN_STATUS_OK);
  g_assert_cmpint (device->vtbl->copy_out (device, back, memory, 4), ==, RN_STATUS_OK);
  g_assert_cmpstr (back, ==, "xbc");
  device->vtbl->free (device, memory, 100);
  g_assert_cmpint (device->vtbl->alloc (device, G_MAXSIZE / 2, &memory), ==, RN_STATUS_MEMORY);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/op/window", test_window);
  g_test_add_func ("/op/names", test_names);
  g_test_add_func ("/op/check", test_check);
  g_test_add_func ("/op/check-sums", test_check_sums);
  g_test_add_func ("/op/check-focal", test_check_focal);
  g_test_add_func ("/op/check-normalize", test_check_normalize);
  g_test_add_func ("/op/cost", test_cost);
  g_test_add_func ("/op/describe", test_describe);
  g_test_add_func ("/device/dispatch", test_dispatch);
  g_test_add_func ("/device/table", test_table);
  g_test_add_func ("/device/memory", test_memory);
  return g_test_run ();
}
