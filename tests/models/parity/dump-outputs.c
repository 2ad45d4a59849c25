/*
 * dump-outputs.c: what a detector with the weights of a file computes for the images of data.val, for
 * check-photographs.py.
 *
 *   dump-outputs CONFIG CHECKPOINT DIR [KEY=VALUE...]
 *
 * Writes raw little-endian arrays to DIR: N.image F32 [3, height, width], N.LEVEL.index I32 [k],
 * N.LEVEL.logits F32 [k, classes], N.LEVEL.deltas F32 [k, 4]; with `model.test_cfg.nms_pre=-1` rows for all
 * anchors. Prints N, id, height and width of each.
 */
#include "config.h"

#include "runner/config/config.h"
#include "runner/programs-private.h"
#include "runner/weights/load.h"
#include "tests/batch-image.h"

#include <string.h>

static void
save (const char *dir, int n, const char *name, const void *data, gsize bytes)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *file = g_strdup_printf ("%d.%s", n, name);
  g_autofree char *path = g_build_filename (dir, file, NULL);
  if (!g_file_set_contents (path, data, (gssize) bytes, &error))
    g_error ("%s", error->message);
}

static void
dump (RnJob *job, const RnBatch *batch, int n, const char *dir)
{
  static const char *const names[RN_TOPK_OUT_COUNT] = { "index", "logits", "deltas" };
  g_autoptr (GError) error = NULL;
  g_autoptr (GArray) detections = NULL;
  const RnShape shape = { RN_MODE_INFER, batch->n, batch->height, batch->width };

  if (!rn_programs_infer (job->programs, batch, &detections, &error))
    g_error ("%s", error->message);
  const RnProgram *program = rn_programs_prepare (job->programs, shape, &error);
  g_assert_no_error (error);
  g_autofree float *image = batch_image (batch);
  save (dir, n, "image", image, (gsize) (3 * batch->height * batch->width) * sizeof (float));
  for (int level = 0; level < program->n_levels; level++)
    for (int i = 0; i < RN_TOPK_OUT_COUNT; i++)
      {
        RnValueId value = program->topk[level][i];
        g_autofree char *name = g_strdup_printf ("%d.%s", level, names[i]);
        save (dir, n, name, rn_executor_address (program->executor, value),
              rn_desc_bytes (&rn_graph_value (program->plan->graph, value)->desc));
      }
  g_print ("%d %s %d %d\n", n, batch->metas[0].id, batch->height, batch->width);
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GArray) shapes = g_array_new (FALSE, FALSE, sizeof (RnShape));

  if (argc < 4)
    g_error ("dump-outputs CONFIG CHECKPOINT DIR [KEY=VALUE...]");
  RnNode *root = rn_config_load (argv[1], (const char *const *) argv + 4, &error);
  g_autoptr (RnJob) job = root != NULL ? rn_job_new (root, &error) : NULL;
  g_autoptr (RnWeights) weights = job != NULL ? rn_weights_open (argv[2], &error) : NULL;
  if (weights == NULL || !rn_job_open_data (job, RN_SPLIT_VAL, &error))
    g_error ("%s", error->message);
  rn_job_add_shapes (job, RN_SPLIT_VAL, RN_MODE_INFER, shapes);
  if (!rn_job_open_model (job, &error) || !rn_job_open_programs (job, shapes, FALSE, FALSE, &error)
      || !rn_programs_reserve (job->programs, &error) || !rn_job_load_weights (job, weights, &error))
    g_error ("%s", error->message);

  RnLoader *loader = rn_job_loader (job, RN_SPLIT_VAL, &error);
  g_assert_no_error (error);
  rn_loader_start (loader, 0, 0);
  for (int n = 0; n < rn_loader_n_batches (loader); n++)
    {
      const RnBatch *batch = rn_loader_next (loader, &error);
      g_assert_no_error (error);
      dump (job, batch, n, argv[3]);
      rn_loader_release (loader, batch);
    }
  rn_loader_free (loader);
  return 0;
}
