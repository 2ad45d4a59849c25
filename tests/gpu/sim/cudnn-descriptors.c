/*
 * cudnn-descriptors.c: descriptors of the simulated cuDNN: their life, how their attributes are set and read.
 */
#include "config.h"

#include "tests/gpu/sim/cudnn-internal.h"
#include "tests/gpu/sim/internal.h"

#include <stdbool.h>
#include <string.h>

#define B(name) CUDNN_BACKEND_##name##_DESCRIPTOR
#define DESC CUDNN_TYPE_BACKEND_DESCRIPTOR

typedef struct
{
  int64_t n;
  gpointer data; /* of descriptors: SimDescriptor *, each may be NULL */
  gsize bytes;
  gboolean holds_descriptors;
} Value;

static GHashTable *live; /* of SimDescriptor: those that the program has not destroyed */
static GPrivate last_error = G_PRIVATE_INIT (g_free);

static void
value_free (gpointer data)
{
  Value *value = data;
  SimDescriptor **members = value->data;
  for (int64_t i = 0; value->holds_descriptors && i < value->n; i++)
    if (members[i] != NULL)
      sim_descriptor_unref (members[i]);
  g_free (value->data);
  g_free (value);
}

SimDescriptor *
sim_descriptor_new (cudnnBackendDescriptorType_t kind)
{
  SimDescriptor *d = g_new0 (SimDescriptor, 1);
  d->kind = kind;
  d->n_refs = 1;
  d->values = g_hash_table_new_full (NULL, NULL, NULL, value_free);
  return d;
}

SimDescriptor *
sim_descriptor_ref (SimDescriptor *d)
{
  d->n_refs++;
  return d;
}

void
sim_descriptor_unref (SimDescriptor *d)
{
  if (--d->n_refs > 0)
    return;
  g_hash_table_unref (d->values);
  g_clear_pointer (&d->graph, sim_descriptor_unref);
  g_clear_pointer (&d->profile, sim_descriptor_unref);
  g_free (d->as_graph);
  g_free (d->as_profile.json);
  g_free (d->as_profile.members);
  g_free (d->json);
  g_free (d);
}

SimDescriptor *
sim_descriptor_find (cudnnBackendDescriptor_t descriptor, const char *what)
{
  if (live != NULL && g_hash_table_contains (live, descriptor))
    return descriptor;
  sim_fault ("%s: %p is not a descriptor, or was destroyed", what, descriptor);
  return NULL;
}

unsigned long
sim_cudnn_n_live (void)
{
  SIM_LOCK ();
  return (live != NULL ? g_hash_table_size (live) : 0) + sim_cudnn_n_handles ();
}

cudnnStatus_t
sim_refuse (cudnnStatus_t status, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_private_replace (&last_error, g_strdup_vprintf (format, args));
  va_end (args);
  return status;
}

void
cudnnGetLastErrorString (char *message, size_t max_size)
{
  const char *text = g_private_get (&last_error);
  g_strlcpy (message, text != NULL ? text : "", max_size);
  g_private_replace (&last_error, NULL);
}

/* ---- values ---- */

static const Value *
value_of (const SimDescriptor *d, int name)
{
  return g_hash_table_lookup (d->values, GINT_TO_POINTER (name));
}

gconstpointer
sim_value_data (const SimDescriptor *d, int name, int64_t *n)
{
  const Value *value = value_of (d, name);
  *n = value != NULL ? value->n : 0;
  return value != NULL ? value->data : NULL;
}

#define SCALAR(suffix, Stored, Given)                                        \
  gboolean sim_value_##suffix (const SimDescriptor *d, int name, Given *out) \
  {                                                                          \
    const Value *value = value_of (d, name);                                 \
    if (value == NULL)                                                       \
      return FALSE;                                                          \
    *out = *(const Stored *) value->data;                                    \
    return TRUE;                                                             \
  }
SCALAR (int64, int64_t, int64_t)
SCALAR (enum, int, int)
SCALAR (float, float, float)
SCALAR (bool, bool, gboolean)

