#define G_LOG_DOMAIN "rn-data"
#include "config.h"

#include "datasets/dataset-private.h"

#include "datasets/voc-xml.h"
#include "datasets/voc.h"
#include "runner/base/error.h"
#include "runner/config/schema.h"

/* A kind of data set: makes a base or a view from its keys. */
typedef struct
{
  RnComponent component;
  RnDataset *(*make) (gconstpointer settings, const RnNode *node, const RnDatasetOptions *options, int depth,
                      GError **error);
} RnDatasetDesc;

static RnDataset *dataset_build (const RnNode *node, const RnDatasetOptions *options, int depth,
                                 GError **error);

/* ---- Views ---- */

static RnDataset *
view_new (void)
{
  RnDataset *view = g_new0 (RnDataset, 1);

  view->parts = g_ptr_array_new_with_free_func ((GDestroyNotify) rn_dataset_free);
  view->times = 1;
  return view;
}

typedef struct
{
  gint64 times;
  const RnNode *dataset;
} Repeat;

static const RnKeySpec repeat_keys[] = {
  RN_KEY (Repeat, times, RN_KEY_INT, NULL, "how often the data set comes in one epoch", .min = 1, .max = 1e6,
          .flags = RN_KEY_REQUIRED),
  RN_KEY (Repeat, dataset, RN_KEY_NODE, NULL, "the data set", .flags = RN_KEY_REQUIRED),
  RN_KEY_END,
};

static RnDataset *
repeat_make (gconstpointer self, const RnNode *node, const RnDatasetOptions *options, int depth,
             GError **error)
{
  const Repeat *settings = self;
  RnDataset *part = dataset_build (settings->dataset, options, depth + 1, error);
  g_autoptr (RnDataset) view = NULL;

  if (part == NULL)
    return NULL;
  view = view_new ();
  g_ptr_array_add (view->parts, part);
  view->times = settings->times;
  return g_steal_pointer (&view);
}

static RnDataset *
concat_list (const RnNode *list, const RnDatasetOptions *options, int depth, GError **error)
{
  g_autoptr (RnDataset) view = view_new ();

  if (rn_node_kind (list) != RN_NODE_LIST || rn_node_size (list) == 0)
    {
      rn_node_error (list, error, "expected a list of data sets");
      return NULL;
    }
  for (guint i = 0; i < rn_node_size (list); i++)
    {
      RnDataset *part = dataset_build (rn_node_item (list, i), options, depth + 1, error);

      if (part == NULL)
        return NULL;
      g_ptr_array_add (view->parts, part);
    }
  return g_steal_pointer (&view);
}

typedef struct
{
  const RnNode *datasets;
} Concat;

static const RnKeySpec concat_keys[] = {
  RN_KEY (Concat, datasets, RN_KEY_NODE, NULL, "list of data sets", .flags = RN_KEY_REQUIRED),
  RN_KEY_END,
};

static RnDataset *
concat_make (gconstpointer self, const RnNode *node, const RnDatasetOptions *options, int depth,
             GError **error)
{
  return concat_list (((const Concat *) self)->datasets, options, depth, error);
}

/* ---- VOCDataset ---- */

typedef struct
{
  char **ann_file, **img_prefix;
  char *data_root;
  const RnNode *pipeline, *classes;
  gboolean filter_empty_gt;
  gint64 min_size;
} Voc;

static const RnKeySpec voc_keys[] = {
  RN_KEY (Voc, ann_file, RN_KEY_STRING_LIST, NULL,
          "split list, an image id a line, or a folder of XML files; or a list of them",
          .flags = RN_KEY_REQUIRED),
  RN_KEY (Voc, img_prefix, RN_KEY_STRING_LIST, NULL,
          "folder with JPEGImages and Annotations; one for each ann_file", .flags = RN_KEY_REQUIRED),
  RN_KEY (Voc, pipeline, RN_KEY_NODE, NULL, "list of transforms", .flags = RN_KEY_REQUIRED),
  RN_KEY (Voc, classes, RN_KEY_NODE, "null",
          "list of names, file with a name per line, or auto; null: the file's, else the 20 of VOC",
          .flags = RN_KEY_NULLABLE),
  RN_KEY (Voc, data_root, RN_KEY_STRING, "null", "in front of relative paths; null: the file's",
          .flags = RN_KEY_NULLABLE),
  RN_KEY (Voc, filter_empty_gt, RN_KEY_BOOL, "true",
          "training leaves out images without an object of a known class"),
  RN_KEY (Voc, min_size, RN_KEY_INT, "0",
          "training takes objects with a shorter side below it for difficult, in pixels", .max = 1e6),
  RN_KEY_END,
};

