#include "config.h"
#include "models/component.h"

#include "runner/config/schema.h"

gboolean
rn_part_new (RnPart *part, const char *family, const RnNode *map, const char *deflt_type, GError **error)
{
  const RnComponent *component = NULL;
  part->self = rn_component_new (rn_registry_family (family), map, deflt_type, NULL, &component, error);
  part->desc = part->self ? (const RnPartDesc *) component : NULL;
  return part->self != NULL;
}

void
rn_part_clear (RnPart *part)
{
  if (!part->self)
    return;
  if (part->desc->clear)
    part->desc->clear (part->self);
  rn_component_free (&part->desc->component, part->self);
  *part = (RnPart){ NULL, NULL };
}

gboolean
rn_make (const char *family, const RnNode *map, const char *deflt_type, gpointer out, GError **error)
{
  const RnComponent *component = NULL;
  gpointer self = rn_component_new (rn_registry_family (family), map, deflt_type, NULL, &component, error);
  if (!self)
    return FALSE;
  gboolean ok = ((const RnMakerDesc *) component)->make (self, map, out, error);
  rn_component_free (component, self);
  return ok;
}

const RnNode *
rn_node_blame (const RnNode *map, const char *key)
{
  const RnNode *node = rn_node_get (map, key);
  return node ? node : map;
}
