/* cudnn-json.h: members of JSON, none of which can be relied on: NULL or FALSE where it is not there or has
 * another type. */
#ifndef TESTS_GPU_SIM_CUDNN_JSON_H
#define TESTS_GPU_SIM_CUDNN_JSON_H

#include "tests/gpu/sim/cudnn-internal.h"

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* (transfer full), NULL: it is not a JSON object. */
JsonNode *sim_json_parse (const char *text, int64_t length);

/* @object may be NULL: then it has none. */
JsonNode *sim_json_member (JsonObject *object, const char *name, GType type);
gboolean sim_json_integer (JsonObject *object, const char *name, int64_t *value);
const char *sim_json_string (JsonObject *object, const char *name);
JsonObject *sim_json_object (JsonObject *object, const char *name);
JsonArray *sim_json_array (JsonObject *object, const char *name);
JsonObject *sim_json_element (JsonArray *array, guint i);
/* How many: at most CUDNN_DIM_MAX; -1: it is no list of integers. */
int sim_json_integers (JsonObject *object, const char *name, int64_t *values);

void sim_json_append_integers (GString *json, const char *name, const int64_t *values, int n);

/* Reads a device, and writes it in the order of the library; cudnn-profiles.c. */
cudnnStatus_t sim_read_profile (JsonObject *object, SimProfile *profile);

G_END_DECLS

#endif
