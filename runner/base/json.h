/* json.h: how a text is written in JSON, and what is asked of a text of JSON before it is read. */
#ifndef RUNNER_BASE_JSON_H
#define RUNNER_BASE_JSON_H

#include <glib.h>

G_BEGIN_DECLS

/* Appends @text in quotes. Invalid UTF-8 becomes U+FFFD: what we write must be JSON whatever a path or a
 * class is called. */
void rn_json_append_string (GString *json, const char *text);

#define RN_JSON_MAX_VALUES (1 << 22) /* of one text; json-glib takes some 80 bytes for each */

/*
 * RN_CHECKPOINT_ERROR_DAMAGED unless @text, not NUL-ended, is UTF-8, nests no deeper than @max_depth and has
 * no more than RN_JSON_MAX_VALUES: to be asked before json-glib, which recurses and takes forty times the
 * memory of the text.
 */
gboolean rn_json_check (const char *text, gsize size, int max_depth, GError **error);

/*
 * @text is one object of strings and integers alone: its members' names and texts. NULL with
 * RN_CHECKPOINT_ERROR_DAMAGED for anything else. (transfer full)
 */
GHashTable *rn_json_read_flat (const char *text, gsize size, GError **error);

G_END_DECLS

#endif
