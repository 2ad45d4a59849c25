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

enum
{
  HAS_NAME = 1 << 4, /* bits 0 to 3: the four coordinates */
  HAS_ALL = (1 << 5) - 1,
};

typedef struct
{
  xmlTextReaderPtr reader;
  RnVocAnnotation *annotation;
  const char *path[MAX_DEPTH]; /* names of the open elements, lent by the reader */
  RnVocObject object;          /* the open one */
  guint has;                   /* what of it was seen */
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

G_GNUC_PRINTF (3, 4) static gboolean fail (const Parser *parser, GError **error, const char *format, ...)
{
  g_autofree char *text = NULL;
  va_list args;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "%d: %s",
               xmlTextReaderGetParserLineNumber (parser->reader), text);
  return FALSE;
}

/* Python's int (float (text)), which MMDetection uses. */
static gboolean
take_number (const Parser *parser, const char *text, double *value, GError **error)
{
  char *end;

  *value = g_ascii_strtod (text, &end);
  while (g_ascii_isspace (*end))
    end++;
  /* An x: C reads hexadecimal numbers, Python does not. */
  if (end == text || *end != '\0' || strpbrk (text, "xX") != NULL || !(fabs (*value) <= MAX_COORDINATE))
    return fail (parser, error, "\"%.40s\" is not a number between -1e6 and 1e6", text);
  *value = trunc (*value);
  return TRUE;
}

static gboolean
take_size (Parser *parser, const char *text, GError **error)
{
  gboolean is_width = strcmp (parser->path[2], "width") == 0;
  double value;

  if (!is_width && strcmp (parser->path[2], "height") != 0)
    return TRUE;
  if (!take_number (parser, text, &value, error))
    return FALSE;
  *(is_width ? &parser->annotation->width : &parser->annotation->height) = (int) MAX (value, 0);
  return TRUE;
}

static gboolean
take_coordinate (Parser *parser, const char *text, GError **error)
{
  static const char *const names[] = { "xmin", "ymin", "xmax", "ymax" };
  double value;

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (strcmp (parser->path[3], names[i]) == 0)
      {
        if (!take_number (parser, text, &value, error))
          return FALSE;
        parser->object.box[i] = (float) (value - 1);
        parser->has |= 1u << i;
      }
  return TRUE;
}

static gboolean
take_object_text (Parser *parser, const char *text, GError **error)
{
  double value;

  if (strcmp (parser->path[2], "difficult") == 0)
    {
      if (!take_number (parser, text, &value, error))
        return FALSE;
      parser->object.difficult = value != 0;
    }
  else if (strcmp (parser->path[2], "name") == 0)
    {
      g_autofree char *name = g_strstrip (g_strdup (text));

      if (*name == '\0' || g_strlcpy (parser->object.name, name, RN_VOC_NAME_SIZE) >= RN_VOC_NAME_SIZE)
        return fail (parser, error, "a class name has 1 to %d bytes", RN_VOC_NAME_SIZE - 1);
      parser->has |= HAS_NAME;
    }
  return TRUE;
}

/* @depth: number of open elements. */
static gboolean
take_text (Parser *parser, int depth, const char *text, GError **error)
{
  if (depth == 3 && strcmp (parser->path[1], "size") == 0)
    return take_size (parser, text, error);
  if (depth == 3 && strcmp (parser->path[1], "object") == 0)
    return take_object_text (parser, text, error);
  if (depth == 4 && strcmp (parser->path[1], "object") == 0 && strcmp (parser->path[2], "bndbox") == 0)
    return take_coordinate (parser, text, error);
  return TRUE;
}

static gboolean
begin_element (Parser *parser, int depth, GError **error)
{
  const char *name = (const char *) xmlTextReaderConstLocalName (parser->reader);

  if (depth < MAX_DEPTH)
    parser->path[depth] = name;
  if (depth == 0 && strcmp (name, "annotation") != 0)
    return fail (parser, error, "the outermost element is <%.40s>, expected <annotation>", name);
  if (depth == 1 && strcmp (name, "object") == 0)
    {
      memset (&parser->object, 0, sizeof parser->object);
      parser->has = 0;
      if (xmlTextReaderIsEmptyElement (parser->reader))
        return fail (parser, error, "an empty <object>");
    }
  return TRUE;
}

static gboolean
end_element (Parser *parser, int depth, GError **error)
{
  if (depth != 1 || strcmp (parser->path[1], "object") != 0)
    return TRUE;
  if (parser->has != HAS_ALL)
    return fail (parser, error, "an <object> lacks its %s",
                 parser->has & HAS_NAME ? "<bndbox>, or a part of it" : "<name>");
  if (parser->annotation->objects->len >= RN_VOC_MAX_OBJECTS)
    return fail (parser, error, "more than %d objects", RN_VOC_MAX_OBJECTS);
  g_array_append_val (parser->annotation->objects, parser->object);
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
      return take_text (parser, depth, (const char *) xmlTextReaderConstValue (parser->reader), error);
    default:
      return TRUE;
    }
}

gboolean
rn_voc_xml_parse (const char *text, gsize size, RnVocAnnotation *annotation, GError **error)
{
  Parser parser = { .annotation = annotation };
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
  parser.reader =
      xmlReaderForMemory (text, (int) size, NULL, NULL,
                          XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_NOBLANKS);
  if (parser.reader == NULL)
    {
      g_set_error_literal (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "1: cannot be read as XML");
      return FALSE;
    }
  while (ok && (more = xmlTextReaderRead (parser.reader)) == 1)
    ok = take_node (&parser, error);
  if (more < 0)
    ok = fail (&parser, error, "not well-formed XML");
  xmlFreeTextReader (parser.reader);
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
