/* cmd-browse.c: `runner browse`: what a training would see, as pictures and as numbers, before it runs. */
#define G_LOG_DOMAIN "rn-cli"
#include "config.h"

#include "runner/cli/commands.h"

#include "runner/base/atomic-file.h"
#include "runner/base/error.h"
#include "runner/base/folder.h"
#include "runner/browse.h"
#include "runner/cli/common.h"

#include <string.h>

#define DEFAULT_N 20
#define NAME_MAX_BYTES 80

/* The command's own options. */
typedef struct
{
  char *out, *split, *ids;
  gint n;
  gint64 epoch;
  gboolean anchors;
} Options;

static void
options_clear (Options *options)
{
  g_free (options->out);
  g_free (options->split);
  g_free (options->ids);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Options, options_clear)

/* What was seen of one class. */
typedef struct
{
  GArray *widths, *heights; /* of float */
  int64_t n_anchors, n_low, n_none;
} ClassStats;

typedef struct
{
  const RnDataset *dataset;
  const char *dir;
  GString *page; /* index.html */
  ClassStats *classes;
  guint n_shown, n_failed;
} Report;

/* ---- Which samples ---- */

static gboolean
parse_split (const char *name, RnSplit *split, GError **error)
{
  static const char *const names[] = { "train", "val", "test" };

  for (gsize i = 0; i < G_N_ELEMENTS (names); i++)
    if (name == NULL || strcmp (name, names[i]) == 0)
      {
        *split = (RnSplit) i;
        return TRUE;
      }
  g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, "--split: \"%s\" is not train, val or test",
               name);
  return FALSE;
}

/* The positions of the images that @ids, separated by commas, names. */
static gboolean
find_ids (const RnDataset *dataset, const char *ids, GArray *indices, GError **error)
{
  g_auto (GStrv) names = g_strsplit (ids, ",", -1);

  for (guint i = 0; names[i] != NULL; i++)
    {
      int64_t index = 0, n = rn_dataset_size (dataset);

      g_strstrip (names[i]);
      if (*names[i] == '\0')
        continue;
      while (index < n && strcmp (rn_dataset_id (dataset, index), names[i]) != 0)
        index++;
      if (index == n)
        {
          rn_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE,
                        "--ids: no image \"%s\" in this split; its first is \"%s\"", names[i],
                        rn_dataset_id (dataset, 0));
          return FALSE;
        }
      g_array_append_val (indices, index);
    }
  return TRUE;
}

/* The first @n of the epoch, in the order of the run. */
static void
take_first (RnSampler *sampler, guint64 epoch, int64_t n, GArray *indices)
{
  g_autofree int64_t *batch = g_new (int64_t, rn_sampler_batch_size (sampler));

  for (int64_t i = 0; i < rn_sampler_n_batches (sampler) && indices->len < n; i++)
    {
      int n_batch = rn_sampler_batch (sampler, epoch, i, batch);

      g_array_append_vals (indices, batch, (guint) MIN (n_batch, n - indices->len));
    }
}

/* ---- One sample ---- */

/* "0001-id.png" with nothing in it that a file name or a page could stumble over. (transfer full) */
static char *
picture_name (guint number, const char *id)
{
  g_autofree char *safe = g_strndup (id, NAME_MAX_BYTES);

  g_strcanon (safe, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "._-", '_');
  return g_strdup_printf ("%04u-%s.png", number, safe);
}

static void
add_to_page (Report *report, const char *name, const RnBrowseSample *sample, guint n_low)
{
  g_autofree char *valid = rn_printable (sample->id, FALSE);
  g_autofree char *id = g_markup_escape_text (valid, -1);

  g_string_append_printf (report->page,
                          "<figure><a href=\"%s\"><img src=\"%s\" loading=\"lazy\"></a><figcaption>%s: %u "
                          "boxes, %" G_GINT64_FORMAT " anchors",
                          name, name, id, sample->boxes->len, (gint64) sample->n_anchors);
  if (n_low > 0)
    g_string_append_printf (report->page, ", %u without a good one", n_low);
  g_string_append (report->page, "</figcaption></figure>\n");
}

