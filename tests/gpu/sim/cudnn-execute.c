/* cudnn-execute.c: handles, variant packs and executions of the simulated cuDNN. */
#include "config.h"

#include "tests/gpu/sim/cudnn-internal.h"
#include "tests/gpu/sim/internal.h"

#include <string.h>

struct cudnnContext
{
  cudaStream_t stream;
};

static GHashTable *handles;    /* of struct cudnnContext */
static GHashTable *executions; /* number by engine */

/* ---- handles ---- */

size_t
cudnnGetVersion (void)
{
  return CUDNN_VERSION > 91000 ? CUDNN_VERSION : 91000; /* the first that writes plans down, as it does */
}

const char *
cudnnGetErrorString (cudnnStatus_t status)
{
#define NAME(status) \
  case status:       \
    return #status
  switch ((int) status)
    {
      NAME (CUDNN_STATUS_SUCCESS);
      NAME (CUDNN_STATUS_NOT_INITIALIZED);
      NAME (CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH);
      NAME (CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH);
      NAME (CUDNN_STATUS_BAD_PARAM);
      NAME (CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
      NAME (CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
      NAME (CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
      NAME (CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
      NAME (CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES);
      NAME (CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
      NAME (CUDNN_STATUS_NOT_SUPPORTED);
      NAME (CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH);
      NAME (CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING);
      NAME (CUDNN_STATUS_INTERNAL_ERROR);
      NAME (CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
      NAME (CUDNN_STATUS_EXECUTION_FAILED);
      NAME (CUDNN_STATUS_EXECUTION_FAILED_CUDART);
    default:
      return "CUDNN_UNKNOWN_STATUS";
    }
#undef NAME
}

unsigned long
sim_cudnn_n_handles (void)
{
  return handles != NULL ? g_hash_table_size (handles) : 0;
}

static struct cudnnContext *
find_handle (cudnnHandle_t handle, const char *what)
{
  if (handle != NULL && (handles == NULL || !g_hash_table_contains (handles, handle)))
    {
      sim_fault ("%s: %p is not a handle, or was destroyed", what, (void *) handle);
      return NULL;
    }
  return handle;
}

cudnnStatus_t
cudnnCreate (cudnnHandle_t *handle)
{
  SIM_LOCK ();
  if (handle == NULL)
    return sim_refuse (CUDNN_STATUS_BAD_PARAM, "nullptr == handle");
  *handle = NULL;
  cudaError_t error = sim_call ("cudnnCreate");
  if (error == cudaErrorMemoryAllocation)
    return sim_refuse (CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, "no device memory");
  if (error != cudaSuccess)
    return sim_refuse (CUDNN_STATUS_NOT_INITIALIZED, "the driver says: %s", cudaGetErrorName (error));
  if (handles == NULL)
    handles = g_hash_table_new_full (NULL, NULL, g_free, NULL);
  *handle = g_new0 (struct cudnnContext, 1);
  g_hash_table_add (handles, *handle);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnDestroy (cudnnHandle_t handle)
{
  SIM_LOCK ();
  if (handle == NULL)
    return CUDNN_STATUS_SUCCESS;
  if (find_handle (handle, "cudnnDestroy") == NULL)
    return sim_refuse (CUDNN_STATUS_BAD_PARAM, "not a handle");
  g_hash_table_remove (handles, handle);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnSetStream (cudnnHandle_t handle, cudaStream_t stream)
{
  SIM_LOCK ();
  struct cudnnContext *context = find_handle (handle, "cudnnSetStream");

  if (context == NULL)
    return sim_refuse (CUDNN_STATUS_BAD_PARAM, "nullptr == handle");
  if (sim_call ("cudnnSetStream") != cudaSuccess)
    return sim_refuse (CUDNN_STATUS_EXECUTION_FAILED_CUDART, "the runtime has failed");
  if (!sim_is_stream (stream))
    sim_fault ("cudnnSetStream: %p is not a stream of the program's own", (void *) stream);
  context->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

/* ---- packs ---- */

cudnnStatus_t
sim_finalize_pack (SimDescriptor *d)
{
  int64_t n_ids, n_pointers;

  sim_value_data (d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, &n_ids);
  sim_value_data (d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, &n_pointers);
  if (n_ids != n_pointers)
    return sim_refuse (CUDNN_STATUS_BAD_PARAM, "ptrs_count != uids_count");
  return CUDNN_STATUS_SUCCESS;
}

/* A tensor of an execution and where it is. */
typedef struct
{
  const char *name;
  const SimTensor *tensor;
  guint8 *address;
  gsize bytes;
  gboolean writes;
} Operand;

#define MAX_OPERANDS 6 /* x, w, y, bias, residual; workspace */

typedef struct
{
  SimConv conv;
  SimChoice choice;
  gsize workspace_bytes;
  SimConvPointers pointers;
} Execution;

static int
operands_of (const SimConv *c, Operand operands[MAX_OPERANDS])
{
  gboolean is_data = c->kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
           is_filter = c->kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
  int n = 0;

  operands[n++] = (Operand){ .name = is_data ? "dx" : "x", .tensor = &c->x, .writes = is_data };
  operands[n++] = (Operand){ .name = is_filter ? "dw" : "w", .tensor = &c->w, .writes = is_filter };
  operands[n++] = (Operand){ .name = is_data || is_filter ? "dy" : "y",
                             .tensor = &c->y,
                             .writes = !is_data && !is_filter };
  if (c->has_bias)
    operands[n++] = (Operand){ .name = "bias", .tensor = &c->bias };
  if (c->has_residual)
    operands[n++] = (Operand){ .name = "residual", .tensor = &c->residual };
  return n;
}

/* Finds the operand's pointer in the pack, and checks it; FALSE with a fault. */
static gboolean
place_operand (Operand *operand, const SimDescriptor *pack)
{
  int64_t n, n_found = 0;
  const int64_t *ids = sim_value_data (pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, &n);
  void *const *pointers = sim_value_data (pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, &n);
  const SimTensor *t = operand->tensor;

  for (int64_t i = 0; i < n; i++)
    if (ids[i] == t->id)
      {
        n_found++;
        operand->address = pointers[i];
      }
  operand->bytes = sim_tensor_bytes (t);
  if (n_found != 1)
    sim_fault ("cudnnBackendExecute: the pack has the id %" G_GINT64_FORMAT " of %s %" G_GINT64_FORMAT
               " times",
               t->id, operand->name, n_found);
  else if (!sim_is_device_range (operand->address, operand->bytes))
    sim_fault ("cudnnBackendExecute: %s at %p, %" G_GSIZE_FORMAT " bytes, does not lie in device memory",
               operand->name, (void *) operand->address, operand->bytes);
  else if ((guintptr) operand->address % (guintptr) t->alignment != 0)
    sim_fault ("cudnnBackendExecute: %s at %p is not aligned to %" G_GINT64_FORMAT
               " bytes, as its tensor says",
               operand->name, (void *) operand->address, t->alignment);
  else
    return TRUE;
  return FALSE;
}

static gboolean
place_workspace (Operand *workspace, const SimDescriptor *pack, gsize bytes)
{
  int64_t n;
  void *const *pointer = sim_value_data (pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, &n);

  *workspace = (Operand){
    .name = "workspace", .address = pointer != NULL ? pointer[0] : NULL, .bytes = bytes, .writes = TRUE
  };
  if (workspace->address == NULL || !sim_is_device_range (workspace->address, bytes))
    sim_fault ("cudnnBackendExecute: the workspace at %p is not %" G_GSIZE_FORMAT " bytes of device memory",
               (void *) workspace->address, bytes);
  else if ((guintptr) workspace->address % 16 != 0)
    sim_fault ("cudnnBackendExecute: the workspace at %p is not aligned to 16 bytes",
               (void *) workspace->address);
  else
    return TRUE;
  return FALSE;
}

/* What is written lies apart from all else; only a residual may be what its sum overwrites. */
static gboolean
are_apart (const Operand *operands, int n)
{
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      {
        const Operand *a = &operands[i], *b = &operands[j];
        if (i == j || !a->writes || a->address >= b->address + b->bytes
            || b->address >= a->address + a->bytes)
          continue;
        if (strcmp (b->name, "residual") == 0 && a->address == b->address
            && memcmp (a->tensor->strides, b->tensor->strides, 4 * sizeof (int64_t)) == 0)
          continue;
        sim_fault ("cudnnBackendExecute: %s, which is written, overlaps %s", a->name, b->name);
        return FALSE;
      }
  return TRUE;
}

static gboolean
has_strangers (const SimDescriptor *pack, const Operand *operands, int n)
{
  int64_t n_ids;
  const int64_t *ids = sim_value_data (pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, &n_ids);

  for (int64_t i = 0; i < n_ids; i++)
    {
      gboolean is_known = FALSE;
      for (int j = 0; j < n; j++)
        is_known |= operands[j].tensor->id == ids[i];
      if (!is_known)
        {
          sim_fault ("cudnnBackendExecute: the pack's id %" G_GINT64_FORMAT " is not in the plan", ids[i]);
          return TRUE;
        }
    }
  return FALSE;
}

/* ---- executions ---- */

static void
count_execution (int64_t engine)
{
  if (executions == NULL)
    executions = g_hash_table_new (NULL, NULL);
  gulong n = sim_cudnn_n_executions (engine);
  g_hash_table_insert (executions, GINT_TO_POINTER ((int) engine + 1), GSIZE_TO_POINTER (n + 1));
}

unsigned long
sim_cudnn_n_executions (int64_t engine)
{
  return executions != NULL
             ? GPOINTER_TO_SIZE (g_hash_table_lookup (executions, GINT_TO_POINTER ((int) engine + 1)))
             : 0;
}

void
sim_cudnn_forget (void)
{
  if (executions != NULL)
    g_hash_table_remove_all (executions);
}

static struct
{
  int64_t engine;
  double factor;
} slow = { -1, 1 };

void
sim_cudnn_slow_down (int64_t engine, double factor)
{
  slow.engine = engine;
  slow.factor = factor;
}

/* Milliseconds. */
static double
time_of (const Execution *e)
{
  const SimEngine *engine = e->choice.engine;
  double speed = engine->speed * (1 + 0.5 * (double) e->choice.knob);

  if (engine->index == slow.engine)
    speed /= slow.factor;
  return 1e-3 + sim_conv_work (&e->conv) / (1e9 * speed);
}

static void
run (void *closure)
{
  Execution *e = closure;

  /* Nothing that an earlier execution left there is read: all of it is NaN. */
  if (e->workspace_bytes > 0)
    memset (e->pointers.workspace, 0xff, e->workspace_bytes);
  sim_conv_run (&e->conv, e->choice, &e->pointers);
  count_execution (e->choice.engine->index);
  sim_spend (time_of (e));
}

static cudnnStatus_t
execute (struct cudnnContext *context, const SimDescriptor *plan, const SimDescriptor *pack)
{
  g_autofree Execution *e = g_new0 (Execution, 1);
  Operand operands[MAX_OPERANDS];
  SimRange ranges[MAX_OPERANDS];

  e->conv = plan->graph->as_graph->conv;
  e->choice = plan->choice;
  e->workspace_bytes = sim_choice_workspace (e->choice, &e->conv);
  int n = operands_of (&e->conv, operands);
  gboolean is_valid = !has_strangers (pack, operands, n);
  for (int i = 0; is_valid && i < n; i++)
    is_valid = place_operand (&operands[i], pack);
  if (is_valid && e->workspace_bytes > 0)
    is_valid = place_workspace (&operands[n++], pack, e->workspace_bytes);
  if (!is_valid || !are_apart (operands, n))
    return sim_refuse (CUDNN_STATUS_BAD_PARAM, "the pack is not valid");

  for (int i = 0; i < n; i++)
    {
      ranges[i] = (SimRange){ .address = operands[i].address,
                              .bytes = operands[i].bytes,
                              .writes = operands[i].writes };
      if (strcmp (operands[i].name, "bias") == 0)
        e->pointers.bias = operands[i].address;
      if (strcmp (operands[i].name, "residual") == 0)
        e->pointers.residual = operands[i].address;
      if (strcmp (operands[i].name, "workspace") == 0)
        e->pointers.workspace = operands[i].address;
    }
  e->pointers.x = operands[0].address;
  e->pointers.w = operands[1].address;
  e->pointers.y = operands[2].address;
  g_autofree char *what = g_strdup_printf ("cudnnBackendExecute (%s, engine %" G_GINT64_FORMAT ")",
                                           sim_kind_name (e->conv.kind), e->choice.engine->index);
  if (sim_enqueue (context->stream, what, ranges, n, run, g_steal_pointer (&e), g_free) != cudaSuccess)
    return sim_refuse (CUDNN_STATUS_EXECUTION_FAILED_CUDART, "the runtime has failed");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnBackendExecute (cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack)
{
  SIM_LOCK ();
  struct cudnnContext *context = find_handle (handle, "cudnnBackendExecute");
  if (context == NULL || plan == NULL || pack == NULL)
    return sim_refuse (CUDNN_STATUS_BAD_PARAM, "nullptr");
  SimDescriptor *of_plan = sim_descriptor_find (plan, "cudnnBackendExecute"),
                *of_pack = sim_descriptor_find (pack, "cudnnBackendExecute");
  if (of_plan == NULL || of_pack == NULL)
    return sim_refuse (CUDNN_STATUS_BAD_PARAM, "not a descriptor");
  if (of_plan->kind != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR
      || of_pack->kind != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
    {
      sim_fault ("cudnnBackendExecute: %s and %s instead of a plan and a pack", sim_kind_name (of_plan->kind),
                 sim_kind_name (of_pack->kind));
      return sim_refuse (CUDNN_STATUS_BAD_PARAM, "descriptors of the wrong kind");
    }
  if (!of_plan->is_finalized || !of_pack->is_finalized)
    return sim_refuse (CUDNN_STATUS_BAD_PARAM, "isFinalized() == false");
  if (100 * sim_model ()->capability[0] + 10 * sim_model ()->capability[1]
      != 10 * of_plan->profile->as_profile.capability)
    {
      sim_fault ("cudnnBackendExecute: the plan was made for another device");
      return sim_refuse (CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH, "another device");
    }
  return execute (context, of_plan, of_pack);
}