static gboolean
check_layout (const char *ann_file, const char *prefix, const RnNode *node, GError **error)
{
  g_autofree char *annotations = g_build_filename (prefix, "Annotations", NULL);
  g_autofree char *images = g_build_filename (prefix, "JPEGImages", NULL);
  const char *missing = !g_file_test (ann_file, G_FILE_TEST_EXISTS)      ? ann_file
                        : !g_file_test (annotations, G_FILE_TEST_IS_DIR) ? annotations
                        : !g_file_test (images, G_FILE_TEST_IS_DIR)      ? images
                                                                         : NULL;

  if (missing == NULL)
    return TRUE;
  g_autofree char *here = g_get_current_dir ();
  g_set_error (
      error, RN_DATA_ERROR, RN_DATA_ERROR_MISSING,
      "%s: no data set: %s is missing. Expected:\n"
      "  %s  (split list, an image id a line; or a folder of XML files, which stands for all of them)\n"
      "  %s/ID.xml\n"
      "  %s/ID.jpg  (or .jpeg, .png)\n"
      "Paths that are relative start at data_root (--set data_root=FOLDER), and data_root in %s; "
      "`runner synth FOLDER` draws a small data set.",
      rn_node_origin (rn_node_get (node, missing == ann_file ? "ann_file" : "img_prefix")), missing, ann_file,
      annotations, images, here);
  return FALSE;
}

static RnDataset *
voc_base (const Voc *settings, guint i, const RnNode *node, const RnDatasetOptions *options, GError **error)
{
  g_autoptr (RnDataset) base = g_new0 (RnDataset, 1);
  const char *root = settings->data_root != NULL ? settings->data_root : options->data_root;
  g_autofree char *ann_file = rn_dataset_resolve_path (root, settings->ann_file[i]);

  base->prefix = rn_dataset_resolve_path (root, settings->img_prefix[i]);
  base->test_mode = options->test_mode;
  base->filter_empty_gt = settings->filter_empty_gt;
  base->min_size = (int) settings->min_size;
  base->classes_node = settings->classes;
  base->pipeline = rn_pipeline_new (options->pipeline != NULL ? options->pipeline : settings->pipeline,
                                    options->test_mode, error);
  if (base->pipeline == NULL || !check_layout (ann_file, base->prefix, node, error))
    return NULL;
  base->index = rn_voc_index (ann_file, base->prefix, options, error);
  base->ann_file = g_steal_pointer (&ann_file);
  return base->index != NULL ? g_steal_pointer (&base) : NULL;
}

/* Several split lists are as many data sets, each filtered alone, one after the other. */
static RnDataset *
voc_make (gconstpointer self, const RnNode *node, const RnDatasetOptions *options, int depth, GError **error)
{
  const Voc *settings = self;
  guint n = g_strv_length (settings->ann_file);
  g_autoptr (RnDataset) view = NULL;

  if (n == 0 || n != g_strv_length (settings->img_prefix))
    {
      rn_node_error (node, error, "needs an img_prefix for each ann_file");
      return NULL;
    }
  if (n == 1)
    return voc_base (settings, 0, node, options, error);
  view = view_new ();
  for (guint i = 0; i < n; i++)
    {
      RnDataset *base = voc_base (settings, i, node, options, error);

      if (base == NULL)
        return NULL;
      g_ptr_array_add (view->parts, base);
    }
  return g_steal_pointer (&view);
}

/* ---- Registry ---- */

static const RnDatasetDesc dataset_descs[] = {
  { { "VOCDataset", "a folder in Pascal VOC's layout", sizeof (Voc), voc_keys }, voc_make },
  { { "RepeatDataset", "a data set several times in one epoch", sizeof (Repeat), repeat_keys }, repeat_make },
  { { "ConcatDataset", "data sets one after the other", sizeof (Concat), concat_keys }, concat_make },
};

void
rn_datasets_register (void)
{
  static gsize done = 0;

  if (!g_once_init_enter (&done))
    return;
  rn_voc_xml_init ();
  for (gsize i = 0; i < G_N_ELEMENTS (dataset_descs); i++)
    rn_registry_add (rn_registry_family ("dataset"), &dataset_descs[i].component, NULL);
  for (gsize i = 0; rn_transforms[i] != NULL; i++)
    rn_registry_add (rn_registry_family ("transform"), &rn_transforms[i]->component, NULL);
  g_once_init_leave (&done, 1);
}

static RnDataset *
dataset_build (const RnNode *node, const RnDatasetOptions *options, int depth, GError **error)
{
  const RnComponent *component;
  gpointer settings;
  RnDataset *dataset;

  if (depth > RN_DATASET_MAX_DEPTH)
    {
      rn_node_error (node, error, "data sets are nested more than %d deep", RN_DATASET_MAX_DEPTH);
      return NULL;
    }
  if (rn_node_kind (node) == RN_NODE_LIST)
    return concat_list (node, options, depth, error);
  settings = rn_component_new (rn_registry_family ("dataset"), node, NULL, NULL, &component, error);
  if (settings == NULL)
    return NULL;
  dataset = ((const RnDatasetDesc *) component)->make (settings, node, options, depth, error);
  rn_component_free (component, settings);
  return dataset;
}

