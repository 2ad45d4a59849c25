/*
 * A plugin that reads and changes all that a hook may, in a run of two iterations of two images, and ends the
 * run where something is not as it should be.
 */
#include <float.h>
#include <math.h>
#include <runner/hook.h>
#include <string.h>

#define WEIGHT "bbox_head.retina_cls.weight"
#define MODULE "neck.fpn_convs.0"

typedef struct
{
  RnHook hook;
  const RnNode *node; /* {numbers: [1, 2.5], text: hello, no: false} */
  float *before;      /* WEIGHT before the step */
} Early;

typedef struct
{
  RnHook hook;
} Late;

#define CHECK(condition)                                                 \
  do                                                                     \
    if (!(condition))                                                    \
      return rn_hook_error (error, "line %d: %s", __LINE__, #condition); \
  while (0)

static Early *early; /* for the other hook */

static const RnKeySpec keys[] = {
  RN_KEY (Early, node, RN_KEY_NODE, NULL, "a map", .flags = RN_KEY_REQUIRED),
  RN_KEY_END,
};

static gint64
n_elements (const RnRunner *runner, const char *name)
{
  return rn_desc_elements (rn_runner_param_desc (runner, (guint) rn_runner_find_param (runner, name)));
}

/* ---- Before the optimizer hook ---- */

static gboolean
check_node (const RnNode *map, GError **error)
{
  const RnNode *numbers = rn_node_get (map, "numbers");

  CHECK (rn_node_kind (map) == RN_NODE_MAP && rn_node_size (map) == 3);
  CHECK (strcmp (rn_node_key (map, 1), "text") == 0);
  CHECK (strcmp (rn_node_as_string (rn_node_get (map, "text")), "hello") == 0);
  CHECK (!rn_node_as_bool (rn_node_get (map, "no")));
  CHECK (rn_node_as_int (rn_node_item (numbers, 0)) == 1
         && rn_node_as_float (rn_node_item (numbers, 1)) == 2.5);
  CHECK (rn_node_path (map, "numbers.1") == rn_node_item (numbers, 1));
  CHECK (strcmp (rn_node_dotted (numbers), "custom_hooks.0.node.numbers") == 0);
  CHECK (strstr (rn_node_origin (numbers), "run.yaml:") != NULL);
  CHECK (rn_node_get (map, "absent") == NULL);
  return TRUE;
}

static gboolean
prepare (RnHook *hook, RnWants *wants, GError **error)
{
  rn_wants_activation (wants, MODULE);
  return check_node (((Early *) hook)->node, error);
}

static gboolean
init (RnHook *hook, RnRunner *runner, GError **error)
{
  early = (Early *) hook;
  CHECK (rn_runner_find_param (runner, "absent") == -1);
  CHECK (rn_runner_find_param (runner, WEIGHT) >= 0);
  early->before = g_new0 (float, (gsize) n_elements (runner, WEIGHT));
  rn_runner_declare_score (runner, "mine");
  rn_runner_reserve_log (runner, 2);
  return TRUE;
}

static void
clear (RnHook *hook)
{
  g_free (((Early *) hook)->before);
}

static gboolean
before_run (RnHook *hook, RnRunner *runner, GError **error)
{
  guint n_trained = 0;

  CHECK (rn_runner_iter (runner) == 0 && rn_runner_epoch (runner) == 0 && rn_runner_opt_step (runner) == 0);
  CHECK (rn_runner_max_iters (runner) == 20 && rn_runner_max_epochs (runner) == 10);
  CHECK (rn_runner_epoch_length (runner) == 2 && !rn_runner_is_by_epoch (runner));
  CHECK (!rn_runner_is_validating (runner) && rn_runner_batch (runner) == NULL);
  CHECK (strcmp (rn_runner_work_dir (runner), "every") == 0);
  CHECK (strcmp (rn_runner_class_names (runner)[0], "circle") == 0);
  CHECK (rn_runner_class_names (runner)[3] == NULL);
  CHECK (isnan (rn_runner_score (runner, "mAP")));
  for (guint i = 0; i < rn_runner_n_params (runner); i++)
    {
      CHECK (rn_runner_find_param (runner, rn_runner_param_name (runner, i)) == (int) i);
      n_trained += rn_runner_param_is_trained (runner, i);
    }
  CHECK (n_trained > 50 && n_trained < rn_runner_n_params (runner)); /* statistics of batch norms are not */
  return TRUE;
}

static gboolean
before_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  const RnBatch *batch = rn_runner_batch (runner);
  guint weight = (guint) rn_runner_find_param (runner, WEIGHT);

  CHECK (batch != NULL && batch->n == 2 && batch->height == 64 && batch->width == 96);
  CHECK (batch->metas[0].n_gt > 0);
  for (int i = 0; i < batch->n; i++)
    {
      const RnSampleMeta *meta = &batch->metas[i];
      const guint8 *last = batch->pixels + (gsize) 3 * 64 * 96 * (gsize) (i + 1) - 1;
      CHECK (batch->sizes[i][0] == meta->img_height && batch->sizes[i][1] == meta->img_width);
      CHECK (batch->table[i][0][255] > batch->table[i][0][0]);
      CHECK (*last == 0 || (meta->img_height == 64 && meta->img_width == 96));
    }
  rn_runner_set_lr (runner, 0.002);
  rn_runner_set_momentum (runner, 0.5);
  rn_runner_set_loss_weight (runner, 2);
  CHECK (rn_runner_lr (runner) == 0.002 && rn_runner_momentum (runner) == 0.5);
  return rn_runner_read_param (runner, weight, early->before, error);
}

