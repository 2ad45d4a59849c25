/* node.h: read access to the configuration tree. Every node knows the file, line and column that it came
 * from. */
#ifndef RUNNER_NODE_H
#define RUNNER_NODE_H

#include <glib.h>
#include <runner/export.h>

G_BEGIN_DECLS

typedef struct _RnNode RnNode;

typedef enum
{
  RN_NODE_NULL,
  RN_NODE_BOOL,
  RN_NODE_INT,
  RN_NODE_FLOAT,
  RN_NODE_STRING,
  RN_NODE_LIST,
  RN_NODE_MAP,
} RnNodeKind;

RN_API RnNodeKind rn_node_kind (const RnNode *node);
/* TRUE for a null, and for @node NULL: there is nothing. */
static inline gboolean
rn_node_is_null (const RnNode *node)
{
  return node == NULL || rn_node_kind (node) == RN_NODE_NULL;
}

RN_API gboolean rn_node_as_bool (const RnNode *node);      /* BOOL only */
RN_API gint64 rn_node_as_int (const RnNode *node);         /* INT only */
RN_API double rn_node_as_float (const RnNode *node);       /* INT or FLOAT */
RN_API const char *rn_node_as_string (const RnNode *node); /* STRING only; lent */

RN_API guint rn_node_size (const RnNode *node);                  /* items of a list or map, 0 for others */
RN_API const RnNode *rn_node_item (const RnNode *list, guint i); /* list item or map value, lent */
RN_API const char *rn_node_key (const RnNode *map, guint i);     /* key of a map's entry, lent */
RN_API const RnNode *rn_node_get (const RnNode *map, const char *key); /* NULL if absent or not a map */
RN_API const RnNode *rn_node_path (
    const RnNode *root, const char *dotted); /* "model.backbone.depth", "data.train.0"; NULL if absent */

/* "file:line:col", or "--set a.b", "--seed", "default" for nodes that no file wrote. Lent. */
RN_API const char *rn_node_origin (const RnNode *node);
/* Dotted path from the root, for messages. Lent. */
RN_API const char *rn_node_dotted (const RnNode *node);

/* Sets @error to "ORIGIN: PATH: text" in the domain RN_CONFIG_ERROR. Always returns FALSE. */
RN_API gboolean rn_node_error (const RnNode *node, GError **error, const char *format, ...)
    G_GNUC_PRINTF (3, 4);

G_END_DECLS

#endif
