/* The globals that checkpoints of weights name, and what they stand for. Nothing is imported or called. */
#include "config.h"

#include "runner/weights/pickle-private.h"

#include <string.h>

/* An expanded tensor (stride 0) may have more elements than its storage: up to so many. */
#define MAX_REPEATED (1 << 24)

static const struct
{
  const char *module, *names; /* separated by a space */
  RnPickleRole role;
} globals[] = {
  { "collections", "OrderedDict defaultdict Counter", RN_PICKLE_MAKES_DICT },
  { "builtins", "dict", RN_PICKLE_MAKES_DICT },
  { "__builtin__", "dict", RN_PICKLE_MAKES_DICT },
  { "torch", "Size", RN_PICKLE_MAKES_TUPLE },
  { "torch._utils", "_rebuild_tensor _rebuild_tensor_v2", RN_PICKLE_MAKES_TENSOR },
  { "torch._utils", "_rebuild_tensor_v3", RN_PICKLE_MAKES_TENSOR_V3 },
  { "torch._utils", "_rebuild_parameter _rebuild_parameter_with_state", RN_PICKLE_MAKES_PARAMETER },
  /* What else stands beside weights: settings, numbers, curves. */
  { "torch", "device", RN_PICKLE_INERT },
  { "builtins", "set frozenset list tuple int float bool complex str bytes bytearray slice range",
    RN_PICKLE_INERT },
  { "__builtin__", "set frozenset list tuple int long float bool complex str unicode bytearray slice xrange",
    RN_PICKLE_INERT },
  { "_codecs", "encode", RN_PICKLE_INERT },
  { "numpy", "dtype ndarray", RN_PICKLE_INERT },
  { "numpy.core.multiarray", "scalar _reconstruct", RN_PICKLE_INERT },
  { "numpy._core.multiarray", "scalar _reconstruct", RN_PICKLE_INERT },
  { "numpy.dtypes", "Float64DType Float32DType Int64DType Int32DType BoolDType", RN_PICKLE_INERT },
  /* MMDetection 3's curves; the attribute is not got. */
  { "mmengine.logging.history_buffer", "HistoryBuffer", RN_PICKLE_INERT },
  { "builtins", "getattr", RN_PICKLE_INERT },
};

