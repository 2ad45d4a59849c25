/*
 * bench-placement.c: plans a training step for many shapes and strategies, and says how far each arena is
 * above the live bound, below which no placement can go. Not run by make check.
 *
 *   bench-placement CONFIG [KEY=VALUE ...]
 *
 * The exit status is 1 where an arena is more than LIMIT above its bound, or planning one shape takes longer
 * than SECONDS.
 */
#include "config.h"

#include "runner/cli/shape.h"
#include "runner/config/config.h"
#include "runner/job.h"

#include <time.h>

#define LIMIT 1.02      /* of the device's arena in single precision */
#define HALF_LIMIT 1.06 /* in half precision, where buffers differ more in size */
#define SECONDS 0.3
#define MIB (1 << 20)

/* Landscape and portrait, from a small image to the largest of COCO's recipe, and odd ratios between. */
static const char *const shapes[] = {
  "608x1024", "320x320",  "320x480", "384x512",  "480x640",  "512x352",  "640x448",
  "544x736",  "736x544",  "608x608", "672x1024", "1024x608", "800x800",  "800x1088",
  "800x1344", "1344x800", "960x640", "1152x768", "736x1312", "1216x320", "1344x1344",
};

typedef struct
{
  const char *name;
  const char *lines[6]; /* as after --set */
} Variant;

#define UPDATE "memory.update=in_backward"
#define DEPTH_FIRST "memory.head=depth_first"
#define HALF "fp16={loss_scale: 512}"

static const Variant variants[] = {
  { "plain", { NULL } },
  { "training BN",
    { "model.backbone.norm_eval=false", "model.backbone.frozen_stages=-1",
      "model.backbone.norm_cfg.requires_grad=true" } },
  { "depth-first", { DEPTH_FIRST } },
  { "in_backward", { UPDATE } },
  { "in_backward, depth-first", { UPDATE, DEPTH_FIRST } },
  { "with_cp", { "model.backbone.with_cp=true" } },
  { "sqrt, in_backward, depth-first", { UPDATE, DEPTH_FIRST, "model.backbone.with_cp=sqrt" } },
  { "with_cp, head with_cp", { "model.backbone.with_cp=true", "model.bbox_head.with_cp=true" } },
  { "offload", { "memory.offload=idle>16" } },
  { "block_outputs", { "memory.offload=block_outputs" } },
  { "smallest", { UPDATE, DEPTH_FIRST, "memory.offload=idle>4", "memory.momentum=host" } },
  { "half", { HALF } },
  { "half, depth-first", { HALF, DEPTH_FIRST } },
  { "half, with_cp, depth-first", { HALF, DEPTH_FIRST, "model.backbone.with_cp=sqrt" } },
  { "half, offload, momentum host", { HALF, DEPTH_FIRST, "memory.offload=idle>4", "memory.momentum=host" } },
};

typedef struct
{
  double worst, worst_host, seconds;
  const char *shape;
} Sum;

static void
drop (const char *domain, GLogLevelFlags level, const char *message, gpointer data)
{
}

static gboolean
plan_one (const char *config, char *const *changes, const Variant *variant, const char *shape, Sum *sum,
          gboolean each)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) lines = g_ptr_array_new ();

  g_ptr_array_add (lines, (gpointer) "work_dir=.");
  for (int i = 0; changes[i] != NULL; i++)
    g_ptr_array_add (lines, changes[i]);
  for (int i = 0; variant->lines[i] != NULL; i++)
    g_ptr_array_add (lines, (gpointer) variant->lines[i]);
  g_ptr_array_add (lines, NULL);
  RnNode *root = rn_config_load (config, (const char *const *) lines->pdata, &error);
  g_autoptr (RnJob) job = root != NULL ? rn_job_new (root, &error) : NULL;
  clock_t start = clock (); /* of this process alone */
  if (job == NULL || !rn_job_open_shapes (job, shape, 0, FALSE, FALSE, &error))
    {
      g_printerr ("%s: %s\n", variant->name, error->message);
      return FALSE;
    }
  double seconds = (double) (clock () - start) / CLOCKS_PER_SEC;
  const RnPlan *plan = rn_programs_get_plan (job->programs, rn_programs_memory (job->programs).worst, &error);
  g_assert_no_error (error);
  double ratio = (double) plan->arena_bytes / (double) plan->live_bound_bytes, host = 1;
  if (plan->host_arena_bytes > 0)
    host = (double) plan->host_arena_bytes / (double) plan->host_live_bound_bytes;
  if (each)
    g_print ("%-32s %-10s arena %8.1f bound %8.1f ratio %.4f host %8.1f ratio %.4f  %4u ops %.0f ms\n",
             variant->name, shape, (double) plan->arena_bytes / MIB, (double) plan->live_bound_bytes / MIB,
             ratio, (double) plan->host_arena_bytes / MIB, host, plan->graph->ops->len, seconds * 1e3);
  if (ratio > sum->worst)
    {
      sum->worst = ratio;
      sum->shape = shape;
    }
  sum->worst_host = MAX (sum->worst_host, host);
  sum->seconds = MAX (sum->seconds, seconds);
  return TRUE;
}

int
main (int argc, char **argv)
{
  gboolean is_ok = TRUE, each = g_getenv ("EACH") != NULL;

  g_log_set_handler ("rn-runner", G_LOG_LEVEL_MESSAGE, drop, NULL);

  if (argc < 2)
    {
      g_printerr ("usage: bench-placement CONFIG [KEY=VALUE ...]\n");
      return 2;
    }
  g_print ("%-32s %9s %-10s %9s %8s\n", "arena over live bound", "worst", "at", "host", "plan s");
  for (gsize v = 0; v < G_N_ELEMENTS (variants); v++)
    {
      Sum sum = { 0 };
      gboolean is_planned = TRUE;
      for (gsize s = 0; s < G_N_ELEMENTS (shapes) && is_planned; s++)
        is_planned = plan_one (argv[1], argv + 2, &variants[v], shapes[s], &sum, each);
      if (!is_planned)
        continue;
      double limit = g_str_has_prefix (variants[v].name, "half") ? HALF_LIMIT : LIMIT;
      gboolean is_good = sum.worst <= limit && sum.seconds <= SECONDS;
      g_print ("%-32s %9.4f %-10s %9.4f %8.3f%s\n", variants[v].name, sum.worst, sum.shape, sum.worst_host,
               sum.seconds, is_good ? "" : "  above the limit");
      is_ok = is_ok && is_good;
    }
  return is_ok ? 0 : 1;
}