int64_t
sim_value_int64s (const SimDescriptor *d, int name, int64_t *values, int64_t max)
{
  int64_t n;
  const int64_t *stored = sim_value_data (d, name, &n);
  for (int64_t i = 0; i < MIN (n, max); i++)
    values[i] = stored[i];
  return n;
}

SimDescriptor *
sim_value_descriptor (const SimDescriptor *d, int name, int64_t i)
{
  const Value *value = value_of (d, name);
  return value != NULL && i < value->n ? ((SimDescriptor **) value->data)[i] : NULL;
}

static gsize
bytes_of (int type)
{
  switch (type)
    {
    case CUDNN_TYPE_CHAR:
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;
    }
}

static void
store (SimDescriptor *d, const SimAttribute *a, int type, int64_t n, const void *values)
{
  Value *value = g_new0 (Value, 1);
  value->n = n;
  value->bytes = (gsize) n * bytes_of (a->type);
  if (type == CUDNN_TYPE_DOUBLE)
    {
      value->data = g_new (float, 1);
      *(float *) value->data = (float) *(const double *) values;
    }
  else
    {
      /* One byte more, so that texts end, and nothing is something. */
      value->data = g_malloc0 (value->bytes + 1);
      if (value->bytes > 0)
        memcpy (value->data, values, value->bytes);
    }
  g_hash_table_insert (d->values, GINT_TO_POINTER (a->name), value);
}

static bool
is_op (int kind)
{
  return kind == B (OPERATION_CONVOLUTION_FORWARD) || kind == B (OPERATION_CONVOLUTION_BACKWARD_DATA)
         || kind == B (OPERATION_CONVOLUTION_BACKWARD_FILTER) || kind == B (OPERATION_POINTWISE);
}

/* Keeps references where the library copies: a finalized descriptor does not change any more. What is set
 * before it is finalized is copied as it is then, and never becomes valid. */
