/* node-private.h: how the configuration tree is built and changed. For runner/config only. */
#ifndef RUNNER_CONFIG_NODE_PRIVATE_H
#define RUNNER_CONFIG_NODE_PRIVATE_H

#include <glib.h>
#include "runner/base/error.h"
#include "runner/config/config.h"

G_BEGIN_DECLS

/*
 * Limits of a whole load, so that no file can exhaust memory or stack: levels of a tree (with --set: twice as
 * many); values after aliases and references are expanded, where 64 bytes of text count as one more; bytes of
 * a key, which escaped and quoted must fit the 1,024 characters of YAML's simple keys; bytes of a text.
 */
#define RN_NODE_MAX_DEPTH 100
#define RN_NODE_BUDGET 1000000
#define RN_NODE_MAX_KEY 200
#define RN_NODE_MAX_TEXT (64 << 10)

typedef enum
{
  RN_NODE_RAW,      /* a text may hold references */
  RN_NODE_BUSY,     /* being resolved: meeting it again is a cycle */
  RN_NODE_RESOLVED, /* final, with all below it */
} RnNodeState;

struct _RnNode
{
  RnNodeKind kind;
  RnNodeState state;
  union
  {
    gboolean truth;
    gint64 integer;
    double real;
    char *string;
    GPtrArray *items; /* list and map, owned nodes */
  } value;
  GHashTable *index; /* map: key -> node, both lent by the nodes */
  char *key;         /* in the parent, if that is a map */
  RnNode *parent;
  GRefString *file; /* interned while it is in use; if line is 0, the whole origin */
  int line, column; /* from 1; of the key for what stands in a map */
};

RnNode *rn_node_new (const char *file, int line, int column); /* null */

/* Turns a null into a scalar or an empty container. */
void rn_node_become_string (RnNode *node, const char *text);
void rn_node_become_list (RnNode *node);
void rn_node_become_map (RnNode *node);
/* Back to null. */
void rn_node_reset (RnNode *node);
/*
 * Moves value and state (and the origin, if wanted) of @from, which is left null, to @node, whose own value
 * goes.
 */
void rn_node_move (RnNode *node, RnNode *from, gboolean with_origin);
void rn_node_set_origin (RnNode *node, const RnNode *like);
/* Gives a null the type that plain @text has in YAML. NULL, or what is wrong. */
const char *rn_node_become_plain (RnNode *node, const char *text);

/* Adds a null with the origin of @like, and lends it. The key must be new. */
RnNode *rn_node_append (RnNode *list, const RnNode *like);
RnNode *rn_node_insert (RnNode *map, const char *key, const RnNode *like);
/* Takes @child out of its list or map and frees it. */
void rn_node_remove (RnNode *child);

/* Map value by key, or list item by index, where -1 is the last; NULL if there is none. */
RnNode *rn_node_child (const RnNode *node, const char *name);
/* End of a message: "; did you mean "x"?" with the nearest of NULL-ended @names, or "". (transfer full) */
char *rn_hint (const char *word, const char *const *names);
/* The same with the keys of @map, which may be anything. */
char *rn_node_hint (const RnNode *map, const char *key);
const char *rn_node_kind_name (RnNodeKind kind); /* "a map" */

/*
 * Deep copy of at most @height levels, or NULL when there are more or *@budget runs out.
 * Each node copied takes its rn_node_cost from the budget.
 */
RnNode *rn_node_copy_within (const RnNode *node, int height, gint64 *budget);
gint64 rn_node_cost (const RnNode *node);
int rn_node_depth (const RnNode *node); /* 0 for the root */

/* rn_node_error with a code of RnConfigError. Always FALSE. */
gboolean rn_node_fail (const RnNode *node, RnConfigError code, GError **error, const char *format, ...)
    G_GNUC_PRINTF (4, 5);

/* yaml.c. With @flow, only what fits a command line: no block maps or lists, and nodes know just @name. */
RnNode *rn_yaml_parse (const char *text, gsize length, const char *name, gboolean flow, gint64 *budget,
                       GError **error);

/* merge.c: moves @over into @base, directives applied. @over is left in pieces. */
gboolean rn_merge (RnNode *base, RnNode *over, GError **error);
/*
 * Moves what @next has into @base, both bases of one file. Different values are an error, or the later one
 * wins.
 */
gboolean rn_merge_bases (RnNode *base, RnNode *next, gboolean later_wins, GError **error);
gboolean rn_is_directive (const char *key); /* _name_ */

/*
 * reference.c. First stage, file by file: ${file.dir}, ${file.name}, ${file.stem}, ${_base_.a.b}; @bases may
 * be NULL.
 */
gboolean rn_reference_expand_file (RnNode *root, const RnNode *bases, const char *path, gint64 *budget,
                                   GError **error);
/* Second stage, on the merged tree: ${a.b} and ${env:NAME:default}. */
gboolean rn_reference_resolve (RnNode *root, gint64 *budget, GError **error);

/* override.c: one text of --set. */
gboolean rn_override_apply (RnNode *root, const char *text, gint64 *budget, GError **error);

/* dump.c: a scalar as YAML text. (transfer full) */
char *rn_node_scalar_text (const RnNode *node);

G_END_DECLS

#endif