static gboolean
is_one_of (const char *names, const char *name)
{
  gsize length = strlen (name);

  for (const char *at = names; length > 0 && (at = strstr (at, name)) != NULL; at += length)
    if ((at == names || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
      return strchr (name, ' ') == NULL;
  return FALSE;
}

gboolean
rn_pickle_find_global (const char *module, const char *name, RnPickleGlobal *global)
{
  for (gsize i = 0; i < G_N_ELEMENTS (globals); i++)
    if (strcmp (globals[i].module, module) == 0 && is_one_of (globals[i].names, name))
      {
        *global = (RnPickleGlobal){ globals[i].role, NULL };
        return TRUE;
      }
  if (strcmp (module, "torch") == 0 || strcmp (module, "torch.storage") == 0)
    {
      const RnWeightType *storage = rn_weight_type_by_storage (name), *dtype = rn_weight_type_by_dtype (name);
      *global = (RnPickleGlobal){ storage != NULL ? RN_PICKLE_STORAGE_TYPE : RN_PICKLE_DTYPE,
                                  storage != NULL ? storage : dtype };
      return global->type != NULL;
    }
  return FALSE;
}

static gboolean
get_size (const RnPickleValue *value, gsize *size)
{
  if (value->kind != RN_PICKLE_INT || value->integer < 0)
    return FALSE;
  *size = (gsize) value->integer;
  return TRUE;
}

static gpointer problem_with (char **problem, const char *format, ...) G_GNUC_PRINTF (2, 3);

static gpointer
problem_with (char **problem, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  *problem = g_strdup_vprintf (format, args);
  va_end (args);
  return NULL;
}

static gboolean
read_shape (const RnPickleValue *sizes, const RnPickleValue *strides, RnPickleTensor *tensor)
{
  guint rank = rn_pickle_n_items (sizes);

  if (sizes->kind != RN_PICKLE_TUPLE || strides->kind != RN_PICKLE_TUPLE || rank > RN_PICKLE_MAX_DIMS
      || rn_pickle_n_items (strides) != rank)
    return FALSE;
  tensor->rank = (int) rank;
  for (guint i = 0; i < rank; i++)
    {
      const RnPickleValue *size = rn_pickle_item (sizes, i), *stride = rn_pickle_item (strides, i);
      if (size->kind != RN_PICKLE_INT || stride->kind != RN_PICKLE_INT || size->integer < 0
          || stride->integer < 0)
        return FALSE;
      tensor->dims[i] = size->integer;
      tensor->strides[i] = stride->integer;
    }
  return TRUE;
}

/* Counts elements, and finds the bytes from the first to the end of the last one; FALSE on overflow. */
static gboolean
measure (RnPickleTensor *tensor, gsize *span)
{
  gsize bytes = tensor->type->bytes, last = 0, step;
  gboolean empty = FALSE;

  for (int i = 0; i < tensor->rank; i++)
    {
      empty = empty || tensor->dims[i] == 0;
      if (!g_size_checked_mul (&bytes, bytes, (gsize) MAX (tensor->dims[i], 1)) || bytes > G_MAXINT64
          || !g_size_checked_mul (&step, (gsize) MAX (tensor->dims[i] - 1, 0), (gsize) tensor->strides[i])
          || !g_size_checked_add (&last, last, step))
        return FALSE;
    }
  tensor->n = empty ? 0 : (int64_t) (bytes / tensor->type->bytes);
  *span = 0;
  return empty
         || (g_size_checked_add (&last, last, 1) && g_size_checked_mul (span, last, tensor->type->bytes));
}

/* Of a view whose values are negated, or conjugated, as they are read: the storage holds the others. */
static gboolean
is_lazy_view (const RnPickleValue *args, guint at)
{
  static const char *const marks[] = { "neg", "conj" };

  for (gsize i = 0; at < rn_pickle_n_items (args) && i < G_N_ELEMENTS (marks); i++)
    {
      const RnPickleValue *mark = rn_pickle_lookup (rn_pickle_item (args, at), marks[i]);
      if (mark != NULL && mark->kind == RN_PICKLE_BOOL && mark->integer != 0)
        return TRUE;
    }
  return FALSE;
}

static RnPickleValue *
make_tensor (RnPickleBuilder *builder, const RnPickleValue *args, gboolean is_v3, char **problem)
{
  if (rn_pickle_n_items (args) < (is_v3 ? 7 : 4))
    return problem_with (problem, "a tensor without storage, offset, sizes and strides");
  const RnPickleValue *storage = rn_pickle_item (args, 0);
  if (storage->kind != RN_PICKLE_STORAGE)
    return problem_with (problem, "a tensor without a storage");
  const RnPickleStorage *source = g_ptr_array_index (builder->pickle->storages, storage->storage.index);
  RnPickleTensor tensor = { .type = source->type, .storage = storage->storage.index };
  gsize offset, span, end;

  if (is_lazy_view (args, is_v3 ? 7 : 6))
    return problem_with (problem, "a negated or conjugated view; save the tensor's clone () instead");
  if (is_v3)
    {
      const RnPickleValue *dtype = rn_pickle_item (args, 6);
      if (dtype->kind != RN_PICKLE_GLOBAL || dtype->global.role != RN_PICKLE_DTYPE)
        return problem_with (problem, "a tensor without a dtype");
      tensor.type = dtype->global.type;
    }
  if (!get_size (rn_pickle_item (args, 1), &offset)
      || !read_shape (rn_pickle_item (args, 2), rn_pickle_item (args, 3), &tensor))
    return problem_with (problem,
                         "a tensor whose offset, sizes or strides are no counts, or of more than %d "
                         "dimensions",
                         RN_PICKLE_MAX_DIMS);
  if (!measure (&tensor, &span) || !g_size_checked_mul (&offset, offset, tensor.type->bytes)
      || !g_size_checked_add (&end, offset, span))
    return problem_with (problem, "a tensor larger than memory can be");
  if (tensor.n > 0 && end > storage->storage.bytes)
    return problem_with (problem,
                         "a tensor that ends at byte %" G_GSIZE_FORMAT " of a storage of %" G_GSIZE_FORMAT,
                         end, storage->storage.bytes);
  if (tensor.n > MAX_REPEATED && (gsize) tensor.n > storage->storage.bytes / tensor.type->bytes)
    return problem_with (
        problem, "a tensor of %" G_GINT64_FORMAT " elements in a storage of %" G_GSIZE_FORMAT " bytes",
        (gint64) tensor.n, storage->storage.bytes);
  tensor.offset = tensor.n > 0 ? storage->storage.start + offset : 0;

  RnPickleValue *value = rn_pickle_value_new (builder->pickle, RN_PICKLE_TENSOR);
  value->tensor = g_memdup2 (&tensor, sizeof tensor);
  return value;
}

/* OrderedDict (), OrderedDict ([[key, value], ...]) as Python 2 wrote it, or dict (another). */
static RnPickleValue *
make_dict (RnPickleBuilder *builder, const RnPickleValue *args, char **problem)
{
  RnPickleValue *dict = rn_pickle_value_new (builder->pickle, RN_PICKLE_DICT);
  const RnPickleValue *items = rn_pickle_n_items (args) > 0 ? rn_pickle_item (args, 0) : NULL;

  if (items == NULL || items->kind == RN_PICKLE_GLOBAL || items->kind == RN_PICKLE_NONE) /* of defaultdict */
    return dict;
  if (items->kind != RN_PICKLE_DICT && items->kind != RN_PICKLE_LIST && items->kind != RN_PICKLE_TUPLE)
    return problem_with (problem, "a dict of something else than pairs");
  if (rn_pickle_n_items (items) > builder->n_copies_left)
    return problem_with (problem, "a dict that is copied over and over");
  builder->n_copies_left -= rn_pickle_n_items (items);

  for (guint i = 0; i < rn_pickle_n_items (items); i++)
    {
      RnPickleValue *item = rn_pickle_item (items, i);
      if (items->kind == RN_PICKLE_DICT)
        rn_pickle_append (dict, item);
      else if (rn_pickle_n_items (item) != 2)
        return problem_with (problem, "a dict of something else than pairs");
      else
        {
          rn_pickle_append (dict, rn_pickle_item (item, 0));
          rn_pickle_append (dict, rn_pickle_item (item, 1));
        }
    }
  return dict;
}

RnPickleValue *
rn_pickle_call (RnPickleBuilder *builder, const RnPickleValue *callable, const RnPickleValue *args,
                char **problem)
{
  if (callable->kind != RN_PICKLE_GLOBAL)
    return problem_with (problem, "a call of something that is no global");
  if (args->kind != RN_PICKLE_TUPLE)
    return problem_with (problem, "a call without a tuple of arguments");

  switch (callable->global.role)
    {
    case RN_PICKLE_INERT:
      return rn_pickle_value_new (builder->pickle, RN_PICKLE_OBJECT);
    case RN_PICKLE_MAKES_DICT:
      return make_dict (builder, args, problem);
    case RN_PICKLE_MAKES_TUPLE:
      if (rn_pickle_n_items (args) != 1 || rn_pickle_item (args, 0)->kind != RN_PICKLE_TUPLE)
        return problem_with (problem, "a torch.Size of no tuple");
      return rn_pickle_item (args, 0);
    case RN_PICKLE_MAKES_TENSOR:
      return make_tensor (builder, args, FALSE, problem);
    case RN_PICKLE_MAKES_TENSOR_V3:
      return make_tensor (builder, args, TRUE, problem);
    case RN_PICKLE_MAKES_PARAMETER:
      if (rn_pickle_n_items (args) == 0 || rn_pickle_item (args, 0)->kind != RN_PICKLE_TENSOR)
        return problem_with (problem, "a parameter without a tensor");
      return rn_pickle_item (args, 0);
    case RN_PICKLE_STORAGE_TYPE:
    case RN_PICKLE_DTYPE:
      break;
    }
  return problem_with (problem, "a call of a type");
}

static RnPickleStorage *
find_storage (RnPickleBuilder *builder, const char *key, const RnWeightType *type, gsize bytes, guint *index)
{
  gpointer found;

  if (g_hash_table_lookup_extended (builder->storages, key, NULL, &found))
    {
      *index = GPOINTER_TO_UINT (found);
      RnPickleStorage *storage = g_ptr_array_index (builder->pickle->storages, *index);
      return storage->type == type && storage->bytes == bytes ? storage : NULL;
    }
  RnPickleStorage *storage = g_new0 (RnPickleStorage, 1);
  storage->key = g_strdup (key);
  storage->type = type;
  storage->bytes = bytes;
  *index = builder->pickle->storages->len;
  g_ptr_array_add (builder->pickle->storages, storage);
  g_hash_table_insert (builder->storages, storage->key, GUINT_TO_POINTER (*index));
  return storage;
}

/* (key, offset, size) in elements, or None. */
static gboolean
read_view (const RnPickleValue *view, const RnPickleStorage *storage, RnPickleValue *value)
{
  gsize start, size, end;

  if (view->kind == RN_PICKLE_NONE)
    return TRUE;
  if (view->kind != RN_PICKLE_TUPLE || rn_pickle_n_items (view) != 3
      || !get_size (rn_pickle_item (view, 1), &start) || !get_size (rn_pickle_item (view, 2), &size)
      || !g_size_checked_mul (&start, start, storage->type->bytes)
      || !g_size_checked_mul (&size, size, storage->type->bytes) || !g_size_checked_add (&end, start, size)
      || end > storage->bytes)
    return FALSE;
  value->storage.start = start;
  value->storage.bytes = size;
  return TRUE;
}

/* ("storage", type, key, location, elements) and, in the older format, a view. */
RnPickleValue *
rn_pickle_persistent (RnPickleBuilder *builder, const RnPickleValue *id, char **problem)
{
  guint n = id->kind == RN_PICKLE_TUPLE ? rn_pickle_n_items (id) : 0, index;
  const char *what = n > 0 ? rn_pickle_string (rn_pickle_item (id, 0)) : NULL;

  if (g_strcmp0 (what, "module") == 0)
    return problem_with (problem, "a whole pickled model; save its state_dict () instead");
  if (g_strcmp0 (what, "storage") != 0 || n < 5)
    return problem_with (problem, "a reference to something that is no storage");

  const RnPickleValue *type = rn_pickle_item (id, 1);
  const char *key = rn_pickle_string (rn_pickle_item (id, 2));
  gsize bytes;
  if (type->kind != RN_PICKLE_GLOBAL || type->global.role != RN_PICKLE_STORAGE_TYPE || key == NULL
      || *key == '\0' || strlen (key) > 64 || strpbrk (key, "/\\") != NULL || key[0] == '.')
    return problem_with (problem, "a storage without a sound type and key");
  if (!get_size (rn_pickle_item (id, 4), &bytes)
      || !g_size_checked_mul (&bytes, bytes, type->global.type->bytes) || bytes > G_MAXINT64)
    return problem_with (problem, "storage \"%s\" has no sound size", key);

  RnPickleStorage *storage = find_storage (builder, key, type->global.type, bytes, &index);
  if (storage == NULL)
    return problem_with (problem, "storage \"%s\" is described twice, differently", key);
  RnPickleValue *value = rn_pickle_value_new (builder->pickle, RN_PICKLE_STORAGE);
  value->storage.index = index;
  value->storage.bytes = bytes;
  if (n > 5 && !read_view (rn_pickle_item (id, 5), storage, value))
    return problem_with (problem, "a view that leaves storage \"%s\"", key);
  return value;
}