static cudnnStatus_t
store_descriptors (SimDescriptor *d, const SimAttribute *a, int64_t n, SimDescriptor *const *values)
{
  g_autofree SimDescriptor **members = g_new0 (SimDescriptor *, n);
  for (int64_t i = 0; i < n; i++)
    {
      if (values[i] == NULL)
        {
          if (a->flags & SIM_NULL_IS_UNSET)
            continue;
          return sim_refuse (a->flags & SIM_MANY ? 2002 : 2000, "nullptr == ptr");
        }
      if (a->target == SIM_ANY_OP ? !is_op (values[i]->kind) : (int) values[i]->kind != a->target)
        {
          sim_fault ("cudnnBackendSetAttribute: attribute %d of %s is set to %s; cuDNN does not notice, and "
                     "crashes",
                     a->name, sim_kind_name (d->kind), sim_kind_name (values[i]->kind));
          return sim_refuse (2000, "a descriptor of the wrong kind");
        }
      if (values[i]->is_finalized)
        members[i] = values[i];
      else if (a->target == SIM_ANY_OP)
        return sim_refuse (2004, "desc->isFinalized() == false");
    }
  store (d, a, a->type, n, members);
  Value *value = g_hash_table_lookup (d->values, GINT_TO_POINTER (a->name));
  value->holds_descriptors = TRUE;
  for (int64_t i = 0; i < n; i++)
    if (members[i] != NULL)
      sim_descriptor_ref (members[i]);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
sim_set_descriptors (SimDescriptor *d, int name, int64_t n, SimDescriptor *const *values)
{
  return store_descriptors (d, sim_attribute_find (d->kind, name), n, values);
}

cudnnStatus_t
sim_set (SimDescriptor *d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
         const void *values)
{
  const SimAttribute *a = sim_attribute_find (d->kind, name);

  if (d->is_finalized)
    return sim_refuse (2000, "the descriptor is finalized");
  if (a == NULL)
    return sim_refuse (2000, "%s has no attribute %d", sim_kind_name (d->kind), name);
  if (values == NULL)
    return sim_refuse (2000, "nullptr == arrayOfElements");
  if (a->flags & SIM_NO_SET)
    return sim_refuse (a->wrong, "attribute %d is read only", name);
  if ((int) type != a->type && !(a->flags & SIM_ANY)
      && !(a->flags & SIM_DOUBLES && type == CUDNN_TYPE_DOUBLE))
    return sim_refuse (a->wrong, "attribute %d has another type", name);
  if (a->flags & SIM_ANY && n < 0)
    return sim_refuse (4003, "a text of negative length");
  if (n < 1 && !(a->flags & SIM_ANY) && a->target != SIM_ANY_OP)
    return sim_refuse (a->flags & SIM_NONE_3000 ? 3000 : 2000, "elementCount < 1");
  if (n > 1 && !(a->flags & SIM_MANY))
    return sim_refuse (a->flags & SIM_MORE_3000 ? 3000 : 2000, "elementCount != 1");
  if (a->type == DESC)
    {
      SimDescriptor *const *given = values;
      for (int64_t i = 0; i < n; i++)
        if (given[i] != NULL && sim_descriptor_find (given[i], "cudnnBackendSetAttribute") == NULL)
          return sim_refuse (2000, "not a descriptor");
      return store_descriptors (d, a, n, given);
    }
  store (d, a, a->flags & SIM_ANY ? a->type : (int) type, n, values);
  return CUDNN_STATUS_SUCCESS;
}

/* ---- reading ---- */

/* Values as an array; @many: the caller may ask for fewer. */
static cudnnStatus_t
give (const void *from, int64_t total, gsize element, gboolean many, int64_t n, int64_t *n_given,
      void *values)
{
  int64_t given = n == 0 || values == NULL ? total : MIN (n, total);

  if (n < 0 || (!many && values != NULL && n != 1))
    return sim_refuse (2000, "1 != requestedElemCount");
  if (values != NULL && n > 0 && total > 0)
    memcpy (values, from, (gsize) given * element);
  if (n_given != NULL)
    *n_given = given;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t
give_text (const char *text, gsize bytes, int64_t n, int64_t *n_given, void *values)
{
  int64_t length = (int64_t) bytes;
  if (values != NULL && n < length)
    return sim_refuse (2006, "the text has %" G_GINT64_FORMAT " bytes", length);
  if (values != NULL)
    memcpy (values, text, bytes);
  if (n_given != NULL)
    *n_given = length;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t
give_notes (unsigned notes, int64_t n, int64_t *n_given, void *values)
{
  int numbers[32], total = 0;
  for (int i = 0; i < 32; i++)
    if (notes >> i & 1)
      numbers[total++] = i;
  return give (numbers, total, sizeof numbers[0], TRUE, n, n_given, values);
}

/* The engine of a configuration, into a descriptor that the caller has made. */
static cudnnStatus_t
give_engine (SimDescriptor *config, int64_t *n_given, cudnnBackendDescriptor_t *values)
{
  if (values == NULL || values[0] == NULL)
    return sim_refuse (2000, "nullptr == ptr");
  SimDescriptor *engine = sim_descriptor_find (values[0], "cudnnBackendGetAttribute");
  if (engine == NULL || engine->kind != B (ENGINE))
    return sim_refuse (2000, "T_DESC::DESC_TYPE != ptr->getDescriptorType()");
  engine->choice = config->choice;
  g_clear_pointer (&engine->graph, sim_descriptor_unref);
  g_clear_pointer (&engine->profile, sim_descriptor_unref);
  engine->graph = sim_descriptor_ref (config->graph);
  engine->profile = sim_descriptor_ref (config->profile);
  engine->is_finalized = TRUE;
  if (n_given != NULL)
    *n_given = 1;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t
give_results (SimDescriptor *heuristics, int64_t n, int64_t *n_given, cudnnBackendDescriptor_t *values)
{
  g_autoptr (GArray) choices = g_array_new (FALSE, FALSE, sizeof (SimChoice));
  int64_t unwanted;

  if (n_given == NULL)
    n_given = &unwanted;
  if (n < 0)
    return sim_refuse (2000, "(nullptr != elemArray) && (0 > requestedElemCount)");
  if (heuristics->profile != NULL)
    sim_engines_rank (heuristics->mode, heuristics->graph->as_graph, &heuristics->profile->as_profile,
                      choices);
  else
    sim_fault ("results are asked of heuristics that have no device; cuDNN finds none");
  if (n == 0 || values == NULL)
    {
      /* A bound: some are found not to fit only when they are asked for. */
      *n_given = choices->len + 3;
      return CUDNN_STATUS_SUCCESS;
    }
  guint given = 0;
  for (int64_t i = 0; i < n && given < choices->len; i++)
    {
      SimDescriptor *config =
          values[i] != NULL ? sim_descriptor_find (values[i], "cudnnBackendGetAttribute") : NULL;
      if (config == NULL)
        continue;
      if (config->kind != B (ENGINECFG) || config->is_finalized)
        {
          sim_fault ("cudnnBackendGetAttribute: results of heuristics are written to %s%s",
                     config->is_finalized ? "a finalized " : "", sim_kind_name (config->kind));
          continue;
        }
      config->choice = g_array_index (choices, SimChoice, given++);
      config->graph = sim_descriptor_ref (heuristics->graph);
      config->profile = sim_descriptor_ref (heuristics->profile);
      config->is_finalized = TRUE;
    }
  *n_given = given;
  return CUDNN_STATUS_SUCCESS;
}

#define EXPECT(wanted)  \
  if (type != (wanted)) \
  return sim_refuse (2010, "attribute %d has another type", (int) name)

/* What is not in the bag. */
static cudnnStatus_t
get_computed (SimDescriptor *d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
              int64_t *n_given, void *values)
{
  int64_t number;

  switch ((int) name)
    {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      EXPECT (CUDNN_TYPE_BACKEND_DESCRIPTOR);
      return give_results (d, n, n_given, values);
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      EXPECT (CUDNN_TYPE_INT64);
      return give (&d->choice.engine->index, 1, sizeof number, FALSE, n, n_given, values);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      EXPECT (CUDNN_TYPE_NUMERICAL_NOTE);
      return give_notes (d->choice.engine->numerical_notes, n, n_given, values);
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
      EXPECT (CUDNN_TYPE_BEHAVIOR_NOTE);
      return give_notes (d->choice.engine->behavior_notes, n, n_given, values);
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      EXPECT (CUDNN_TYPE_BACKEND_DESCRIPTOR);
      return give_engine (d, n_given, values);
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      EXPECT (CUDNN_TYPE_INT64);
      number = (int64_t) sim_choice_workspace (d->choice, &d->graph->as_graph->conv);
      return give (&number, 1, sizeof number, FALSE, n, n_given, values);
    case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION:
      return give_text (d->json, strlen (d->json), n, n_given, values);
    case CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION:
      return give_text (d->as_profile.json, d->as_profile.length, n, n_given, values);
    default:
      return sim_refuse (3000, "attribute %d cannot be read", (int) name);
    }
}

static cudnnStatus_t
get (SimDescriptor *d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
     int64_t *n_given, void *values)
{
  static const int64_t unset; /* tensors are not virtual */
  const SimAttribute *a = sim_attribute_find (d->kind, name);

  if (!d->is_finalized)
    return sim_refuse (1001, "the descriptor is not finalized");
  if (a == NULL)
    return sim_refuse (2000, "%s has no attribute %d", sim_kind_name (d->kind), (int) name);
  if (!(a->flags & SIM_READ) || a->type == DESC)
    return get_computed (d, name, type, n, n_given, values);
  if ((int) type != a->type)
    return sim_refuse (2010, "attribute %d has another type", (int) name);
  const Value *value = value_of (d, name);
  if (value == NULL)
    return give (&unset, 1, bytes_of (a->type), FALSE, n, n_given, values);
  return give (value->data, value->n, bytes_of (a->type), (a->flags & SIM_MANY) != 0, n, n_given, values);
}

cudnnStatus_t
sim_finalize (SimDescriptor *d)
{
  static cudnnStatus_t (*const finalize[]) (SimDescriptor *) = {
    [B (TENSOR)] = sim_finalize_tensor,
    [B (CONVOLUTION)] = sim_finalize_window,
    [B (POINTWISE)] = sim_finalize_pointwise,
    [B (OPERATION_CONVOLUTION_FORWARD)] = sim_finalize_op,
    [B (OPERATION_CONVOLUTION_BACKWARD_DATA)] = sim_finalize_op,
    [B (OPERATION_CONVOLUTION_BACKWARD_FILTER)] = sim_finalize_op,
    [B (OPERATION_POINTWISE)] = sim_finalize_op,
    [B (OPERATIONGRAPH)] = sim_finalize_graph,
    [B (ENGINEHEUR)] = sim_finalize_heuristics,
    [B (ENGINE)] = sim_finalize_engine,
    [B (ENGINECFG)] = sim_finalize_config,
    [B (EXECUTION_PLAN)] = sim_finalize_plan,
    [B (VARIANT_PACK)] = sim_finalize_pack,
    [B (DEVICEPROP)] = sim_finalize_profile,
  };
  if (d->is_finalized)
    return sim_refuse (2000, "ptrDesc->finalize()");
  cudnnStatus_t status = finalize[d->kind](d);
  d->is_finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
}

/* ---- entry points ---- */

cudnnStatus_t
cudnnBackendCreateDescriptor (cudnnBackendDescriptorType_t kind, cudnnBackendDescriptor_t *descriptor)
{
  SIM_LOCK ();
  if (!sim_kind_is_known (kind))
    return sim_refuse (4003, "no descriptor of kind %d in the simulation", (int) kind);
  if (live == NULL)
    live = g_hash_table_new (NULL, NULL);
  SimDescriptor *d = sim_descriptor_new (kind);
  g_hash_table_add (live, d);
  *descriptor = d;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnBackendDestroyDescriptor (cudnnBackendDescriptor_t descriptor)
{
  SIM_LOCK ();
  if (descriptor == NULL)
    return sim_refuse (2002, "nullptr == descriptor");
  SimDescriptor *d = sim_descriptor_find (descriptor, "cudnnBackendDestroyDescriptor");
  if (d == NULL)
    return sim_refuse (2000, "not a descriptor");
  g_hash_table_remove (live, d);
  sim_descriptor_unref (d);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnBackendSetAttribute (cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
  SIM_LOCK ();
  if (descriptor == NULL)
    return sim_refuse (2002, "nullptr == descriptor");
  SimDescriptor *d = sim_descriptor_find (descriptor, "cudnnBackendSetAttribute");
  return d != NULL ? sim_set (d, name, type, n, values) : sim_refuse (2000, "not a descriptor");
}

cudnnStatus_t
cudnnBackendGetAttribute (cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type, int64_t n, int64_t *n_given, void *values)
{
  SIM_LOCK ();
  if (descriptor == NULL)
    return sim_refuse (2000, "nullptr == descriptor");
  SimDescriptor *d = sim_descriptor_find (descriptor, "cudnnBackendGetAttribute");
  return d != NULL ? get (d, name, type, n, n_given, values) : sim_refuse (2000, "not a descriptor");
}

cudnnStatus_t
cudnnBackendFinalize (cudnnBackendDescriptor_t descriptor)
{
  SIM_LOCK ();
  if (descriptor == NULL)
    return sim_refuse (2002, "nullptr == descriptor");
  SimDescriptor *d = sim_descriptor_find (descriptor, "cudnnBackendFinalize");
  return d != NULL ? sim_finalize (d) : sim_refuse (2000, "not a descriptor");
}
