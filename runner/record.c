#include "config.h"

#include "runner/record.h"

#include "runner/base/error.h"
#include "runner/base/json.h"

#include <json-glib/json-glib.h>
#include <math.h>
#include <string.h>

#define NON_FINITE "non_finite"
/* Of one state: many of them must fit the header of a checkpoint, and be read back. */
#define MAX_STATE_BYTES (16 << 20)

typedef enum
{
  INT,
  FLOAT,
  STRING,
  FLOATS,
} Kind;

typedef struct
{
  char *name;
  Kind kind;
  gint64 integer;
  double number;
  char *string;
  double *numbers; /* FLOATS */
  gsize n;
} Field;

struct _RnRecord
{
  GPtrArray *fields; /* of Field; a record has few, so they are searched in order */
};

static void
field_clear (Field *field)
{
  g_clear_pointer (&field->string, g_free);
  g_clear_pointer (&field->numbers, g_free);
  field->n = 0;
}

static void
field_free (gpointer data)
{
  Field *field = data;
  field_clear (field);
  g_free (field->name);
  g_free (field);
}

RnRecord *
rn_record_new (void)
{
  RnRecord *record = g_new0 (RnRecord, 1);
  record->fields = g_ptr_array_new_with_free_func (field_free);
  return record;
}

void
rn_record_free (RnRecord *record)
{
  if (record == NULL)
    return;
  g_ptr_array_unref (record->fields);
  g_free (record);
}

static Field *
find (const RnRecord *record, const char *name)
{
  for (guint i = 0; i < record->fields->len; i++)
    {
      Field *field = g_ptr_array_index (record->fields, i);
      if (strcmp (field->name, name) == 0)
        return field;
    }
  return NULL;
}

static Field *
find_kind (const RnRecord *record, const char *name, Kind kind)
{
  Field *field = find (record, name);
  return field != NULL && field->kind == kind ? field : NULL;
}

static Field *
reset (RnRecord *record, const char *name, Kind kind)
{
  Field *field = find (record, name);
  if (field == NULL)
    {
      field = g_new0 (Field, 1);
      field->name = g_strdup (name);
      g_ptr_array_add (record->fields, field);
    }
  field_clear (field);
  field->kind = kind;
  return field;
}

void
rn_record_set_int (RnRecord *record, const char *name, gint64 value)
{
  reset (record, name, INT)->integer = value;
}

void
rn_record_set_float (RnRecord *record, const char *name, double value)
{
  reset (record, name, FLOAT)->number = value;
}

void
rn_record_set_string (RnRecord *record, const char *name, const char *value)
{
  char *copy = g_strdup (value); /* @value may be the old one */
  reset (record, name, STRING)->string = copy;
}

void
rn_record_set_floats (RnRecord *record, const char *name, const double *values, gsize n)
{
  double *copy = n == 0 ? NULL : g_memdup2 (values, n * sizeof *values);
  Field *field = reset (record, name, FLOATS);
  field->numbers = copy;
  field->n = n;
}

guint
rn_record_size (const RnRecord *record)
{
  return record->fields->len;
}

const char *
rn_record_name (const RnRecord *record, guint i)
{
  return ((const Field *) g_ptr_array_index (record->fields, i))->name;
}

gboolean
rn_record_is_float (const RnRecord *record, const char *name)
{
  return find_kind (record, name, FLOAT) != NULL;
}

gint64
rn_record_int (const RnRecord *record, const char *name, gint64 deflt)
{
  const Field *field = find_kind (record, name, INT);
  return field != NULL ? field->integer : deflt;
}

double
rn_record_float (const RnRecord *record, const char *name, double deflt)
{
  const Field *field = find (record, name);
  if (field != NULL && field->kind == FLOAT)
    return field->number;
  if (field != NULL && field->kind == INT)
    return (double) field->integer;
  return deflt;
}

const char *
rn_record_string (const RnRecord *record, const char *name)
{
  const Field *field = find_kind (record, name, STRING);
  return field != NULL ? field->string : NULL;
}

const double *
rn_record_floats (const RnRecord *record, const char *name, gsize *n)
{
  const Field *field = find_kind (record, name, FLOATS);
  *n = field != NULL ? field->n : 0;
  return field != NULL ? field->numbers : NULL;
}

/* How values are written. */
typedef struct
{
  int digits;
  gboolean is_state; /* infinities come back; who reads it knows that null is NaN */
} Form;

static gboolean
append_number (GString *json, double value, const Form *form)
{
  if (form->is_state && isinf (value))
    {
      g_string_append (json, value > 0 ? "1e999" : "-1e999"); /* beyond a double: every parser's infinity */
      return TRUE;
    }
  if (!isfinite (value))
    {
      g_string_append (json, "null");
      return form->is_state;
    }
  char format[8], text[G_ASCII_DTOSTR_BUF_SIZE];
  g_snprintf (format, sizeof format, "%%.%dg", CLAMP (form->digits, 1, 17));
  g_ascii_formatd (text, sizeof text, format, value);
  g_string_append (json, text);
  /* A whole number keeps a point, so that it is read back as a float. */
  if (strpbrk (text, ".e") == NULL)
    g_string_append (json, ".0");
  return TRUE;
}

