#include "config.h"

#include "tests/runner/chrome-trace.h"

#include <json-glib/json-glib.h>
#include <math.h>
#include <string.h>

static void
span_free (gpointer data)
{
  ChromeSpan *span = data;
  g_free (span->name);
  g_free (span->category);
  g_free (span->stage);
  g_free (span->scope);
  g_free (span->kernel);
  g_free (span->shapes);
  g_free (span->file);
  g_free (span);
}

/* Asserts that @object has @names, separated by spaces, and nothing else. */
static void
assert_members (JsonObject *object, const char *names)
{
  g_auto (GStrv) wanted = g_strsplit (names, " ", -1);

  g_assert_cmpuint (json_object_get_size (object), ==, g_strv_length (wanted));
  for (char **name = wanted; *name != NULL; name++)
    if (!json_object_has_member (object, *name))
      g_error ("there is no member \"%s\"", *name);
}

static const char *
get_string (JsonObject *object, const char *name)
{
  g_assert_cmpint ((int) json_node_get_value_type (json_object_get_member (object, name)), ==, G_TYPE_STRING);
  return json_object_get_string_member (object, name);
}

static gint64
get_int (JsonObject *object, const char *name)
{
  g_assert_cmpint ((int) json_node_get_value_type (json_object_get_member (object, name)), ==, G_TYPE_INT64);
  return json_object_get_int_member (object, name);
}

/* Microseconds with three digits behind the point are exact to half of 2^-52 of them: whole nanoseconds come
 * back for a hundred days. */
static gint64
get_ns (JsonObject *object, const char *name)
{
  double us = json_object_get_double_member (object, name);

  g_assert_cmpint ((int) json_node_get_value_type (json_object_get_member (object, name)), ==, G_TYPE_DOUBLE);
  g_assert_cmpfloat (us, >=, 0);
  return (gint64) llround (us * 1000);
}

static char *
get_arg (JsonObject *args, const char *name)
{
  return json_object_has_member (args, name) ? g_strdup (get_string (args, name)) : NULL;
}

static void
read_span (ChromeTrace *trace, JsonObject *event)
{
  assert_members (event, "name ph pid tid ts dur cat args");
  JsonObject *args = json_object_get_object_member (event, "args");
  ChromeSpan *span = g_new0 (ChromeSpan, 1);

  span->name = g_strdup (get_string (event, "name"));
  span->category = g_strdup (get_string (event, "cat"));
  span->thread = get_int (event, "tid");
  span->start = get_ns (event, "ts");
  span->end = span->start + get_ns (event, "dur");
  span->stage = get_arg (args, "stage");
  span->scope = get_arg (args, "scope");
  span->kernel = get_arg (args, "kernel");
  span->shapes = get_arg (args, "shapes");
  span->file = get_arg (args, "file");
  g_ptr_array_add (trace->spans, span);
}

static void
read_counter (ChromeTrace *trace, JsonObject *event)
{
  assert_members (event, "name ph pid tid ts args");
  const char *name = get_string (event, "name");
  JsonObject *args = json_object_get_object_member (event, "args");

  assert_members (args, "value");
  g_assert_cmpfloat (json_object_get_double_member (args, "value"), >=, 0);
  get_ns (event, "ts");
  gpointer n = g_hash_table_lookup (trace->counters, name);
  g_hash_table_replace (trace->counters, g_strdup (name), GUINT_TO_POINTER (GPOINTER_TO_UINT (n) + 1));
}

static void
read_metadata (ChromeTrace *trace, JsonObject *event)
{
  assert_members (event, "name ph pid tid args");
  const char *name = get_string (event, "name");
  JsonObject *args = json_object_get_object_member (event, "args");

  assert_members (args, "name");
  if (strcmp (name, "thread_name") == 0)
    {
      g_assert_cmpint (get_int (event, "tid"), ==, trace->thread_names->len);
      g_ptr_array_add (trace->thread_names, g_strdup (get_string (args, "name")));
    }
  else
    g_assert_cmpstr (name, ==, "process_name");
}