static void
add_sample (Report *report, const RnBrowseSample *sample, const char *name)
{
  g_autofree char *id = rn_printable (sample->id, FALSE);
  guint n_low = 0;

  for (guint i = 0; i < sample->boxes->len; i++)
    {
      const RnBrowseBox *box = &g_array_index (sample->boxes, RnBrowseBox, i);
      ClassStats *stats = &report->classes[box->label];
      float width = box->box[2] - box->box[0], height = box->box[3] - box->box[1];

      g_array_append_val (stats->widths, width);
      g_array_append_val (stats->heights, height);
      stats->n_anchors += box->n_anchors;
      stats->n_low += box->low;
      stats->n_none += box->n_anchors == 0;
      n_low += box->low;
    }
  g_print ("%-28s %5dx%-5d %5u %9d %8" G_GINT64_FORMAT " %5u\n", id, sample->width, sample->height,
           sample->boxes->len, sample->n_difficult, (gint64) sample->n_anchors, n_low);
  add_to_page (report, name, sample, n_low);
  report->n_shown++;
}

/* An image that cannot be read is named; the others are shown. FALSE: nothing more can be. */
static gboolean
show (Report *report, RnBrowse *browse, const GArray *indices, GError **error)
{
  g_print ("%-28s %11s %5s %9s %8s %5s\n", "image", "size", "boxes", "difficult", "anchors", "low");
  for (guint i = 0; i < indices->len; i++)
    {
      int64_t index = g_array_index (indices, int64_t, i);
      g_autofree char *name = picture_name (i + 1, rn_dataset_id (report->dataset, index));
      g_autofree char *path = g_build_filename (report->dir, name, NULL);
      g_autoptr (GError) local = NULL;
      const RnBrowseSample *sample = rn_browse_sample (browse, index, path, &local);

      if (sample != NULL)
        {
          add_sample (report, sample, name);
          continue;
        }
      if (local->domain != RN_DATA_ERROR)
        {
          g_propagate_error (error, g_steal_pointer (&local));
          return FALSE;
        }
      g_printerr ("%s; left out\n", local->message);
      report->n_failed++;
    }
  return TRUE;
}

/* ---- The summary ---- */

static int
compare_floats (gconstpointer a, gconstpointer b)
{
  float x = *(const float *) a, y = *(const float *) b;
  return (x > y) - (x < y);
}

/* The middle one, or the upper one of the two middle ones. */
static double
median (GArray *values)
{
  g_array_sort (values, compare_floats);
  return (double) g_array_index (values, float, values->len / 2);
}

static void
print_classes (const Report *report)
{
  int64_t n_boxes = 0, n_low = 0;

  g_print ("\n%-28s %6s %12s %12s %6s %6s\n", "class", "boxes", "median size", "anchors/box", "low", "none");
  for (int k = 0; k < rn_dataset_n_classes (report->dataset); k++)
    {
      const ClassStats *stats = &report->classes[k];
      g_autofree char *name = rn_printable (rn_dataset_class_name (report->dataset, k), FALSE);

      n_boxes += stats->widths->len;
      n_low += stats->n_low;
      if (stats->widths->len == 0)
        {
          g_print ("%-28s %6d\n", name, 0);
          continue;
        }
      g_autofree char *size = g_strdup_printf ("%.0fx%.0f", median (stats->widths), median (stats->heights));
      g_print ("%-28s %6u %12s %12.1f %6" G_GINT64_FORMAT " %6" G_GINT64_FORMAT "\n", name,
               stats->widths->len, size, (double) stats->n_anchors / stats->widths->len,
               (gint64) stats->n_low, (gint64) stats->n_none);
    }
  if (n_low > 0)
    g_print (
        "\nlow: %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT
        " boxes (marked ! in the pictures) have no anchor above pos_iou_thr and are trained on their "
        "best one only.\nMany of them: a larger img_scale, or scales and ratios of anchor_generator that "
        "fit the median sizes.\n",
        (gint64) n_low, (gint64) n_boxes);
}

static gboolean
write_page (const Report *report, GError **error)
{
  g_autofree char *path = g_build_filename (report->dir, "index.html", NULL);

  g_string_append (report->page, "</body></html>\n");
  return rn_atomic_file_save (path, report->page->str, report->page->len, error);
}

static void
report_init (Report *report, const RnDataset *dataset, const char *dir)
{
  report->dataset = dataset;
  report->dir = dir;
  report->page = g_string_new ("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>samples</title>"
                               "<style>body{font-family:sans-serif}figure{display:inline-block;margin:4px}"
                               "img{max-width:480px}figcaption{font-size:small}</style></head><body>\n");
  report->classes = g_new0 (ClassStats, rn_dataset_n_classes (dataset));
  for (int k = 0; k < rn_dataset_n_classes (dataset); k++)
    {
      report->classes[k].widths = g_array_new (FALSE, FALSE, sizeof (float));
      report->classes[k].heights = g_array_new (FALSE, FALSE, sizeof (float));
    }
}

