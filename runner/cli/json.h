/* json.h: members of the JSON that commands print. */
#ifndef RUNNER_CLI_JSON_H
#define RUNNER_CLI_JSON_H

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

void rn_json_add_int (JsonBuilder *builder, const char *name, gint64 value);
void rn_json_add_float (JsonBuilder *builder, const char *name, double value); /* null if not finite */
void rn_json_add_string (JsonBuilder *builder, const char *name, const char *value);
void rn_json_add_bool (JsonBuilder *builder, const char *name, gboolean value);
/* @values: NULL-ended; NULL is an empty list. */
void rn_json_add_strings (JsonBuilder *builder, const char *name, const char *const *values);
/* Prints the finished value, indented, to stdout. */
void rn_json_print (JsonBuilder *builder);

G_END_DECLS

#endif
