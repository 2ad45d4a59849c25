#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/infer.h"

#include "datasets/dataset-private.h"
#include "datasets/image.h"
#include "datasets/pipeline.h"
#include "runner/base/error.h"
#include "runner/base/size.h"
#include "runner/predict.h"
#include "runner/weights/load.h"

struct _RnInfer
{
  RnJob *job;
  RnPipeline *pipeline;
  GPtrArray *paths; /* of char * */
  GArray *images;   /* of RnInferImage */
  guint n_unreadable;
  char **names; /* of the classes */

  guint8 *pixels[2]; /* decoded and resized */
  guint8 *input;     /* [pad_height, pad_width, 3] of the largest image */
  float table[1][3][256];
};

void
rn_infer_free (RnInfer *infer)
{
  if (infer == NULL)
    return;
  g_clear_pointer (&infer->pipeline, rn_pipeline_free);
  g_ptr_array_unref (infer->paths);
  g_array_unref (infer->images);
  g_strfreev (infer->names);
  g_free (infer->pixels[0]);
  g_free (infer->pixels[1]);
  g_free (infer->input);
  g_free (infer);
}

guint
rn_infer_size (const RnInfer *infer)
{
  return infer->images->len;
}

const RnInferImage *
rn_infer_image (const RnInfer *infer, guint i)
{
  return &g_array_index (infer->images, RnInferImage, i);
}

guint
rn_infer_n_unreadable (const RnInfer *infer)
{
  return infer->n_unreadable;
}

const char *const *
rn_infer_class_names (const RnInfer *infer)
{
  return (const char *const *) infer->names;
}

/* ---- What the configuration says ---- */

/* The value of @key of a data set, or of the first one in it that has the key; NULL if none has. */
static const RnNode *
data_set_key (const RnNode *set, const char *key)
{
  for (int depth = 0; depth < RN_DATASET_MAX_DEPTH && !rn_node_is_null (set); depth++)
    {
      if (rn_node_kind (set) == RN_NODE_LIST)
        {
          set = rn_node_size (set) > 0 ? rn_node_item (set, 0) : NULL;
          continue;
        }
      const RnNode *value = rn_node_get (set, key);
      if (!rn_node_is_null (value))
        return value;
      const RnNode *inner = rn_node_get (set, "dataset");
      set = inner != NULL ? inner : rn_node_get (set, "datasets");
    }
  return NULL;
}

static const RnNode *
test_set (const RnJob *job)
{
  return !rn_node_is_null (job->data.test) ? job->data.test : job->data.val;
}

static gboolean
open_pipeline (RnInfer *infer, GError **error)
{
  const RnJob *job = infer->job;
  const RnNode *list = data_set_key (test_set (job), "pipeline");

  if (list == NULL)
    list = job->config.test_pipeline;
  if (rn_node_is_null (list))
    {
      g_set_error (
          error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_KEY,
          "%s: how images are prepared is not said: there is no pipeline in data.test or data.val, and no "
          "test_pipeline",
          rn_node_origin (job->root));
      return FALSE;
    }
  infer->pipeline = rn_pipeline_new (list, TRUE, error);
  return infer->pipeline != NULL;
}

/* `classes:` where no data set helps: a list, a file, or nothing for VOC's. (transfer full) */
static char **
names_of_config (const RnJob *job, GError **error)
{
  const RnNode *node = data_set_key (test_set (job), "classes");

  if (node == NULL)
    node = job->config.classes;
  if (!rn_node_is_null (node) && rn_node_kind (node) == RN_NODE_STRING
      && g_str_equal (rn_node_as_string (node), "auto"))
    {
      rn_node_error (
          node, error,
          "the checkpoint does not name its classes, so they must stand here: a list of names, or a file "
          "with a name per line, in the order of the training");
      return NULL;
    }
  return rn_class_names_read (node, job->config.data_root, error);
}

/* ---- The model ---- */

/* The likeliest mistakes on the command line, in words of their own. */
static gboolean
check_weights_path (const char *path, GError **error)
{
  g_autofree char *name = rn_printable (path, FALSE);
  int width, height;
  gboolean is_folder = g_file_test (path, G_FILE_TEST_IS_DIR);

  if (!is_folder && !rn_image_probe_path (path, &width, &height, NULL))
    return TRUE;
  g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE,
               "%s is %s, not a checkpoint; the order is CONFIG, CHECKPOINT, then images and folders", name,
               is_folder ? "a folder" : "an image");
  return FALSE;
}

