/* voc-xml.h: reads one annotation file of Pascal VOC's format. */
#ifndef RUNNER_DATASETS_VOC_XML_H
#define RUNNER_DATASETS_VOC_XML_H

#include <glib.h>

G_BEGIN_DECLS

#define RN_VOC_NAME_SIZE 64      /* bytes of a class name, NUL included */
#define RN_VOC_MAX_OBJECTS 65535 /* per image */
#define RN_VOC_MAX_XML (8 << 20) /* bytes of a file */

typedef struct
{
  char name[RN_VOC_NAME_SIZE];
  float box[4]; /* x1 y1 x2 y2: the file's numbers cut to integers, minus 1 */
  gboolean difficult;
} RnVocObject;

typedef struct
{
  int width, height; /* of `size`; 0: not given */
  GArray *objects;   /* RnVocObject, in the order of the file */
} RnVocAnnotation;

/* Before the first thread parses. May be called again. */
void rn_voc_xml_init (void);

void rn_voc_annotation_init (RnVocAnnotation *annotation);
void rn_voc_annotation_clear (RnVocAnnotation *annotation);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (RnVocAnnotation, rn_voc_annotation_clear)

/*
 * Parses @size bytes of @text into @annotation, which is emptied first. No entity is expanded, nothing is
 * fetched. Errors: RN_DATA_ERROR_FORMAT, starting with the line number ("12: ...").
 */
gboolean rn_voc_xml_parse (const char *text, gsize size, RnVocAnnotation *annotation, GError **error);
/* The same for a file; messages start with "path:line:". RN_DATA_ERROR_MISSING if there is none. */
gboolean rn_voc_xml_parse_path (const char *path, RnVocAnnotation *annotation, GError **error);

G_END_DECLS

#endif