static gboolean
after_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  double iter = (double) rn_runner_iter (runner), loss = rn_runner_loss (runner, "loss"),
         cls = rn_runner_loss (runner, "loss_cls"), bbox = rn_runner_loss (runner, "loss_bbox");
  g_autofree float *values = NULL;
  RnTensorDesc desc;

  /* Two roundings of 32 bits apart. */
  CHECK (isfinite (loss) && fabs (loss - cls - bbox) <= 2 * loss * (double) FLT_EPSILON);
  CHECK (isnan (rn_runner_loss (runner, "absent")));
  rn_runner_log (runner, "mine", iter + 1);
  CHECK (rn_runner_log_mean (runner, "mine", 2) == (iter + 2) / 2); /* of 1, then of 1 and 2 */
  CHECK (isnan (rn_runner_log_mean (runner, "absent", 2)));
  CHECK (rn_runner_is_end_of_epoch (runner) == (iter == 1));
  CHECK (!rn_runner_is_last_iter (runner) && !rn_runner_is_last_epoch (runner));
  CHECK (rn_runner_every_n_iters (runner, 2) == (iter == 1) && rn_runner_every_n_iters (runner, 1));
  CHECK (rn_runner_every_n_inner_iters (runner, 2) == (rn_runner_inner_iter (runner) == 1));
  CHECK (!rn_runner_every_n_epochs (runner, 2) && !rn_runner_every_n_epochs (runner, 0));
  if (!rn_runner_read_activation (runner, MODULE, &desc, &values, error))
    return FALSE;
  CHECK (desc.rank == 4 && desc.dims[0] == 2 && desc.dims[1] == 16 && desc.dims[2] == 8
         && desc.dims[3] == 12);
  CHECK (isfinite (values[0]) && isfinite (values[2 * 16 * 8 * 12 - 1]));
  return TRUE;
}

/* A gradient of zero, and no momentum yet: the weight must stay as it is. */
static gboolean
before_step (RnHook *hook, RnRunner *runner, GError **error)
{
  guint weight = (guint) rn_runner_find_param (runner, WEIGHT);
  gsize n = (gsize) n_elements (runner, WEIGHT), n_other = 0;
  g_autofree float *values = g_new (float, n);

  if (!rn_runner_read_grad (runner, weight, values, error))
    return FALSE;
  for (gsize i = 0; i < n; i++)
    n_other += values[i] != 0;
  CHECK (n_other > n / 2);
  memset (values, 0, n * sizeof *values);
  return rn_runner_write_grad (runner, weight, values, error);
}

RN_HOOK_DESC (early, Early, .name = "EarlyHook", .summary = "for tests", .priority = RN_PRIORITY_HIGH,
              .needs = RN_NEEDS_LOSS | RN_NEEDS_ACTIVATIONS | RN_NEEDS_GRADIENTS, .keys = keys,
              .prepare = prepare, .init = init, .clear = clear, .before_run = before_run,
              .before_train_iter = before_train_iter, .before_step = before_step,
              .after_train_iter = after_train_iter);

/* ---- Behind the optimizer hook and the evaluation ---- */

static gboolean
late_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  guint weight = (guint) rn_runner_find_param (runner, WEIGHT), n = (guint) n_elements (runner, WEIGHT);
  g_autofree float *values = g_new (float, n), *activation = NULL;
  g_autoptr (GError) cause = NULL;
  RnTensorDesc desc;

  CHECK (rn_runner_opt_step (runner) == rn_runner_iter (runner) + 1);
  if (!rn_runner_read_param (runner, weight, values, error))
    return FALSE;
  CHECK (memcmp (values, early->before, n * sizeof *values) == 0);
  if (!rn_runner_read_grad (runner, weight, values, error))
    return FALSE;
  CHECK (values[0] == 0 && values[n - 1] == 0);
  CHECK (!rn_runner_write_grad (runner, weight, values, &cause)); /* too late */
  g_clear_error (&cause);
  CHECK (!rn_runner_read_activation (runner, MODULE, &desc, &activation, &cause));
  return rn_runner_draw_detections (runner, 0, 0.5, "every/late.png", error);
}

static gboolean
late_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  g_autoptr (RnRecord) record = rn_record_new ();
  const double three[] = { 1, 2, 3 };
  gsize n;

  CHECK (isfinite (rn_runner_score (runner, "mAP")) && isnan (rn_runner_score (runner, "mine")));
  CHECK (rn_runner_set_score (runner, "mine", 0.25) && rn_runner_score (runner, "mine") == 0.25);
  rn_runner_save (runner, hook, "kept");
  rn_runner_stop (runner);

  rn_record_set_int (record, "i", 7);
  rn_record_set_float (record, "f", 0.5);
  rn_record_set_string (record, "s", "text");
  rn_record_set_floats (record, "l", three, 3);
  CHECK (rn_record_size (record) == 4 && strcmp (rn_record_name (record, 2), "s") == 0);
  CHECK (rn_record_is_float (record, "f") && !rn_record_is_float (record, "i"));
  CHECK (rn_record_int (record, "i", 0) == 7 && rn_record_int (record, "s", -1) == -1);
  CHECK (rn_record_float (record, "f", 0) == 0.5 && strcmp (rn_record_string (record, "s"), "text") == 0);
  CHECK (rn_record_floats (record, "l", &n)[2] == 3 && n == 3);
  g_autofree char *json = rn_record_to_json (record, 17);
  g_message ("every function: %s", json);
  return TRUE;
}

RN_HOOK_DESC (late, Late, .name = "LateHook", .summary = "for tests", .priority = 75,
              .needs = RN_NEEDS_GRADIENTS, .after_train_iter = late_iter, .after_train_epoch = late_epoch);

RN_PLUGIN_HOOKS (&rn_hook_desc_early, &rn_hook_desc_late);