/* Those of the checkpoint are right by themselves; that the file says otherwise is worth a word. */
static gboolean
choose_names (RnInfer *infer, const RnWeights *weights, GError **error)
{
  const char *const *stored = rn_weights_classes (weights);
  g_autoptr (GError) cause = NULL;
  char **configured = names_of_config (infer->job, stored == NULL ? error : &cause);

  if (stored == NULL)
    {
      infer->names = configured;
      return configured != NULL;
    }
  infer->names = g_strdupv ((char **) stored);
  const RnNode *classes = infer->job->config.classes;
  if (configured != NULL && !rn_node_is_null (classes)
      && !g_strv_equal ((const char *const *) configured, stored))
    g_warning ("%s: `classes:` differs from the classes that the checkpoint was trained on; those of the "
               "checkpoint are used",
               rn_node_origin (classes));
  g_strfreev (configured);
  return TRUE;
}

static gboolean
open_model (RnInfer *infer, const RnWeights *weights, GError **error)
{
  RnJob *job = infer->job;
  const RnNode *node = rn_run_config_need (job->root, "model", error);

  if (node == NULL)
    return FALSE;
  int n_names = (int) g_strv_length (infer->names);
  const RnNode *n_classes = rn_node_path (job->root, "model.bbox_head.num_classes");
  job->model = rn_model_new (node, rn_node_is_null (n_classes) ? n_names : 0, error);
  if (job->model == NULL)
    return FALSE;
  if (rn_model_num_classes (job->model) == n_names)
    return TRUE;
  g_autofree char *name = rn_printable (rn_weights_path (weights), FALSE);
  g_set_error (
      error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH,
      "%s: %d class names (%s%s), but the model has num_classes: %d (%s); what works: the configuration "
      "of the training, or `classes:` with a name for each class",
      name, n_names, n_names > 0 ? infer->names[0] : "none", n_names > 1 ? ", ..." : "",
      rn_model_num_classes (job->model), rn_node_origin (rn_node_is_null (n_classes) ? node : n_classes));
  return FALSE;
}

/* ---- The images ---- */

static void
probe (RnInfer *infer, const char *path)
{
  RnInferImage image = { .path = path };
  g_autoptr (GArray) sizes = g_array_new (FALSE, FALSE, sizeof (RnSizeRange));
  g_autoptr (GError) error = NULL;

  if (!rn_image_probe_path (path, &image.width, &image.height, &error))
    {
      g_autofree char *text = rn_printable (error->message, FALSE);
      g_warning ("%s; left out", text);
      infer->n_unreadable++;
      return;
    }
  image.area = rn_pipeline_bound (infer->pipeline, image.width, image.height, sizes);
  const RnSizeRange *size = &g_array_index (sizes, RnSizeRange, 0); /* the only one: nothing is random here */
  image.pad_width = size->max_width;
  image.pad_height = size->max_height;
  g_array_append_val (infer->images, image);
}

static gboolean
probe_all (RnInfer *infer, GError **error)
{
  for (guint i = 0; i < infer->paths->len; i++)
    {
      probe (infer, g_ptr_array_index (infer->paths, i));
      rn_job_show_progress ((int) i + 1, (int) infer->paths->len, (gpointer) "reading headers");
    }
  if (infer->images->len > 0)
    return TRUE;
  g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_EMPTY, "none of %u images can be read",
               infer->n_unreadable);
  return FALSE;
}

static int
larger_first (gconstpointer a, gconstpointer b)
{
  const RnShape *x = a, *y = b;
  gint64 area_x = (gint64) x->height * x->width, area_y = (gint64) y->height * y->width;

  if (area_x != area_y)
    return area_x < area_y ? 1 : -1;
  return y->height - x->height;
}

/* Each padded shape once, of RnShape, the largest first: it decides the arena. (transfer full) */
static GArray *
collect_shapes (const RnInfer *infer)
{
  GArray *shapes = g_array_new (FALSE, FALSE, sizeof (RnShape));
  guint n = 0;

  for (guint i = 0; i < infer->images->len; i++)
    {
      const RnInferImage *image = rn_infer_image (infer, i);
      RnShape shape = { RN_MODE_INFER, 1, image->pad_height, image->pad_width };
      g_array_append_val (shapes, shape);
    }
  g_array_sort (shapes, larger_first);
  RnShape *all = (RnShape *) (gpointer) shapes->data;
  for (guint i = 0; i < shapes->len; i++)
    if (n == 0 || larger_first (&all[n - 1], &all[i]) != 0)
      all[n++] = all[i];
  g_array_set_size (shapes, n);
  return shapes;
}

/* Bytes of the buffers, and of the picture that is drawn when they are no longer needed for this image. */
typedef struct
{
  gsize pixels, input, picture;
} Buffers;

static Buffers
measure (const RnInfer *infer)
{
  Buffers need = { 0 };

  for (guint i = 0; i < infer->images->len; i++)
    {
      const RnInferImage *image = rn_infer_image (infer, i);
      gsize padded = (gsize) image->pad_width * (gsize) image->pad_height;
      need.pixels = MAX (need.pixels, 3 * image->area);
      need.input = MAX (need.input, 3 * padded);
      need.picture = MAX (need.picture, (3 + 4) * (gsize) image->width * (gsize) image->height);
    }
  return need;
}

