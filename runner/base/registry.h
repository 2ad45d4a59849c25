/*
 * registry.h: one mechanism for everything that a `type:` key can name: hooks, models, backbones, transforms,
 * ...
 */
#ifndef RUNNER_BASE_REGISTRY_H
#define RUNNER_BASE_REGISTRY_H

#include <glib.h>
#include <runner/keys.h>

G_BEGIN_DECLS

/*
 * The head of every component descriptor. A family (RnBackboneDesc, RnHookDesc, ...) has it as its first
 * member.
 */
typedef struct
{
  const char *name;       /* the value of `type:`, MMDetection's name where the meaning is the same */
  const char *summary;    /* one line */
  gsize instance_size;    /* of the struct that the keys fill */
  const RnKeySpec *keys;  /* NULL: it has none */
} RnComponent;

typedef struct _RnRegistry RnRegistry;

/*
 * The registry of a family, made on first use: "backbone", "hook", ... The same name gives the same registry.
 * Main thread only.
 */
RnRegistry *rn_registry_family (const char *family);
/* Adds a descriptor (lent for ever). FALSE if the name is taken or not valid ([A-Za-z][A-Za-z0-9_]*). */
gboolean rn_registry_add (RnRegistry *registry, const RnComponent *component, GError **error);
const RnComponent *rn_registry_lookup (const RnRegistry *registry, const char *name); /* NULL if unknown */
const char *rn_registry_family_name (const RnRegistry *registry);
/* Components sorted by name. (transfer container) */
GPtrArray *rn_registry_list (const RnRegistry *registry);
/* Families sorted by name. (transfer container) of lent RnRegistry */
GPtrArray *rn_registry_families (void);

/*
 * The member of NULL-ended @names nearest to @word (Damerau-Levenshtein, at most a third of its length, at
 * least 1), or NULL. Lent.
 */
const char *rn_suggest (const char *word, const char *const *names);

G_END_DECLS

#endif
