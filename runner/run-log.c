#include "config.h"

#include "runner/run-log.h"

#include "runner/base/error.h"
#include "runner/base/open-file.h"
#include "runner/record.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX ".log.json"
#define MAX_LINE (1 << 20) /* bytes; the first line holds the whole configuration */
#define MAX_SERIES 256
#define MAX_NOTES 5 /* of one file */

/* ---- Series ---- */

static void
series_free (gpointer data)
{
  RnLogSeries *series = data;
  g_free (series->name);
  g_array_unref (series->points);
  g_free (series);
}

const RnLogSeries *
rn_log_find (const GPtrArray *series, const char *name)
{
  for (guint i = 0; i < series->len; i++)
    {
      const RnLogSeries *one = g_ptr_array_index (series, i);
      if (strcmp (one->name, name) == 0)
        return one;
    }
  return NULL;
}

gboolean
rn_log_is_loss (const char *name)
{
  return strstr (name, "loss") != NULL && strcmp (name, "loss_scale") != 0;
}

gboolean
rn_log_is_score (const char *name)
{
  static const char *const others[] = { "epoch", "n_images", "n_batches", "time", NULL };
  return !g_strv_contains (others, name) && !g_str_has_suffix (name, "_time") && !rn_log_is_loss (name);
}

/* NULL: there are too many already. */
static RnLogSeries *
get_series (GPtrArray *all, const char *name)
{
  RnLogSeries *series = (RnLogSeries *) rn_log_find (all, name);
  if (series != NULL || all->len >= MAX_SERIES)
    return series;
  series = g_new0 (RnLogSeries, 1);
  series->name = g_strdup (name);
  series->points = g_array_new (FALSE, FALSE, sizeof (RnLogPoint));
  g_ptr_array_add (all, series);
  return series;
}

/* Takes away what lies after @iter. */
static void
cut_series (GPtrArray *all, gint64 iter)
{
  for (guint i = 0; i < all->len; i++)
    {
      GArray *points = ((RnLogSeries *) g_ptr_array_index (all, i))->points;
      guint n = 0;
      for (guint k = 0; k < points->len; k++)
        if (g_array_index (points, RnLogPoint, k).iter <= iter)
          g_array_index (points, RnLogPoint, n++) = g_array_index (points, RnLogPoint, k);
      g_array_set_size (points, n);
    }
}

static int
compare_points (const void *pa, const void *pb)
{
  gint64 a = ((const RnLogPoint *) pa)->iter, b = ((const RnLogPoint *) pb)->iter;
  return (a > b) - (a < b);
}

/* Sorts by iteration; of points at the same one the last to come stays. The sort is stable. */
static void
finish_series (GPtrArray *all)
{
  for (guint i = all->len; i-- > 0;)
    {
      GArray *points = ((RnLogSeries *) g_ptr_array_index (all, i))->points;
      guint n = 0;

      g_array_sort (points, compare_points);
      for (guint k = 0; k < points->len; k++)
        {
          RnLogPoint point = g_array_index (points, RnLogPoint, k);
          if (n > 0 && g_array_index (points, RnLogPoint, n - 1).iter == point.iter)
            n--;
          g_array_index (points, RnLogPoint, n++) = point;
        }
      g_array_set_size (points, n);
      if (n == 0)
        g_ptr_array_remove_index (all, i);
    }
}

/* ---- One file ---- */

typedef struct
{
  RnRunLog *log;
  const char *path;
  gint64 line;
  guint n_notes;
  gint64 start_iter; /* where the run began or was taken up; -1: it does not say */
  gboolean has_data; /* since then */
  gint64 last_iter;  /* of the training line before */
} Reader;

/* Whatever is in it, in a name of a file for one, may be printed. @text: taken over. */
static void
add_note (RnRunLog *log, char *text)
{
  g_ptr_array_add (log->notes, rn_printable (text, FALSE));
  g_free (text);
}

static void note (Reader *reader, const char *format, ...) G_GNUC_PRINTF (2, 3);

static void
note (Reader *reader, const char *format, ...)
{
  va_list args;

  if (++reader->n_notes > MAX_NOTES)
    return;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  add_note (reader->log, g_strdup_printf ("%s:%" G_GINT64_FORMAT ": %s", reader->path, reader->line, text));
}

/* Whatever follows belongs to a run that begins at iteration @iter; one file may hold several, one behind the
 * other. */
static void
begin_run (Reader *reader, gint64 iter)
{
  reader->start_iter = iter;
  reader->has_data = FALSE;
  reader->last_iter = -1;
}

static void
read_meta (Reader *reader, const RnRecord *record)
{
  RnRunLog *log = reader->log;
  gint64 max_iters = rn_record_int (record, "max_iters", 0);
  const char *started = rn_record_string (record, "started");

  begin_run (reader, rn_record_int (record, "iter", -1));
  if (max_iters > 0)
    log->max_iters = max_iters;
  if (log->started == NULL && started != NULL)
    log->started = rn_printable (started, FALSE);
}

