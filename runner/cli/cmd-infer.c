/* cmd-infer.c: `runner infer`: detections on image files, as pictures and as JSON. */
#define G_LOG_DOMAIN "rn-cli"
#include "config.h"

#include "runner/cli/commands.h"

#include <runner/engine.h>
#include "runner/base/atomic-file.h"
#include "runner/base/error.h"
#include "runner/base/folder.h"
#include "runner/base/log.h"
#include "runner/base/signals.h"
#include "runner/cli/common.h"
#include "runner/config/config.h"
#include "runner/draw/show.h"
#include "runner/image-files.h"
#include "runner/infer.h"
#include "runner/record.h"

#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

#define NOT_GIVEN G_MININT /* -1 is what somebody may type */

/* The command's own options. */
typedef struct
{
  char *out, *json;
  double score_thr;
  int max_per_img;
  gboolean recursive, no_ema;
} Options;

/* Where results go. */
typedef struct
{
  const Options *options;
  double score_thr;
  char *dir;          /* of the pictures */
  GHashTable *names;  /* of pictures, taken */
  GHashTable *inputs; /* identities of the image files, never to be written on */
  RnAtomicFile *json; /* NULL: none, or standard output */
  gboolean json_to_stdout;
  gint64 n_detections;
  guint n_failed;
} Output;

static void
output_clear (Output *output)
{
  g_free (output->dir);
  g_clear_pointer (&output->names, g_hash_table_unref);
  g_clear_pointer (&output->inputs, g_hash_table_unref);
  g_clear_pointer (&output->json, rn_atomic_file_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Output, output_clear)

/* ---- Options ---- */

/* What was asked for goes into the model's own rules, so that it can also be less than these let pass. */
static gboolean
apply_options (RnNode *root, const Options *options, GError **error)
{
  if (rn_node_get (root, "model") == NULL)
    return TRUE; /* which is an error of its own */
  if (options->score_thr != NOT_GIVEN
      && !rn_config_set (root, "model.test_cfg.score_thr",
                         rn_node_new_float (options->score_thr, "--score-thr"), error))
    return FALSE;
  return options->max_per_img == NOT_GIVEN
         || rn_config_set (root, "model.test_cfg.max_per_img",
                           rn_node_new_int (options->max_per_img, "--max-per-img"), error);
}

/* Of the file that @path leads to; NULL if it is not there. (transfer full) */
static char *
identity (const char *path)
{
  GStatBuf info;
  return g_stat (path, &info) == 0 ? g_strdup_printf ("%" G_GUINT64_FORMAT ":%" G_GUINT64_FORMAT,
                                                      (guint64) info.st_dev, (guint64) info.st_ino)
                                   : NULL;
}

static gboolean
is_input (const Output *output, const char *path)
{
  g_autofree char *key = identity (path);
  return key != NULL && g_hash_table_contains (output->inputs, key);
}

static gboolean
open_json (Output *output, const char *path, GError **error)
{
  output->json_to_stdout = g_strcmp0 (path, "-") == 0;
  if (path == NULL || output->json_to_stdout)
    return TRUE;
  if (is_input (output, path))
    {
      g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, "--json %s: that is one of the images",
                   path);
      return FALSE;
    }
  output->json = rn_atomic_file_new (path, error);
  return output->json != NULL;
}

static gboolean
open_output (Output *output, const GPtrArray *paths, GError **error)
{
  output->names = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  output->inputs = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (guint i = 0; i < paths->len; i++)
    {
      char *key = identity (g_ptr_array_index (paths, i));
      if (key != NULL)
        g_hash_table_add (output->inputs, key);
    }
  return rn_folder_make (output->dir, error) && open_json (output, output->options->json, error);
}

/* ---- Results ---- */

/* "3 RBC, 1 WBC". (transfer full) */
static char *
count_classes (const GArray *detections, const char *const *names)
{
  guint n_names = g_strv_length ((char **) names);
  g_autofree guint *counts = g_new0 (guint, n_names);
  g_autoptr (GString) text = g_string_new (NULL);

  for (guint i = 0; i < detections->len; i++)
    counts[g_array_index (detections, RnDetection, i).label]++;
  for (guint k = 0; k < n_names; k++)
    if (counts[k] > 0)
      g_string_append_printf (text, "%s%u %s", text->len > 0 ? ", " : "", counts[k], names[k]);
  return rn_printable (text->str, FALSE);
}

static char *
detection_json (const RnDetection *d, const char *const *names)
{
  const double box[] = { (double) d->box.x1, (double) d->box.y1, (double) d->box.x2, (double) d->box.y2 };
  g_autoptr (RnRecord) record = rn_record_new ();

  rn_record_set_floats (record, "bbox", box, G_N_ELEMENTS (box)); /* corners in pixels */
  rn_record_set_string (record, "category", names[d->label]);
  rn_record_set_int (record, "category_id", d->label);
  rn_record_set_float (record, "score", (double) d->score);
  return rn_record_to_json (record, 9);
}

