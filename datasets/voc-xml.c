#include "config.h"

#include "datasets/voc-xml.h"

#include "datasets/file.h"
#include "runner/base/error.h"

#include <math.h>
#include <string.h>
#include <libxml/xmlreader.h>

/* Larger numbers are damage: no image is that large. */
#define MAX_COORDINATE 1e6

/* annotation / object / bndbox / xmin: deeper elements (the parts of VOC's person layout) are not ours. */
#define MAX_DEPTH 4
#define MAX_TEXT 256 /* bytes of a text that counts */

static const char *const box_names[] = { "xmin", "ymin", "xmax", "ymax", NULL };

enum
{
  HAS_NAME = 1 << 4, /* bits 0 to 3: the four coordinates */
  HAS_ALL = (1 << 5) - 1,
  HAS_BOX = 1 << 5,   /* a bndbox began */
  HAS_OTHER = 1 << 6, /* a shape that is not read */
};

typedef struct
{
  xmlTextReaderPtr reader;
  RnVocAnnotation *annotation;
  const char *path[MAX_DEPTH]; /* names of the open elements, lent by the reader */
  RnVocObject object;          /* the open one */
  guint has;                   /* what of it was seen */
  GString *text;               /* of the innermost open element; comments and CDATA may cut it into pieces */
  char *fault;                 /* what libxml2 says is not well-formed, with its line */
} Parser;

void
rn_voc_xml_init (void)
{
  xmlInitParser ();
}

void
rn_voc_annotation_init (RnVocAnnotation *annotation)
{
  *annotation = (RnVocAnnotation){ .objects = g_array_new (FALSE, FALSE, sizeof (RnVocObject)) };
}

void
rn_voc_annotation_clear (RnVocAnnotation *annotation)
{
  g_clear_pointer (&annotation->objects, g_array_unref);
}

/* libxml2 reads ahead, so its own line is that of the last byte it took, not of the node. */
static int
line_of_node (const Parser *parser)
{
  xmlNodePtr node = xmlTextReaderCurrentNode (parser->reader);
  long line = node != NULL ? xmlGetLineNo (node) : 0;

  return line > 0 ? (int) line : xmlTextReaderGetParserLineNumber (parser->reader);
}

G_GNUC_PRINTF (3, 4) static gboolean fail (const Parser *parser, GError **error, const char *format, ...)
{
  g_autofree char *text = NULL;
  va_list args;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  rn_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "%d: %s", line_of_node (parser), text);
  return FALSE;
}

#if LIBXML_VERSION >= 21200
typedef const xmlError *Complaint;
#else
typedef xmlErrorPtr Complaint;
#endif

/* Keeps the first complaint. */
static void
take_complaint (void *data, Complaint complaint)
{
  Parser *parser = data;

  if (complaint->level >= XML_ERR_ERROR && parser->fault == NULL)
    {
      g_autofree char *text = g_utf8_make_valid (complaint->message != NULL ? complaint->message : "", -1);

      parser->fault = g_strdup_printf ("%d: not well-formed XML: %s", complaint->line, g_strchomp (text));
    }
}

/* Python's int (float (text)), which MMDetection uses. */
static gboolean
take_number (const Parser *parser, const char *text, double *value, GError **error)
{
  char *end;

  *value = g_ascii_strtod (text, &end);
  /* An x: C reads hexadecimal numbers, Python does not. */
  if (end == text || *end != '\0' || strpbrk (text, "xX") != NULL || !(fabs (*value) <= MAX_COORDINATE))
    return fail (parser, error, "\"%.40s\" is not a number between -1e6 and 1e6", text);
  *value = trunc (*value);
  return TRUE;
}

static gboolean
take_size (Parser *parser, const char *text, GError **error)
{
  RnVocAnnotation *annotation = parser->annotation;
  double value = 0; /* not given */

  if (*text != '\0' && !take_number (parser, text, &value, error))
    return FALSE;
  *(strcmp (parser->path[2], "width") == 0 ? &annotation->width : &annotation->height) = (int) MAX (value, 0);
  return TRUE;
}