static const RnInferImage *
largest (const RnInfer *infer)
{
  const RnInferImage *found = rn_infer_image (infer, 0);

  for (guint i = 1; i < infer->images->len; i++)
    {
      const RnInferImage *image = rn_infer_image (infer, i);
      if ((gint64) image->pad_width * image->pad_height > (gint64) found->pad_width * found->pad_height)
        found = image;
    }
  return found;
}

/* "Will it fit" is answered before the first image. */
static gboolean
check_memory (const RnInfer *infer, const Buffers *buffers, GError **error)
{
  RnMemory memory = rn_programs_memory (infer->job->programs);
  guint64 images = 2 * (guint64) buffers->pixels + buffers->input + buffers->picture;
  const RnRoom room = rn_room_free (infer->job);
  guint64 needed = memory.total_bytes + (room.counts_host ? images : 0), available = room.bytes;
  g_autofree char *params = rn_size_format (memory.param_bytes), *arena = rn_size_format (memory.arena_bytes);
  g_autofree char *images_text = rn_size_format (images), *total = rn_size_format (needed);
  g_autofree char *free_text = available == G_MAXUINT64 ? g_strdup ("unknown") : rn_size_format (available);

  g_message ("memory: parameters %s, arena %s (worst shape: %dx%d), images %s: %s %s; available: %s", params,
             arena, memory.worst.height, memory.worst.width, images_text, total,
             room.counts_host ? "in all" : "on the device", free_text);
  if (needed <= available)
    return TRUE;
  const RnInferImage *image = largest (infer);
  g_autofree char *name = rn_printable (image->path, FALSE);
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY,
               "%s are needed and %s are available; the largest image is %s (%d x %d pixels, %d x %d for the "
               "model): leave it out, or have Resize in the test pipeline make it smaller",
               total, free_text, name, image->width, image->height, image->pad_width, image->pad_height);
  return FALSE;
}

static gboolean
allocate (RnInfer *infer, const Buffers *buffers, GError **error)
{
  infer->pixels[0] = g_try_malloc (buffers->pixels);
  infer->pixels[1] = g_try_malloc (buffers->pixels);
  infer->input = g_try_malloc (buffers->input);
  if (infer->pixels[0] != NULL && infer->pixels[1] != NULL && infer->input != NULL)
    return TRUE;
  g_set_error_literal (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY, "no memory for the largest image");
  return FALSE;
}

static gboolean
open_programs (RnInfer *infer, RnWeights *weights, GError **error)
{
  RnJob *job = infer->job;
  g_autoptr (GArray) shapes = collect_shapes (infer);
  Buffers buffers = measure (infer);

  return rn_job_open_programs (job, shapes, FALSE, FALSE, error)
         && rn_programs_plan (job->programs, rn_job_show_progress, (gpointer) "planning shapes", error)
         && check_memory (infer, &buffers, error) && rn_programs_reserve (job->programs, error)
         && allocate (infer, &buffers, error) && rn_job_load_weights (job, weights, error);
}

RnInfer *
rn_infer_new (RnJob *job, const char *path, gboolean use_ema, GPtrArray *paths, GError **error)
{
  g_autoptr (RnInfer) infer = g_new0 (RnInfer, 1);

  infer->job = job;
  infer->paths = g_ptr_array_ref (paths);
  infer->images = g_array_new (FALSE, FALSE, sizeof (RnInferImage));
  if (!open_pipeline (infer, error) || !check_weights_path (path, error))
    return NULL;
  g_autoptr (RnWeights) weights = rn_weights_open (path, error);
  if (weights == NULL)
    return NULL;
  if (use_ema)
    rn_weights_use_ema (weights, RN_WEIGHTS_NO_EMA);
  rn_weights_compare_config (weights, job->root);
  if (!choose_names (infer, weights, error) || !open_model (infer, weights, error)
      || !probe_all (infer, error) || !open_programs (infer, weights, error))
    return NULL;
  return g_steal_pointer (&infer);
}

GArray *
rn_infer_run (RnInfer *infer, guint i, GError **error)
{
  const RnInferImage *image = rn_infer_image (infer, i);
  RnSampleMeta meta = {
    .id = image->path, .path = image->path, .ori_width = image->width, .ori_height = image->height
  };
  RnSample sample = {
    .meta = &meta,
    .pixels = infer->pixels[0],
    .spare = infer->pixels[1],
  };
  int32_t size[1][2];
  RnBatch batch = { .n = 1,
                    .height = image->pad_height,
                    .width = image->pad_width,
                    .pixels = infer->input,
                    .sizes = size,
                    .table = infer->table,
                    .metas = &meta };
  GArray *detections = NULL;

  rn_sample_set_output (&sample, &batch, 0);
  if (!rn_pipeline_run (infer->pipeline, &sample, error)
      || !rn_programs_infer (infer->job->programs, &batch, &detections, error))
    return NULL;
  return detections;
}