static void
read_event (ChromeTrace *trace, JsonObject *event)
{
  const char *phase = get_string (event, "ph");

  g_assert_cmpint (get_int (event, "pid"), ==, 1);
  if (strcmp (phase, "X") == 0)
    read_span (trace, event);
  else if (strcmp (phase, "C") == 0)
    read_counter (trace, event);
  else if (strcmp (phase, "M") == 0)
    read_metadata (trace, event);
  else
    {
      g_assert_cmpstr (phase, ==, "i");
      assert_members (event, "name ph pid tid ts s");
      g_assert_cmpstr (get_string (event, "s"), ==, "t");
      get_ns (event, "ts");
      g_ptr_array_add (trace->marks, g_strdup (get_string (event, "name")));
    }
}

/* In each thread, a span that begins inside another one ends inside it. */
static void
assert_nesting (const ChromeTrace *trace, gint64 thread)
{
  g_autoptr (GArray) open = g_array_new (FALSE, FALSE, sizeof (gint64)); /* their ends */
  gint64 last = 0;

  for (guint i = 0; i < trace->spans->len; i++)
    {
      const ChromeSpan *span = g_ptr_array_index (trace->spans, i);
      if (span->thread != thread)
        continue;
      g_assert_cmpint (span->start, >=, last);
      last = span->start;
      while (open->len > 0 && g_array_index (open, gint64, open->len - 1) <= span->start)
        g_array_set_size (open, open->len - 1);
      if (open->len > 0)
        g_assert_cmpint (span->end, <=, g_array_index (open, gint64, open->len - 1));
      g_array_append_val (open, span->end);
    }
}

ChromeTrace *
chrome_trace_read (const char *path)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (JsonParser) parser = json_parser_new ();
  g_autofree char *text = NULL;
  gsize size;
  ChromeTrace *trace = g_new0 (ChromeTrace, 1);

  g_assert_true (g_file_get_contents (path, &text, &size, &error));
  g_assert_true (g_utf8_validate_len (text, size, NULL));
  for (gsize i = 0; i < size; i++) /* which json-glib lets pass, and JSON does not */
    g_assert_true ((guchar) text[i] >= 0x20 || text[i] == '\n');
  json_parser_load_from_data (parser, text, (gssize) size, &error);
  g_assert_no_error (error);
  JsonObject *root = json_node_get_object (json_parser_get_root (parser));
  assert_members (root, "displayTimeUnit otherData traceEvents");
  trace->spans = g_ptr_array_new_with_free_func (span_free);
  trace->counters = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  trace->marks = g_ptr_array_new_with_free_func (g_free);
  trace->thread_names = g_ptr_array_new_with_free_func (g_free);
  trace->n_dropped = get_int (json_object_get_object_member (root, "otherData"), "dropped_events");

  JsonArray *events = json_object_get_array_member (root, "traceEvents");
  for (guint i = 0; i < json_array_get_length (events); i++)
    read_event (trace, json_array_get_object_element (events, i));
  for (guint i = 0; i < trace->spans->len; i++)
    g_assert_cmpint (((const ChromeSpan *) g_ptr_array_index (trace->spans, i))->thread, <,
                     trace->thread_names->len);
  for (guint thread = 0; thread < trace->thread_names->len; thread++)
    assert_nesting (trace, thread);
  return trace;
}

void
chrome_trace_free (ChromeTrace *trace)
{
  g_ptr_array_unref (trace->spans);
  g_ptr_array_unref (trace->marks);
  g_ptr_array_unref (trace->thread_names);
  g_hash_table_unref (trace->counters);
  g_free (trace);
}

static gboolean
matches (const ChromeSpan *span, const char *category, const char *name)
{
  return (category == NULL || strcmp (span->category, category) == 0)
         && (name == NULL || strcmp (span->name, name) == 0);
}

guint
chrome_trace_count (const ChromeTrace *trace, const char *category, const char *name)
{
  guint n = 0;
  for (guint i = 0; i < trace->spans->len; i++)
    n += matches (g_ptr_array_index (trace->spans, i), category, name);
  return n;
}

const ChromeSpan *
chrome_trace_find (const ChromeTrace *trace, const char *category, const char *name)
{
  for (guint i = 0; i < trace->spans->len; i++)
    if (matches (g_ptr_array_index (trace->spans, i), category, name))
      return g_ptr_array_index (trace->spans, i);
  g_error ("there is no %s %s", category, name);
}