static void
report_clear (Report *report)
{
  for (int k = 0; report->classes != NULL && k < rn_dataset_n_classes (report->dataset); k++)
    {
      g_array_unref (report->classes[k].widths);
      g_array_unref (report->classes[k].heights);
    }
  g_free (report->classes);
  if (report->page != NULL)
    g_string_free (report->page, TRUE);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Report, report_clear)

/* ---- The command ---- */

static gboolean
run (RnJob *job, const Options *options, guint *n_failed, GError **error)
{
  g_autofree char *dir = options->out != NULL ? g_strdup (options->out)
                                              : g_build_filename (job->config.work_dir, "browse", NULL);
  const RnBrowseOptions browse_options = { .epoch = (guint64) options->epoch, .anchors = options->anchors };
  g_autoptr (GArray) indices = g_array_new (FALSE, FALSE, sizeof (int64_t));
  g_auto (Report) report = { 0 };
  RnSplit split;

  job->data.on_error = RN_ON_ERROR_SKIP; /* to look at what is wrong is the purpose */
  if (!parse_split (options->split, &split, error) || !rn_job_open_data (job, split, error)
      || !rn_job_open_model (job, error))
    return FALSE;
  if (options->ids == NULL)
    take_first (job->samplers[split], browse_options.epoch, options->n, indices);
  else if (!find_ids (job->datasets[split], options->ids, indices, error))
    return FALSE;
  if (!rn_folder_make (dir, error))
    return FALSE;

  g_autoptr (RnBrowse) browse = rn_browse_new (job, split, &browse_options, error);
  report_init (&report, job->datasets[split], dir);
  if (browse == NULL || !show (&report, browse, indices, error) || !write_page (&report, error))
    return FALSE;
  print_classes (&report);
  g_print ("\n%u pictures: %s/index.html\n", report.n_shown, dir);
  *n_failed = report.n_failed;
  return TRUE;
}

int
rn_cmd_browse (int argc, char **argv)
{
  g_auto (Options) own = { .n = DEFAULT_N };
  const GOptionEntry entries[] = {
    { "out", 0, 0, G_OPTION_ARG_FILENAME, &own.out,
      "Folder of the pictures (default: browse in the work dir)", "DIR" },
    { "split", 0, 0, G_OPTION_ARG_STRING, &own.split, "train (default), val or test", "SPLIT" },
    { "n", 'n', 0, G_OPTION_ARG_INT, &own.n, "Samples, the first of the epoch (default 20)", "N" },
    { "epoch", 0, 0, G_OPTION_ARG_INT64, &own.epoch, "Epoch whose order and augmentations are shown (from 0)",
      "E" },
    { "ids", 0, 0, G_OPTION_ARG_STRING, &own.ids, "These images instead, separated by commas", "ID,ID" },
    { "anchors", 0, 0, G_OPTION_ARG_NONE, &own.anchors, "Draw the anchors that are matched to a box", NULL },
    { NULL },
  };
  const RnUsage usage = {
    .arguments = "CONFIG",
    .summary = "Writes pictures of what a training will see: images after all transforms, with their boxes; "
               "and how many anchors each box is matched to.",
    .examples = "  runner browse configs/retinanet_shapes.yaml\n"
                "  runner browse configs/retinanet_shapes.yaml --anchors -n 50 --epoch 3\n"
                "  runner browse configs/retinanet_shapes.yaml --split val --out /tmp/look\n",
    .groups = RN_OPTIONS_CONFIG | RN_OPTIONS_RUN,
    .entries = entries,
  };

  GError *error = NULL;
  guint n_failed = 0;
  g_auto (RnOptions) options = { 0 };
  if (!rn_options_parse (&usage, argc, argv, &options, &error))
    return rn_cli_fail (error);
  if (own.n < 1 || own.epoch < 0)
    {
      g_set_error (&error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, "-n is at least 1 and --epoch at least 0");
      return rn_cli_fail (error);
    }
  RnNode *root = rn_options_load (&options, &error);
  g_autoptr (RnJob) job = root != NULL ? rn_job_new_for_plan (root, &error) : NULL;
  if (job == NULL || !run (job, &own, &n_failed, &error))
    return rn_cli_fail (error);
  return n_failed == 0 ? 0 : 1;
}
