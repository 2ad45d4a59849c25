/* json.h: how a text is written in JSON. */
#ifndef RUNNER_BASE_JSON_H
#define RUNNER_BASE_JSON_H

#include <glib.h>

G_BEGIN_DECLS

/* Appends @text in quotes. Invalid UTF-8 becomes U+FFFD: what we write must be JSON whatever a path or a
 * class is called. */
void rn_json_append_string (GString *json, const char *text);

G_END_DECLS

#endif