/* ---- From parts to a whole ---- */

static void
collect_bases (RnDataset *dataset, GPtrArray *bases)
{
  if (dataset->parts == NULL)
    g_ptr_array_add (bases, dataset);
  else
    for (guint i = 0; i < dataset->parts->len; i++)
      collect_bases (dataset->parts->pdata[i], bases);
}

/*
 * MMDetection's filter: small images always, images without known objects if wanted. Difficult objects count
 * here.
 */
static void
filter_base (RnDataset *base)
{
  GArray *images = base->index->images;
  guint kept = 0;

  base->n_read = images->len;
  for (guint i = 0; i < images->len && !base->test_mode; i++)
    {
      RnIndexImage *image = rn_index_image (base->index, i);

      if (MIN (image->width, image->height) < RN_DATASET_MIN_SIDE)
        base->n_too_small++;
      else if (base->filter_empty_gt && image->n == 0)
        base->n_empty++;
      else
        *rn_index_image (base->index, kept++) = *image;
    }
  if (!base->test_mode)
    g_array_set_size (images, kept);
  base->size = images->len;
}

static void
mark_small_objects (RnDataset *base)
{
  const float (*boxes)[4] = (const float (*)[4]) (gpointer) base->index->boxes->data;

  for (guint i = 0; i < base->index->boxes->len && !base->test_mode; i++)
    if (MIN (boxes[i][2] - boxes[i][0], boxes[i][3] - boxes[i][1]) < (float) base->min_size)
      base->index->difficult->data[i] = 1;
}

/* Sizes of views, once the bases are filtered. FALSE if an index would not fit into 31 bits. */
static gboolean
sum_sizes (RnDataset *dataset)
{
  int64_t sum = 0;

  if (dataset->parts == NULL)
    return TRUE;
  for (guint i = 0; i < dataset->parts->len; i++)
    {
      RnDataset *part = dataset->parts->pdata[i];

      if (!sum_sizes (part))
        return FALSE;
      sum += part->size;
    }
  return !__builtin_mul_overflow (sum, dataset->times, &dataset->size) && dataset->size <= G_MAXINT32;
}

/* Says why there is no image. */
static gboolean
fail_empty (const RnDataset *dataset, const RnNode *config, RnOnError on_error, GError **error)
{
  const RnDataset *first = dataset->bases->len > 0 ? dataset->bases->pdata[0] : NULL;
  int64_t n_read = 0;
  for (guint i = 0; i < dataset->bases->len; i++)
    n_read += ((const RnDataset *) dataset->bases->pdata[i])->n_read;
  g_autofree char *counts = rn_dataset_describe (dataset);
  g_autofree char *why =
      n_read > 0 || first == NULL
          ? g_strdup (
              "training takes images with an object of `classes` (filter_empty_gt: false takes others "
              "too)")
          : g_strdup_printf ("%s, which ann_file names, is empty%s", first->ann_file,
                             on_error == RN_ON_ERROR_SKIP ? ", or none of its images can be read" : "");
  g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_EMPTY, "%s: no image is left: %s; %s",
               rn_node_origin (config), counts, why);
  return FALSE;
}

static gboolean
finish (RnDataset *dataset, const RnNode *config, const RnDatasetOptions *options, GError **error)
{
  dataset->bases = g_ptr_array_new ();
  collect_bases (dataset, dataset->bases);
  dataset->test_mode = options->test_mode;
  if (!rn_dataset_settle_classes (dataset->bases, options, &dataset->classes, error))
    return FALSE;
  dataset->n_classes = (int) g_strv_length (dataset->classes);
  if (options->num_classes > 0 && options->num_classes != dataset->n_classes)
    return rn_node_error (config, error,
                          "the model has num_classes: %d, the data set has %d classes; leave num_classes "
                          "out, or set `classes:`",
                          options->num_classes, dataset->n_classes);

  for (guint i = 0; i < dataset->bases->len; i++)
    {
      RnDataset *base = dataset->bases->pdata[i];

      mark_small_objects (base);
      filter_base (base);
      base->classes_node = NULL;
      base->n_classes = dataset->n_classes;
      if (base->classes == NULL)
        base->classes = g_strdupv (dataset->classes);
    }
  if (!sum_sizes (dataset))
    return rn_node_error (config, error, "more than %d images", G_MAXINT32);
  if (dataset->size > 0)
    return TRUE;
  return fail_empty (dataset, config, options->on_error, error);
}

RnDataset *
rn_dataset_new (const RnNode *config, const RnDatasetOptions *options, GError **error)
{
  g_autoptr (RnDataset) dataset = NULL;

  rn_datasets_register ();
  dataset = dataset_build (config, options, 0, error);
  if (dataset == NULL || !finish (dataset, config, options, error))
    return NULL;
  return g_steal_pointer (&dataset);
}
