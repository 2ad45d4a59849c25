/* part-memory.c: the forms of `with_cp`. */
#include "config.h"

#include "models/part-memory.h"

#include "runner/base/error.h"
#include "runner/config/schema.h"

#define FORMS "true, sqrt, {segments: 2}, {stages: [4, 6, 0]} or {larger_than: 8MiB}"
#define FORMS_WITHOUT_STAGES "true, sqrt, {segments: 2} or {larger_than: 8MiB}"

static const char *
forms (int n_stages)
{
  return n_stages > 0 ? FORMS : FORMS_WITHOUT_STAGES;
}

typedef struct
{
  gint64 segments;
  GArray *stages;
  const RnNode *larger_than;
} CpKeys;

static const RnKeySpec keys[] = {
  RN_KEY (CpKeys, segments, RN_KEY_INT, "null", "segments of about equal length", .min = 1, .max = 1000,
          .flags = RN_KEY_NULLABLE),
  RN_KEY (CpKeys, stages, RN_KEY_INT_LIST, "null", "blocks per segment of each stage that trains; 0 keeps it",
          .min = 0, .max = 1000, .flags = RN_KEY_NULLABLE),
  RN_KEY (CpKeys, larger_than, RN_KEY_NODE, "null", "only tensors above this size", .flags = RN_KEY_NULLABLE),
  RN_KEY_END,
};

static gboolean
read_lengths (const RnNode *node, const GArray *stages, int n_stages, RnCpOptions *options, GError **error)
{
  gboolean any = FALSE;

  if (n_stages == 0)
    return rn_node_error (node, error,
                          "this part has no stages that train; what works: " FORMS_WITHOUT_STAGES);
  if ((int) stages->len != n_stages || n_stages > RN_CP_MAX_STAGES)
    return rn_node_error (node, error, "%u numbers for the %d stages that train", stages->len, n_stages);
  options->form = RN_CP_STAGES;
  options->n_lengths = n_stages;
  for (int i = 0; i < n_stages; i++)
    {
      options->lengths[i] = (int) g_array_index (stages, gint64, i);
      any |= options->lengths[i] > 0;
    }
  return any
         || rn_node_error (node, error, "every stage is kept, so this does nothing; with_cp: false says so");
}

static gboolean
read_larger_than (const RnNode *node, RnCpOptions *options, GError **error)
{
  guint64 bytes = 0;

  options->form = RN_CP_LARGER_THAN;
  if (!rn_node_read_size (node, "8MiB", &bytes, error))
    return FALSE;
  options->larger_than = bytes;
  return TRUE;
}

static gboolean
read_map (const RnNode *node, int n_stages, RnCpOptions *options, GError **error)
{
  CpKeys cp = { 0 };

  if (rn_node_size (node) != 1)
    return rn_node_error (node, error, "needs one key; what works: %s", forms (n_stages));
  if (!rn_keys_parse (keys, node, &cp, NULL, error))
    return FALSE;
  gboolean ok;
  if (cp.stages != NULL)
    ok = read_lengths (rn_node_get (node, "stages"), cp.stages, n_stages, options, error);
  else if (cp.larger_than != NULL)
    ok = read_larger_than (cp.larger_than, options, error);
  else if (cp.segments != RN_NULL_INT)
    {
      options->form = RN_CP_SEGMENTS;
      options->n_segments = (int) cp.segments;
      ok = TRUE;
    }
  else
    ok = rn_node_error (node, error, "needs a value; what works: %s", forms (n_stages));
  rn_keys_clear (keys, &cp);
  return ok;
}

gboolean
rn_with_cp_read (const RnNode *node, int n_stages, RnCpOptions *options, GError **error)
{
  *options = (RnCpOptions){ .form = RN_CP_NONE };
  if (node == NULL || rn_node_is_null (node))
    return TRUE;
  switch (rn_node_kind (node))
    {
    case RN_NODE_BOOL:
      options->form = rn_node_as_bool (node) ? RN_CP_BLOCKS : RN_CP_NONE;
      return TRUE;
    case RN_NODE_STRING:
      if (!g_str_equal (rn_node_as_string (node), "sqrt"))
        break;
      options->form = RN_CP_SQRT;
      return TRUE;
    case RN_NODE_MAP:
      return read_map (node, n_stages, options, error);
    default:
      break;
    }
  return rn_node_error (node, error, "needs false, %s", forms (n_stages));
}
