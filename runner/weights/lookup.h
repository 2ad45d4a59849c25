/*
 * lookup.h: where the weights lie that a configuration names.
 *
 * Nothing is downloaded. "torchvision://NAME" stands for NAME.safetensors, NAME.pth or NAME-HASH of either in
 * the folders of $RN_WEIGHTS (separated by colons), in ./weights, or in torch's own cache, in this order. So
 * does a relative path that is not there.
 */
#ifndef RUNNER_WEIGHTS_LOOKUP_H
#define RUNNER_WEIGHTS_LOOKUP_H

#include <runner/node.h>

G_BEGIN_DECLS

/*
 * The file that @node, a string, names; says which, where that was a choice. Errors: RN_CONFIG_ERROR_VALUE
 * with the line, the places that were tried, how to get the file, and @instead, which says what to do without
 * it. (transfer full)
 */
char *rn_weights_find (const RnNode *node, const char *instead, GError **error);

/* Whether rn_weights_find would find the file, with its errors; says nothing. */
gboolean rn_weights_exist (const RnNode *node, const char *instead, GError **error);

G_END_DECLS

#endif