/* The first line with numbers: from here on this run replaces the ones before. */
static void
begin_data (Reader *reader)
{
  RnRunLog *log = reader->log;
  gint64 start = reader->start_iter;

  reader->has_data = TRUE;
  if (start >= 0)
    {
      gboolean is_new = start == 0 && log->train->len + log->val->len > 0;
      if (is_new)
        note (reader, "the run starts anew here; what earlier logs say is left out");
      cut_series (log->train, is_new ? -1 : start);
      cut_series (log->val, is_new ? -1 : start);
      if (is_new || log->first_iter < 0 || start < log->first_iter)
        log->first_iter = start;
    }
}

static void
read_numbers (Reader *reader, const RnRecord *record, GPtrArray *all)
{
  gint64 iter = rn_record_int (record, "iter", -1);

  if (iter < 0)
    {
      note (reader, "left out: it has no \"iter\"");
      return;
    }
  if (!reader->has_data)
    begin_data (reader);
  if (all == reader->log->train)
    {
      if (iter < reader->last_iter)
        note (reader,
              "iteration %" G_GINT64_FORMAT " comes after %" G_GINT64_FORMAT
              " in one file: is it a log of MMCV, whose iterations begin again in each epoch?",
              iter, reader->last_iter);
      reader->last_iter = iter;
    }
  for (guint i = 0; i < rn_record_size (record); i++)
    {
      const char *name = rn_record_name (record, i);
      /* Asked with two defaults: what is no number gives both of them. */
      if (strcmp (name, "iter") == 0
          || (rn_record_float (record, name, 0) == 0 && rn_record_float (record, name, 1) == 1))
        continue;
      g_autofree char *shown = rn_printable (name, FALSE); /* it will be printed */
      RnLogSeries *series = get_series (all, shown);
      if (series == NULL)
        {
          note (reader, "\"%s\" is left out: there are more than %d names", shown, MAX_SERIES);
          break;
        }
      double value = rn_record_float (record, name, 0);
      RnLogPoint point = { iter, isfinite (value) ? value : (double) NAN };
      g_array_append_val (series->points, point);
    }
}

static void
read_line (Reader *reader, const char *text, gsize size, gboolean is_complete)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnRecord) record = NULL;

  if (memchr (text, '\0', size) != NULL)
    {
      note (reader, "left out: there are zero bytes in it");
      return;
    }
  if (strspn (text, " \t\r") == size)
    return;
  record = rn_record_parse (text, &error);
  if (record == NULL)
    {
      note (reader, is_complete ? "left out: %s" : "left out, as it is cut off at the end of the file: %s",
            error->message);
      return;
    }
  const char *mode = rn_record_string (record, "mode");
  if (g_strcmp0 (mode, "meta") == 0)
    read_meta (reader, record);
  else if (g_strcmp0 (mode, "resume") == 0)
    begin_run (reader, rn_record_int (record, "iter", -1));
  else if (g_strcmp0 (mode, "train") == 0)
    read_numbers (reader, record, reader->log->train);
  else if (g_strcmp0 (mode, "val") == 0)
    read_numbers (reader, record, reader->log->val);
  else
    note (reader, "left out: its \"mode\" is not meta, resume, train or val");
}

/* Lines of any length; those of more than MAX_LINE bytes are passed over. FALSE with errno. */
static gboolean
read_lines (Reader *reader, FILE *stream)
{
  g_autoptr (GString) line = g_string_new (NULL);
  gboolean is_long = FALSE;
  int c = EOF;

  do
    {
      c = getc_unlocked (stream);
      if (c != '\n' && c != EOF)
        {
          is_long |= line->len >= MAX_LINE;
          if (!is_long)
            g_string_append_c (line, (char) c);
          continue;
        }
      reader->line++;
      if (is_long)
        note (reader, "left out: it is longer than 1 MiB");
      else if (line->len > 0)
        read_line (reader, line->str, line->len, c == '\n');
      g_string_truncate (line, 0);
      is_long = FALSE;
    }
  while (c != EOF);
  return !ferror (stream);
}

static gboolean
file_error (const char *path, const char *what, GError **error)
{
  g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_MISSING, "%s: %s", path, what);
  return FALSE;
}

/* (transfer full) */
static FILE *
open_log (const char *path, GError **error)
{
  int fd = rn_open_regular (path, NULL);
  FILE *stream = fd >= 0 ? fdopen (fd, "r") : NULL;

  if (stream == NULL)
    {
      file_error (path, rn_open_problem (errno), error);
      if (fd >= 0)
        close (fd);
    }
  return stream;
}

static gboolean
read_file (RnRunLog *log, const char *path, GError **error)
{
  Reader reader = { .log = log, .path = path, .start_iter = -1, .last_iter = -1 };
  FILE *stream = open_log (path, error);

  if (stream == NULL)
    return FALSE;
  gboolean is_ok = read_lines (&reader, stream);
  if (!is_ok)
    file_error (path, g_strerror (errno), error);
  else
    log->n_files++;
  fclose (stream);
  if (reader.n_notes > MAX_NOTES)
    add_note (log, g_strdup_printf ("%s: %u more notes", path, reader.n_notes - MAX_NOTES));
  return is_ok;
}