static gboolean
append_value (GString *json, const Field *field, const Form *form)
{
  gboolean finite = TRUE;

  switch (field->kind)
    {
    case INT:
      g_string_append_printf (json, "%" G_GINT64_FORMAT, field->integer);
      break;
    case FLOAT:
      finite = append_number (json, field->number, form);
      break;
    case STRING:
      rn_json_append_string (json, field->string);
      break;
    case FLOATS:
      g_string_append_c (json, '[');
      for (gsize i = 0; i < field->n; i++)
        {
          if (i > 0)
            g_string_append (json, ", ");
          finite &= append_number (json, field->numbers[i], form);
        }
      g_string_append_c (json, ']');
      break;
    }
  return finite;
}

static char *
to_json (const RnRecord *record, const Form *form)
{
  GString *json = g_string_new ("{");
  g_autoptr (GPtrArray) non_finite = g_ptr_array_new ();

  for (guint i = 0; i < record->fields->len; i++)
    {
      const Field *field = g_ptr_array_index (record->fields, i);
      if (i > 0)
        g_string_append (json, ", ");
      rn_json_append_string (json, field->name);
      g_string_append (json, ": ");
      if (!append_value (json, field, form))
        g_ptr_array_add (non_finite, field->name);
    }
  for (guint i = 0; i < non_finite->len; i++)
    {
      g_string_append (json, i == 0 ? ", \"" NON_FINITE "\": [" : ", ");
      rn_json_append_string (json, g_ptr_array_index (non_finite, i));
    }
  if (non_finite->len > 0)
    g_string_append_c (json, ']');
  g_string_append_c (json, '}');
  return g_string_free (json, FALSE);
}

char *
rn_record_to_json (const RnRecord *record, int digits)
{
  const Form form = { .digits = digits };
  return to_json (record, &form);
}

char *
rn_record_to_state (const RnRecord *record, GError **error)
{
  const Form form = { .digits = 17, .is_state = TRUE };
  gsize n = record->fields->len;

  for (guint i = 0; i < record->fields->len; i++)
    n += ((const Field *) g_ptr_array_index (record->fields, i))->n;
  g_autofree char *json = n <= RN_JSON_MAX_VALUES / 4 ? to_json (record, &form) : NULL;
  if (json != NULL && strlen (json) <= MAX_STATE_BYTES)
    return g_steal_pointer (&json);
  g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_WRITE,
               "%" G_GSIZE_FORMAT " values are more than a checkpoint takes (%d MiB of JSON)", n,
               MAX_STATE_BYTES >> 20);
  return NULL;
}

static gboolean
is_number (JsonNode *node)
{
  return JSON_NODE_HOLDS_VALUE (node)
         && (json_node_get_value_type (node) == G_TYPE_INT64
             || json_node_get_value_type (node) == G_TYPE_DOUBLE);
}

static gboolean
parse_floats (RnRecord *record, const char *name, JsonArray *array)
{
  guint n = json_array_get_length (array);
  g_autofree double *values = g_new (double, (gsize) n + 1);

  for (guint i = 0; i < n; i++)
    {
      JsonNode *node = json_array_get_element (array, i);
      if (JSON_NODE_HOLDS_NULL (node))
        values[i] = (double) NAN;
      else if (is_number (node))
        values[i] = json_node_get_double (node);
      else
        return FALSE;
    }
  rn_record_set_floats (record, name, values, n);
  return TRUE;
}

static gboolean
parse_field (RnRecord *record, const char *name, JsonNode *node)
{
  if (strcmp (name, NON_FINITE) == 0 && JSON_NODE_HOLDS_ARRAY (node))
    return TRUE;
  if (JSON_NODE_HOLDS_NULL (node))
    rn_record_set_float (record, name, (double) NAN);
  else if (JSON_NODE_HOLDS_ARRAY (node))
    return parse_floats (record, name, json_node_get_array (node));
  else if (!JSON_NODE_HOLDS_VALUE (node))
    return FALSE;
  else if (json_node_get_value_type (node) == G_TYPE_STRING)
    rn_record_set_string (record, name, json_node_get_string (node));
  else if (json_node_get_value_type (node) == G_TYPE_DOUBLE)
    rn_record_set_float (record, name, json_node_get_double (node));
  else if (json_node_get_value_type (node) == G_TYPE_INT64)
    rn_record_set_int (record, name, json_node_get_int (node));
  else
    return FALSE;
  return TRUE;
}

RnRecord *
rn_record_parse (const char *json, GError **error)
{
  g_autoptr (JsonParser) parser = json_parser_new ();
  g_autoptr (RnRecord) record = rn_record_new ();
  gsize size = strlen (json);

  if (!rn_json_check (json, size, 2, error))
    return NULL;
  g_autoptr (GError) parse_error = NULL;
  if (!json_parser_load_from_data (parser, json, (gssize) size, &parse_error))
    {
      rn_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED, "not JSON: %s",
                    parse_error->message);
      return NULL;
    }
  JsonNode *root = json_parser_get_root (parser);
  if (root == NULL || !JSON_NODE_HOLDS_OBJECT (root))
    {
      g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED, "not a JSON object");
      return NULL;
    }

  JsonObjectIter iter;
  const char *name;
  JsonNode *node;
  json_object_iter_init_ordered (&iter, json_node_get_object (root));
  while (json_object_iter_next_ordered (&iter, &name, &node))
    if (!parse_field (record, name, node))
      {
        rn_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED,
                      "\"%s\" has no value that a record can hold", name);
        return NULL;
      }
  return g_steal_pointer (&record);
}
