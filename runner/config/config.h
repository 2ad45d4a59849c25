/*
 * config.h: from a YAML file to the tree that everything is built from.
 *
 * A file may name others (`_base_`), which it is merged over; `--set` changes come next; `${...}` references
 * are filled in last. The rules are MMCV's where they are sound: see load.c, merge.c, override.c, reference.c
 * and, for how scalars get their type, scalar.c. Every error is an RN_CONFIG_ERROR and starts with
 * "file:line:col:" where a file is to blame.
 */
#ifndef RUNNER_CONFIG_CONFIG_H
#define RUNNER_CONFIG_CONFIG_H

#include <glib.h>
#include <runner/node.h>

G_BEGIN_DECLS

/**
 * rn_config_load:
 * @path: a YAML file, at most 8 MiB
 * @overrides: (nullable): NULL-ended, the texts after `--set`, later ones win
 *
 * Returns: (transfer full): the merged and resolved map
 */
RnNode *rn_config_load (const char *path, const char *const *overrides, GError **error);
/* The same for @text; @name stands for the file in messages, and `_base_` is relative to its folder. */
RnNode *rn_config_load_text (const char *text, const char *name, const char *const *overrides,
                             GError **error);

/**
 * rn_config_set:
 * @root: a map
 * @dotted: "work_dir", "data.samples_per_gpu", "lr_config.step.-1"; missing maps on the way are made
 * @value: (transfer full): freed on failure too
 *
 * Puts a value of the program's own options into the tree.
 */
gboolean rn_config_set (RnNode *root, const char *dotted, RnNode *value, GError **error);

/* Changes a loaded tree by one text, as after --set. References (${...}) in it are not filled in. */
gboolean rn_config_override (RnNode *root, const char *text, GError **error);

/* Scalars for rn_config_set. @origin stands where others have file:line:col: "--work-dir". (transfer full) */
RnNode *rn_node_new_null (const char *origin);
RnNode *rn_node_new_bool (gboolean value, const char *origin);
RnNode *rn_node_new_int (gint64 value, const char *origin);
RnNode *rn_node_new_float (double value, const char *origin);
RnNode *rn_node_new_string (const char *value, const char *origin);

/* The file that the value was written in, as it was named; NULL for values of options and defaults. Lent. */
const char *rn_node_file (const RnNode *node);

RnNode *rn_node_copy (const RnNode *node); /* deep, without parent (transfer full) */
void rn_node_free (RnNode *node);
/*
 * Same kinds and values, maps in any order. An int never equals a float; NaN equals NaN. Origins do not
 * count.
 */
gboolean rn_node_equal (const RnNode *a, const RnNode *b);

/*
 * YAML that loads to an equal tree. With @origins, each line with a value ends in "# file:line:col".
 * (transfer full)
 */
char *rn_config_dump (const RnNode *node, gboolean origins);
/* The same on one line, without its end. (transfer full) */
char *rn_config_dump_line (const RnNode *node);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnNode, rn_node_free)

G_END_DECLS

#endif