static gboolean
write_json (Output *output, const RnInferImage *image, const char *picture, const GArray *detections,
            const char *const *names, GError **error)
{
  g_autofree char *path = g_utf8_make_valid (image->path, -1),
                  *picture_text = g_utf8_make_valid (picture, -1);
  g_autoptr (RnRecord) record = rn_record_new ();

  rn_record_set_string (record, "path", path);
  rn_record_set_string (record, "picture", picture_text);
  rn_record_set_int (record, "width", image->width);
  rn_record_set_int (record, "height", image->height);
  g_autofree char *head = rn_record_to_json (record, 9);
  g_autoptr (GString) line = g_string_new (head);
  g_string_truncate (line, line->len - 1); /* records do not nest, so its end waits for the list */
  g_string_append (line, ", \"detections\": [");
  for (guint i = 0; i < detections->len; i++)
    {
      g_autofree char *json = detection_json (&g_array_index (detections, RnDetection, i), names);
      g_string_append_printf (line, "%s%s", i > 0 ? ", " : "", json);
    }
  g_string_append (line, "]}\n");
  if (output->json != NULL)
    return rn_atomic_file_write (output->json, line->str, line->len, error);
  fwrite (line->str, 1, line->len, stdout); /* main looks whether it could be written */
  return TRUE;
}

/* Not one of the images, however the folders are linked. (transfer full) */
static char *
picture_path (Output *output, const char *image_path)
{
  g_autofree char *base = g_path_get_basename (image_path);
  char *dot = strrchr (base, '.');
  if (dot != NULL && dot != base)
    *dot = '\0';
  for (;;)
    {
      g_autofree char *name = rn_show_file_name (output->names, base);
      char *path = g_build_filename (output->dir, name, NULL);
      if (!is_input (output, path))
        return path;
      g_free (path);
    }
}

static void
drop_below (GArray *detections, double score_thr)
{
  guint n = 0; /* best first */
  while (n < detections->len && (double) g_array_index (detections, RnDetection, n).score > score_thr)
    n++;
  g_array_set_size (detections, n);
}

static gboolean
put_out (Output *output, const RnInfer *infer, const RnInferImage *image, GArray *detections, GError **error)
{
  const char *const *names = rn_infer_class_names (infer);
  g_autofree char *picture = picture_path (output, image->path);
  RnShowImage show = { .path = image->path,
                       .width = image->width,
                       .height = image->height,
                       .detections = detections,
                       .score_thr = output->score_thr,
                       .names = names };

  if (!rn_show_write (&show, picture, error)
      || ((output->json != NULL || output->json_to_stdout)
          && !write_json (output, image, picture, detections, names, error)))
    return FALSE;
  output->n_detections += detections->len;
  g_autofree char *path = rn_printable (image->path, FALSE), *to = rn_printable (picture, FALSE);
  g_autofree char *counts = count_classes (detections, names);
  rn_log_set_status (NULL);
  (output->json_to_stdout ? g_printerr : g_print) ("%s: %s -> %s\n", path,
                                                   detections->len > 0 ? counts : "nothing", to);
  return TRUE;
}

/* ---- The work ---- */

static void
show_progress (guint done, guint total, gint64 start_us)
{
  gint64 left = (g_get_monotonic_time () - start_us) / G_USEC_PER_SEC * (total - done) / MAX (done, 1);
  g_autofree char *eta = rn_format_duration ((double) left);
  g_autofree char *text = g_strdup_printf ("%u/%u images, eta: %s", done, total, eta);
  rn_log_set_status (done < total ? text : NULL);
}

/* FALSE without error when a signal came. An image that cannot be read is said and counted. */
static gboolean
run_all (RnInfer *infer, Output *output, GError **error)
{
  gint64 start_us = g_get_monotonic_time ();

  for (guint i = 0; i < rn_infer_size (infer); i++)
    {
      g_autoptr (GError) cause = NULL;
      g_autoptr (GArray) detections = NULL;
      if (rn_signals_pending () != 0)
        return FALSE;
      show_progress (i, rn_infer_size (infer), start_us);
      if ((detections = rn_infer_run (infer, i, &cause)) != NULL)
        {
          drop_below (detections, output->score_thr);
          put_out (output, infer, rn_infer_image (infer, i), detections, &cause);
        }
      if (cause == NULL)
        continue;
      rn_log_set_status (NULL);
      if (cause->domain != RN_DATA_ERROR)
        {
          g_propagate_error (error, g_steal_pointer (&cause));
          return FALSE;
        }
      g_autofree char *text = rn_printable (cause->message, FALSE);
      g_warning ("%s; left out", text);
      output->n_failed++;
    }
  rn_log_set_status (NULL);
  return TRUE;
}