static gboolean
take_coordinate (Parser *parser, const char *text, GError **error)
{
  double value;
  guint i = 0;

  while (strcmp (parser->path[3], box_names[i]) != 0)
    i++;
  if ((parser->has & 1u << i) != 0)
    return fail (parser, error, "a second <%s> in one <bndbox>", box_names[i]);
  if (!take_number (parser, text, &value, error))
    return FALSE;
  parser->object.box[i] = (float) (value - 1);
  parser->has |= 1u << i;
  return TRUE;
}

static gboolean
take_name (Parser *parser, const char *name, GError **error)
{
  if (*name == '\0' || g_strlcpy (parser->object.name, name, RN_VOC_NAME_SIZE) >= RN_VOC_NAME_SIZE)
    return fail (parser, error, "a class name (<name>) has 1 to %d bytes", RN_VOC_NAME_SIZE - 1);
  for (const char *c = name; *c != '\0'; c++)
    if (g_ascii_iscntrl (*c))
      return fail (parser, error, "a class name (<name>) with a line break or another control character");
  parser->has |= HAS_NAME;
  return TRUE;
}

static gboolean
take_difficult (Parser *parser, const char *text, GError **error)
{
  double value = 0;

  if (*text != '\0' && !take_number (parser, text, &value, error))
    {
      g_prefix_error (error, "<difficult> is 0 or 1: ");
      return FALSE;
    }
  parser->object.difficult = value != 0;
  return TRUE;
}

/* Whether the text of the element at @depth counts. */
static gboolean
has_meaning (const Parser *parser, int depth)
{
  static const char *const of_size[] = { "width", "height", NULL };
  static const char *const of_object[] = { "name", "difficult", NULL };
  const char *const *names = box_names;

  if (depth == 2)
    names = strcmp (parser->path[1], "size") == 0     ? of_size
            : strcmp (parser->path[1], "object") == 0 ? of_object
                                                      : NULL;
  else if (depth != 3 || strcmp (parser->path[1], "object") != 0 || strcmp (parser->path[2], "bndbox") != 0)
    names = NULL;
  return names != NULL && g_strv_contains (names, parser->path[depth]);
}

static gboolean
begin_object (Parser *parser, GError **error)
{
  memset (&parser->object, 0, sizeof parser->object);
  parser->has = 0;
  return !xmlTextReaderIsEmptyElement (parser->reader) || fail (parser, error, "an empty <object>");
}

static gboolean
begin_part (Parser *parser, const char *name, GError **error)
{
  gboolean is_box = strcmp (name, "bndbox") == 0;

  if ((is_box && (parser->has & HAS_BOX) != 0)
      || (strcmp (name, "name") == 0 && (parser->has & HAS_NAME) != 0))
    return fail (parser, error, "a second <%s> in one <object>", name);
  if (is_box)
    parser->has |= HAS_BOX;
  if (strcmp (name, "robndbox") == 0 || strcmp (name, "polygon") == 0)
    parser->has |= HAS_OTHER;
  return TRUE;
}

static gboolean
begin_element (Parser *parser, int depth, GError **error)
{
  const char *name = (const char *) xmlTextReaderConstLocalName (parser->reader);

  g_string_truncate (parser->text, 0);
  if (depth < MAX_DEPTH)
    parser->path[depth] = name;
  if (depth == 0 && strcmp (name, "annotation") != 0)
    return fail (parser, error, "the outermost element is <%.40s>, expected <annotation>", name);
  if (depth > 0 && has_meaning (parser, depth - 1))
    return fail (parser, error, "<%.40s> inside <%s>", name, parser->path[depth - 1]);
  if (depth == 1 && strcmp (name, "object") == 0)
    return begin_object (parser, error);
  if (depth == 2 && strcmp (parser->path[1], "object") == 0)
    return begin_part (parser, name, error);
  return TRUE;
}

static gboolean
end_object (Parser *parser, GError **error)
{
  if ((parser->has & HAS_NAME) == 0)
    return fail (parser, error, "an <object> lacks its <name>");
  if ((parser->has & HAS_ALL) != HAS_ALL)
    return fail (parser, error, "an <object> lacks its <bndbox>, or a part of it%s",
                 parser->has & HAS_OTHER ? "; rotated boxes and polygons are not read" : "");
  if (parser->annotation->objects->len >= RN_VOC_MAX_OBJECTS)
    return fail (parser, error, "more than %d objects", RN_VOC_MAX_OBJECTS);
  g_array_append_val (parser->annotation->objects, parser->object);
  return TRUE;
}

