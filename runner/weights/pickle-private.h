/* pickle-private.h: between the stack machine (pickle.c), its values (pickle-value.c) and the meaning of
 * globals (pickle-globals.c). */
#ifndef RUNNER_WEIGHTS_PICKLE_PRIVATE_H
#define RUNNER_WEIGHTS_PICKLE_PRIVATE_H

#include "runner/weights/pickle.h"

G_BEGIN_DECLS

typedef struct
{
  RnPickle *pickle;
  GHashTable *storages; /* key -> place in pickle->storages */
  guint n_copies_left;  /* of items from one container into another */
} RnPickleBuilder;

RnPickle *rn_pickle_new (void); /* without a root */
RnPickleValue *rn_pickle_value_new (RnPickle *pickle, RnPickleKind kind);
void rn_pickle_append (RnPickleValue *container, RnPickleValue *item);

/* FALSE: not on the list. */
gboolean rn_pickle_find_global (const char *module, const char *name, RnPickleGlobal *global);

/* The functions below give NULL and a text in @problem (transfer full) for what they do not understand. */

/* @callable (*@args), by the callable's role. */
RnPickleValue *rn_pickle_call (RnPickleBuilder *builder, const RnPickleValue *callable,
                               const RnPickleValue *args, char **problem);
/* The storage that a persistent id describes. */
RnPickleValue *rn_pickle_persistent (RnPickleBuilder *builder, const RnPickleValue *id, char **problem);

G_END_DECLS

#endif
