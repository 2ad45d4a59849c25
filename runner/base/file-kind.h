/* file-kind.h: what a file is, told by its first bytes, for messages about files that somebody gave by
 * mistake. */
#ifndef RUNNER_BASE_FILE_KIND_H
#define RUNNER_BASE_FILE_KIND_H

#include <glib.h>

G_BEGIN_DECLS

#define RN_FILE_KIND_BYTES 512 /* that are worth looking at */

typedef enum
{
  RN_FILE_UNKNOWN,
  RN_FILE_EMPTY,
  RN_FILE_TEXT,  /* of no known format: it may be YAML */
  RN_FILE_IMAGE, /* that a viewer would show */
  RN_FILE_OTHER,
} RnFileKind;

/* @head: the first @n bytes of the file, as many as there are. @what becomes "a GIF image" and the like; NULL
 * for RN_FILE_UNKNOWN. */
RnFileKind rn_file_kind (const guint8 *head, gsize n, const char **what);

G_END_DECLS

#endif
