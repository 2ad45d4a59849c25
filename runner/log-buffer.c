#include "config.h"

#include "runner/log-buffer.h"

#include "runner/record.h"

#include <math.h>
#include <string.h>

typedef struct
{
  gint64 iter;
  double value;
} Entry;

typedef struct
{
  char *name;
  Entry *ring;
  gint64 head, count; /* of the oldest entry; entries */
  gboolean is_latest; /* the last value stands for the mean */
} Window;

struct _RnLogBuffer
{
  gint64 capacity; /* entries of each ring */
  GPtrArray *windows;
  guint next;  /* window that the next name is compared with first; at most their number */
  guint place; /* of the next new one, or beyond the end */
};

static void
window_free (gpointer data)
{
  Window *window = data;
  g_free (window->name);
  g_free (window->ring);
  g_free (window);
}

RnLogBuffer *
rn_log_buffer_new (void)
{
  RnLogBuffer *buffer = g_new0 (RnLogBuffer, 1);
  buffer->capacity = 1;
  buffer->place = G_MAXUINT;
  buffer->windows = g_ptr_array_new_with_free_func (window_free);
  return buffer;
}

void
rn_log_buffer_free (RnLogBuffer *buffer)
{
  if (buffer == NULL)
    return;
  g_ptr_array_unref (buffer->windows);
  g_free (buffer);
}

void
rn_log_buffer_reserve (RnLogBuffer *buffer, gint64 n_iters)
{
  g_return_if_fail (buffer->windows->len == 0);
  buffer->capacity = MAX (buffer->capacity, MIN (n_iters, RN_LOG_MAX_ITERS));
}

static const Entry *
entry_at (const RnLogBuffer *buffer, const Window *window, gint64 i)
{
  return &window->ring[(window->head + i) % buffer->capacity];
}

/* -1 if there is none. Names come in the same order in each iteration: the search begins behind the last one
 * found. */
static int
find_window (const RnLogBuffer *buffer, const char *name, guint first)
{
  guint n = buffer->windows->len;

  for (guint k = 0; k < n; k++)
    {
      guint i = first + k < n ? first + k : first + k - n;
      if (strcmp (((const Window *) g_ptr_array_index (buffer->windows, i))->name, name) == 0)
        return (int) i;
    }
  return -1;
}

static Window *
get_window (RnLogBuffer *buffer, const char *name)
{
  int found = find_window (buffer, name, buffer->next);

  if (found < 0)
    {
      Window *window = g_new0 (Window, 1);
      window->name = g_strdup (name);
      window->ring = g_new (Entry, buffer->capacity);
      found = (int) MIN (buffer->windows->len, buffer->place);
      g_ptr_array_insert (buffer->windows, found, window);
      buffer->place += buffer->place < G_MAXUINT;
    }
  buffer->next = (guint) found + 1;
  return g_ptr_array_index (buffer->windows, (guint) found);
}

static void
push (RnLogBuffer *buffer, Window *window, gint64 iter, double value)
{
  if (window->count == buffer->capacity)
    {
      window->head = (window->head + 1) % buffer->capacity;
      window->count--;
    }
  Entry *entry = &window->ring[(window->head + window->count++) % buffer->capacity];
  entry->iter = iter;
  entry->value = value;
}

void
rn_log_buffer_push (RnLogBuffer *buffer, const char *name, gint64 iter, double value)
{
  push (buffer, get_window (buffer, name), iter, value);
}

void
rn_log_buffer_set_place (RnLogBuffer *buffer, guint place)
{
  buffer->place = place;
}

void
rn_log_buffer_push_latest (RnLogBuffer *buffer, const char *name, gint64 iter, double value)
{
  Window *window = get_window (buffer, name);
  window->is_latest = TRUE;
  push (buffer, window, iter, value);
}

gboolean
rn_log_buffer_is_latest (const RnLogBuffer *buffer, const char *name)
{
  int found = find_window (buffer, name, 0);
  return found >= 0 && ((const Window *) g_ptr_array_index (buffer->windows, (guint) found))->is_latest;
}

/* Over the iterations [@end - @n_iters, @end), from the oldest on; of a count its last value. NAN if there is
 * none. */
static gboolean
window_mean (const RnLogBuffer *buffer, const Window *window, gint64 end, gint64 n_iters, double *mean)
{
  gint64 first = window->count, n = 0;
  double sum = 0, last = NAN;

  while (first > 0 && entry_at (buffer, window, first - 1)->iter >= end - n_iters)
    first--;
  for (gint64 i = first; i < window->count; i++)
    {
      const Entry *entry = entry_at (buffer, window, i);
      if (entry->iter >= end)
        break;
      sum += entry->value;
      last = entry->value;
      n++;
    }
  *mean = n == 0 || window->is_latest ? last : sum / (double) n;
  return n > 0;
}

void
rn_log_buffer_foreach (const RnLogBuffer *buffer, gint64 end, gint64 n_iters, RnLogFunc func,
                       gpointer user_data)
{
  for (guint i = 0; i < buffer->windows->len; i++)
    {
      const Window *window = g_ptr_array_index (buffer->windows, i);
      double mean;
      if (window_mean (buffer, window, end, n_iters, &mean))
        func (window->name, mean, user_data);
    }
}

double
rn_log_buffer_mean (const RnLogBuffer *buffer, const char *name, gint64 end, gint64 n_iters)
{
  int found = find_window (buffer, name, 0);
  double mean = NAN;

  if (found >= 0)
    window_mean (buffer, g_ptr_array_index (buffer->windows, (guint) found), end, n_iters, &mean);
  return mean;
}

guint
rn_log_buffer_size (const RnLogBuffer *buffer)
{
  return buffer->windows->len;
}

const char *
rn_log_buffer_name (const RnLogBuffer *buffer, guint i)
{
  return ((const Window *) g_ptr_array_index (buffer->windows, i))->name;
}

RnRecord *
rn_log_buffer_save (const RnLogBuffer *buffer, guint i)
{
  const Window *window = g_ptr_array_index (buffer->windows, i);
  g_autofree double *iters = g_new (double, window->count), *values = g_new (double, window->count);

  for (gint64 k = 0; k < window->count; k++)
    {
      iters[k] = (double) entry_at (buffer, window, k)->iter; /* exact below 2^53 */
      values[k] = entry_at (buffer, window, k)->value;
    }
  RnRecord *record = rn_record_new ();
  rn_record_set_floats (record, "iters", iters, (gsize) window->count);
  rn_record_set_floats (record, "values", values, (gsize) window->count);
  if (window->is_latest)
    rn_record_set_int (record, "latest", 1);
  return record;
}

void
rn_log_buffer_load (RnLogBuffer *buffer, const char *name, const RnRecord *window)
{
  gsize n_iters, n_values;
  const double *iters = rn_record_floats (window, "iters", &n_iters);
  const double *values = rn_record_floats (window, "values", &n_values);

  for (gsize i = 0; i < MIN (n_iters, n_values); i++)
    if (iters[i] >= 0 && iters[i] < 0x1p53)
      rn_log_buffer_push (buffer, name, (gint64) iters[i], values[i]);
  if (rn_record_int (window, "latest", 0) != 0)
    get_window (buffer, name)->is_latest = TRUE;
}
