/* schema.h: fills a component's struct from a map of the configuration, by its table of keys. */
#ifndef RUNNER_CONFIG_SCHEMA_H
#define RUNNER_CONFIG_SCHEMA_H

#include <glib.h>
#include <runner/keys.h>
#include "runner/base/registry.h"

G_BEGIN_DECLS

/*
 * Parses @map (NULL: all defaults) into @instance. @skip is a NULL-ended list of key names that somebody else
 * reads (may be NULL); the key "type" is always skipped. Unknown keys, wrong types and values out of bounds
 * are RN_CONFIG_ERRORs that start with "file:line:col: path:" and name the nearest valid key. On failure
 * @instance is cleared.
 */
gboolean rn_keys_parse (const RnKeySpec *keys, const RnNode *map, gpointer instance, const char *const *skip,
                        GError **error);
/* Frees what rn_keys_parse stored in @instance and zeroes these fields. */
void rn_keys_clear (const RnKeySpec *keys, gpointer instance);

/*
 * Looks up `type:` of @map in @registry (the message of an unknown type names the nearest and lists all) and
 * parses the other keys into a new, zeroed instance of component->instance_size. @deflt_type is used when the
 * map has no `type` (may be NULL: then it is required).
 */
gpointer rn_component_new (RnRegistry *registry, const RnNode *map, const char *deflt_type,
                           const char *const *skip, const RnComponent **component, GError **error);
void rn_component_free (const RnComponent *component, gpointer instance);

/*
 * Bytes of a key of type NODE: a size, or a number above 0. @example: what the message offers.
 * RN_CONFIG_ERROR with the place of @node.
 */
gboolean rn_node_read_size (const RnNode *node, const char *example, guint64 *bytes, GError **error);

/* Documentation of a table, for `runner hooks NAME`: key, type, default, bounds, help; one line a key.
 * (transfer full) */
char *rn_keys_describe (const RnKeySpec *keys);

G_END_DECLS

#endif