/* @depth: open elements above this one. */
static gboolean
end_element (Parser *parser, int depth, GError **error)
{
  const char *text = g_strstrip (parser->text->str);

  if (depth == 1 && strcmp (parser->path[1], "object") == 0)
    return end_object (parser, error);
  if (!has_meaning (parser, depth))
    return TRUE;
  if (depth == 3)
    return take_coordinate (parser, text, error);
  if (strcmp (parser->path[1], "size") == 0)
    return take_size (parser, text, error);
  return (strcmp (parser->path[2], "name") == 0 ? take_name : take_difficult) (parser, text, error);
}

/* @depth: open elements around the text. */
static gboolean
take_text (Parser *parser, int depth, GError **error)
{
  const char *text = (const char *) xmlTextReaderConstValue (parser->reader);

  if (!has_meaning (parser, depth - 1))
    return TRUE;
  if (xmlTextReaderNodeType (parser->reader) == XML_READER_TYPE_ENTITY_REFERENCE)
    return fail (parser, error, "<%.40s> holds an entity, and entities are not expanded",
                 parser->path[depth - 1]);
  if (parser->text->len + strlen (text) > MAX_TEXT)
    return fail (parser, error, "<%.40s> holds more than %d bytes", parser->path[depth - 1], MAX_TEXT);
  g_string_append (parser->text, text);
  return TRUE;
}

static gboolean
take_node (Parser *parser, GError **error)
{
  int depth = xmlTextReaderDepth (parser->reader);

  switch (xmlTextReaderNodeType (parser->reader))
    {
    case XML_READER_TYPE_ELEMENT:
      return begin_element (parser, depth, error);
    case XML_READER_TYPE_END_ELEMENT:
      return end_element (parser, depth, error);
    case XML_READER_TYPE_TEXT:
    case XML_READER_TYPE_CDATA:
    case XML_READER_TYPE_WHITESPACE:
    case XML_READER_TYPE_SIGNIFICANT_WHITESPACE:
    case XML_READER_TYPE_ENTITY_REFERENCE:
      return take_text (parser, depth, error);
    default:
      return TRUE;
    }
}

gboolean
rn_voc_xml_parse (const char *text, gsize size, RnVocAnnotation *annotation, GError **error)
{
  g_autoptr (GString) buffer = g_string_new (NULL);
  Parser parser = { .annotation = annotation, .text = buffer };
  gboolean ok = TRUE;
  int more = 1;

  annotation->width = annotation->height = 0;
  g_array_set_size (annotation->objects, 0);
  if (size > RN_VOC_MAX_XML)
    {
      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "1: larger than %d bytes", RN_VOC_MAX_XML);
      return FALSE;
    }
  /* Without XML_PARSE_NOENT and XML_PARSE_DTDLOAD entities stay unexpanded and no file is opened. */
  parser.reader = xmlReaderForMemory (text, (int) size, NULL, NULL,
                                      XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
  if (parser.reader == NULL)
    {
      g_set_error_literal (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "1: cannot be read as XML");
      return FALSE;
    }
  xmlTextReaderSetStructuredErrorHandler (parser.reader, take_complaint, &parser);
  while (ok && (more = xmlTextReaderRead (parser.reader)) == 1)
    ok = take_node (&parser, error);
  if (more < 0 && parser.fault != NULL)
    {
      rn_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "%s", parser.fault);
      ok = FALSE;
    }
  else if (more < 0)
    ok = fail (&parser, error, "not well-formed XML");
  xmlFreeTextReader (parser.reader);
  g_free (parser.fault);
  return ok;
}

gboolean
rn_voc_xml_parse_path (const char *path, RnVocAnnotation *annotation, GError **error)
{
  g_autofree char *text = NULL;
  gsize size;

  if (!rn_file_read (path, RN_VOC_MAX_XML, &text, &size, error))
    return FALSE;
  if (rn_voc_xml_parse (text, size, annotation, error))
    return TRUE;
  g_prefix_error (error, "%s:", path);
  return FALSE;
}