/* ---- All files ---- */

typedef struct
{
  char *path, *start; /* time stamp: of the first line, else of the name */
} LogFile;

static void
log_file_free (gpointer data)
{
  LogFile *file = data;
  g_free (file->path);
  g_free (file->start);
  g_free (file);
}

static int
compare_files (const void *pa, const void *pb)
{
  const LogFile *a = *(const LogFile *const *) pa, *b = *(const LogFile *const *) pb;
  int order = strcmp (a->start, b->start);
  return order != 0 ? order : strcmp (a->path, b->path);
}

/* What the first line says; NULL if it says nothing. (transfer full) */
static char *
read_start (const char *path)
{
  FILE *stream = open_log (path, NULL);
  g_autoptr (GString) line = g_string_new (NULL);

  if (stream == NULL)
    return NULL;
  for (int c; (c = getc_unlocked (stream)) != EOF && c != '\n' && c != '\0' && line->len < MAX_LINE;)
    g_string_append_c (line, (char) c);
  fclose (stream);
  g_autoptr (RnRecord) record = rn_record_parse (line->str, NULL);
  return record != NULL ? g_strdup (rn_record_string (record, "started")) : NULL;
}

/* The logs of folder @path in their order; NULL when it is no folder. (transfer full) of LogFile */
static GPtrArray *
list_logs (const char *path)
{
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  GPtrArray *files;

  if (dir == NULL)
    return NULL;
  files = g_ptr_array_new_with_free_func (log_file_free);
  for (const char *name; (name = g_dir_read_name (dir)) != NULL;)
    {
      g_autofree char *full = g_build_filename (path, name, NULL);
      if (!g_str_has_suffix (name, SUFFIX) || !g_file_test (full, G_FILE_TEST_IS_REGULAR))
        continue;
      LogFile *file = g_new0 (LogFile, 1);
      file->start = read_start (full);
      if (file->start == NULL)
        file->start = g_strndup (name, strlen (name) - strlen (SUFFIX));
      file->path = g_steal_pointer (&full);
      g_ptr_array_add (files, file);
    }
  g_ptr_array_sort (files, compare_files);
  return files;
}

/* A folder in @path that has logs, for somebody who named the one above. (transfer full), or NULL */
static char *
find_below (const char *path)
{
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);

  for (const char *name; dir != NULL && (name = g_dir_read_name (dir)) != NULL;)
    {
      g_autofree char *full = g_build_filename (path, name, NULL);
      g_autoptr (GPtrArray) files = list_logs (full);
      if (files != NULL && files->len > 0)
        return g_steal_pointer (&full);
    }
  return NULL;
}

static gboolean
read_folder (RnRunLog *log, const char *path, const GPtrArray *files, GError **error)
{
  if (files->len == 0)
    {
      g_autofree char *below = find_below (path);
      g_autofree char *text = g_strdup_printf (
          "no file *" SUFFIX " in this folder; `runner train` writes one into its work dir%s%s",
          below != NULL ? ". There is one in " : "", below != NULL ? below : "");
      return file_error (path, text, error);
    }
  for (guint i = 0; i < files->len; i++)
    {
      g_autoptr (GError) cause = NULL;
      if (!read_file (log, ((const LogFile *) g_ptr_array_index (files, i))->path, &cause))
        add_note (log, g_strdup (cause->message));
      if (i == files->len - 1 && log->n_files == 0)
        {
          g_propagate_error (error, g_steal_pointer (&cause));
          return FALSE;
        }
    }
  return TRUE;
}

RnRunLog *
rn_run_log_read (const char *path, GError **error)
{
  g_autoptr (RnRunLog) log = g_new0 (RnRunLog, 1);
  g_autoptr (GPtrArray) files = list_logs (path);

  log->path = g_strdup (path);
  g_autofree char *full = g_canonicalize_filename (path, NULL); /* "." has a name, too */
  log->name = g_path_get_basename (full);
  log->first_iter = -1;
  log->train = g_ptr_array_new_with_free_func (series_free);
  log->val = g_ptr_array_new_with_free_func (series_free);
  log->notes = g_ptr_array_new_with_free_func (g_free);
  if (files != NULL ? !read_folder (log, path, files, error) : !read_file (log, path, error))
    return NULL;
  finish_series (log->train);
  finish_series (log->val);
  log->first_iter = MAX (log->first_iter, 0);
  return g_steal_pointer (&log);
}

void
rn_run_log_free (RnRunLog *log)
{
  if (log == NULL)
    return;
  g_free (log->path);
  g_free (log->name);
  g_free (log->started);
  g_clear_pointer (&log->train, g_ptr_array_unref);
  g_clear_pointer (&log->val, g_ptr_array_unref);
  g_clear_pointer (&log->notes, g_ptr_array_unref);
  g_free (log);
}