static gboolean
run (RnNode *root, char **arguments, const Options *options, guint *n_failed, GError **error)
{
  g_autoptr (RnJob) job = rn_job_new (root, error);
  g_auto (Output) output = { .options = options };
  guint n_folders = 0;

  if (job == NULL)
    return FALSE;
  output.score_thr = options->score_thr != NOT_GIVEN ? options->score_thr : RN_SHOW_SCORE_THR;
  output.dir =
      options->out != NULL ? g_strdup (options->out) : g_build_filename (job->config.work_dir, "vis", NULL);
  g_autoptr (GPtrArray) paths = rn_image_files_find ((const char *const *) arguments + 1, options->recursive,
                                                     output.dir, &n_folders, error);
  if (paths == NULL)
    return FALSE;
  g_autoptr (RnInfer) infer = rn_infer_new (job, arguments[0], !options->no_ema, paths, error);
  if (infer == NULL || !open_output (&output, paths, error))
    return FALSE;
  rn_signals_install ();
  if (!run_all (infer, &output, error))
    {
      if (rn_signals_pending () != 0)
        g_message ("stopped by a signal%s", output.json != NULL ? "; the JSON file is not written" : "");
      return FALSE;
    }
  if (output.json != NULL && !rn_atomic_file_commit (output.json, error))
    return FALSE;

  *n_failed = n_folders + rn_infer_n_unreadable (infer) + output.n_failed;
  g_autofree char *dir = rn_printable (output.dir, FALSE);
  guint n = rn_infer_size (infer) - output.n_failed;
  g_message ("%u image%s, %" G_GINT64_FORMAT " detections with a score above %g; pictures in %s", n,
             n == 1 ? "" : "s", output.n_detections, output.score_thr, dir);
  if (*n_failed > 0)
    g_printerr ("%s: %u files or folders could not be read; they are named above\n", g_get_prgname (),
                *n_failed);
  return TRUE;
}

static gboolean
check_options (const Options *options, GError **error)
{
  if (options->score_thr != NOT_GIVEN && !(options->score_thr >= 0 && options->score_thr <= 1))
    g_set_error_literal (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, "--score-thr: expected 0 to 1");
  else if (options->max_per_img != NOT_GIVEN && options->max_per_img < 1)
    g_set_error_literal (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, "--max-per-img: expected at least 1");
  else
    return TRUE;
  return FALSE;
}

static void
options_clear (Options *options)
{
  g_free (options->out);
  g_free (options->json);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Options, options_clear)

int
rn_cmd_infer (int argc, char **argv)
{
  g_auto (Options) own = { .score_thr = NOT_GIVEN, .max_per_img = NOT_GIVEN };
  const GOptionEntry entries[] = {
    { "out", 0, 0, G_OPTION_ARG_FILENAME, &own.out, "Where the pictures go (vis in the work dir)", "DIR" },
    { "json", 0, 0, G_OPTION_ARG_FILENAME, &own.json,
      "Write a line of JSON for each image; -: to standard output", "FILE" },
    { "score-thr", 0, 0, G_OPTION_ARG_DOUBLE, &own.score_thr,
      "Leave out detections that do not score more (0.3)", "S" },
    { "max-per-img", 0, 0, G_OPTION_ARG_INT, &own.max_per_img,
      "At most so many detections of one image (model.test_cfg.max_per_img)", "N" },
    { "no-ema", 0, 0, G_OPTION_ARG_NONE, &own.no_ema, RN_NO_EMA_HELP, NULL },
    { "recursive", 0, 0, G_OPTION_ARG_NONE, &own.recursive, "Look into subfolders, too", NULL },
    { NULL },
  };
  const RnUsage usage = {
    .arguments = "CONFIG CHECKPOINT IMAGE|DIR...",
    .summary = "Finds objects on photographs, without annotations: JPEG and PNG files, or all of a folder.",
    .examples =
        "  runner infer configs/retinanet_shapes.yaml work_dirs/retinanet_shapes/latest.safetensors photos/\n"
        "  runner infer CONFIG CHECKPOINT a.jpg b.png --out found --json found.jsonl --score-thr 0.5\n",
    .n_min = 2,
    .n_max = -1,
    .groups = RN_OPTIONS_CONFIG | RN_OPTIONS_RUN,
    .entries = entries,
  };
  g_auto (RnOptions) options = { 0 };
  GError *error = NULL;
  guint n_failed = 0;

  if (!rn_options_parse (&usage, argc, argv, &options, &error) || !check_options (&own, &error))
    return rn_cli_fail (error);
  g_autoptr (RnNode) root = rn_options_load (&options, &error);
  if (root != NULL && apply_options (root, &own, &error)
      && run (g_steal_pointer (&root), options.arguments, &own, &n_failed, &error))
    return n_failed > 0 ? 1 : 0;
  if (error != NULL)
    return rn_cli_fail (error);
  return 128 + rn_signals_pending ();
}
