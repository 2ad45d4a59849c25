/* Opening by content, reading by strides, converting. */
#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/weights/weights.h"

#include "runner/base/error.h"
#include "runner/base/file-kind.h"
#include "runner/base/open-file.h"
#include "runner/checkpoint.h"
#include "runner/weights/weights-private.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define EMA_PREFIX "ema/"

gboolean
rn_weights_damaged (const RnWeights *weights, GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  rn_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED, "%s: %s", weights->path, text);
  return FALSE;
}

gboolean
rn_weights_read_at (const RnWeights *weights, guint64 offset, void *dst, gsize bytes, GError **error)
{
  for (gsize done = 0; done < bytes;)
    {
      gssize n = pread (weights->fd, (char *) dst + done, bytes - done, (off_t) (offset + done));
      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0)
        return rn_weights_damaged (weights, error, "cannot read: %s", g_strerror (errno));
      if (n == 0)
        return rn_weights_damaged (weights, error, "it ends early, at byte %" G_GUINT64_FORMAT,
                                   offset + done);
      done += (gsize) n;
    }
  return TRUE;
}

gboolean
rn_weights_add (RnWeights *weights, const char *name, const RnPickleTensor *tensor, GError **error)
{
  if (g_hash_table_contains (weights->names, name))
    return rn_weights_damaged (weights, error, "two tensors are called \"%s\"", name);

  RnWeightItem *item = g_new0 (RnWeightItem, 1);
  item->weight.name = g_strdup (name);
  item->weight.type = tensor->type->name;
  item->weight.element_bytes = tensor->type->bytes;
  item->weight.rank = tensor->rank;
  item->weight.n = tensor->n;
  memcpy (item->weight.dims, tensor->dims, sizeof item->weight.dims);
  memcpy (item->strides, tensor->strides, sizeof item->strides);
  item->type = tensor->type;
  item->storage = tensor->storage;
  item->offset = tensor->offset;
  g_ptr_array_add (weights->items, item);
  g_hash_table_add (weights->names, (gpointer) item->weight.name);
  return TRUE;
}

static void
item_free (gpointer data)
{
  RnWeightItem *item = data;
  g_free ((char *) item->weight.name);
  g_free (item);
}

void
rn_weights_free (RnWeights *weights)
{
  if (weights == NULL)
    return;
  rn_torch_zip_free (weights->zip);
  if (weights->fd >= 0)
    close (weights->fd);
  g_hash_table_unref (weights->names);
  g_ptr_array_unref (weights->items);
  g_clear_pointer (&weights->ema, g_ptr_array_unref);
  g_ptr_array_unref (weights->ignored);
  g_clear_pointer (&weights->classes, g_ptr_array_unref);
  g_free (weights->config);
  g_array_unref (weights->storages);
  g_free (weights->path);
  g_free (weights);
}

/* ---- Opening ---- */

static gboolean
open_file (RnWeights *weights, GError **error)
{
  weights->fd = rn_open_regular (weights->path, &weights->size);
  if (weights->fd >= 0)
    return TRUE;
  rn_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISSING, "%s: %s", weights->path,
                errno == EISDIR ? "a folder, not a checkpoint" : rn_open_problem (errno));
  return FALSE;
}

static void
take_classes (RnWeights *weights, const char *lines)
{
  g_auto (GStrv) names = g_strsplit (lines, "\n", -1);

  weights->classes = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; names[i] != NULL; i++)
    if (names[i][0] != '\0')
      g_ptr_array_add (weights->classes, g_strdup (names[i]));
  if (weights->classes->len == 0)
    g_clear_pointer (&weights->classes, g_ptr_array_unref);
}

static gboolean
add_stored (RnWeights *weights, const RnStoredTensor *stored, guint64 place, GError **error)
{
  RnWeightStorage storage = { .place = place, .bytes = stored->bytes };
  RnPickleTensor tensor = { .type = rn_weight_type_by_name (stored->type),
                            .storage = weights->storages->len,
                            .rank = stored->rank,
                            .n = (int64_t) (stored->bytes / stored->element_bytes) };
  int64_t stride = 1;

  if (tensor.type == NULL)
    return rn_weights_damaged (weights, error, "tensor \"%s\" has dtype %s, which is not known", stored->name,
                               stored->type);
  for (int i = stored->rank; i-- > 0;)
    {
      tensor.dims[i] = stored->dims[i];
      tensor.strides[i] = stride;
      stride *= tensor.n > 0 ? stored->dims[i] : 1;
    }
  g_array_append_val (weights->storages, storage);
  return rn_weights_add (weights, stored->name, &tensor, error);
}

/* The bytes of "momentum/" and the like, which our checkpoints have before the names of what belongs to the
 * training; 0 for a weight. */
static gsize
state_length (gboolean is_ours, const char *name)
{
  const char *slash = is_ours ? strchr (name, '/') : NULL;
  return slash != NULL ? (gsize) (slash - name) + 1 : 0;
}

static void
note_ignored (RnWeights *weights, const char *name, gsize length)
{
  for (guint i = 0; i < weights->ignored->len; i++)
    if (strncmp (g_ptr_array_index (weights->ignored, i), name, length) == 0
        && ((const char *) g_ptr_array_index (weights->ignored, i))[length] == '\0')
      return;
  g_ptr_array_add (weights->ignored, g_strndup (name, length));
}

/* Those that are weights, or with @is_ema those of their running mean. @place: of the first tensor. */
static gboolean
add_all (RnWeights *weights, const RnSafetensors *file, guint64 place, gboolean is_ema, GError **error)
{
  gboolean is_ours =
      g_strcmp0 (rn_safetensors_metadata (file, RN_CHECKPOINT_FORMAT), RN_CHECKPOINT_FORMAT_NAME) == 0;

  for (guint i = 0; i < rn_safetensors_size (file); i++)
    {
      RnStoredTensor stored = *rn_safetensors_get (file, i);
      gsize length = state_length (is_ours, stored.name);
      gboolean is_wanted = is_ema ? length > 0 && g_str_has_prefix (stored.name, EMA_PREFIX) : length == 0;
      if (length > 0 && !is_ema)
        note_ignored (weights, stored.name, length - 1);
      stored.name += length;
      if (is_wanted && !add_stored (weights, &stored, place, error))
        return FALSE;
      place += stored.bytes;
    }
  return TRUE;
}

static void
exchange_ema (RnWeights *weights)
{
  GPtrArray *items = weights->items;
  weights->items = weights->ema;
  weights->ema = items;
}

/* Its names are those of the weights, so it has a list of its own. */
static gboolean
take_ema (RnWeights *weights, const RnSafetensors *file, guint64 place, GError **error)
{
  weights->ema = g_ptr_array_new_with_free_func (item_free);
  g_hash_table_remove_all (weights->names);
  exchange_ema (weights);
  gboolean is_ok = add_all (weights, file, place, TRUE, error);
  exchange_ema (weights);
  if (weights->ema->len == 0)
    g_clear_pointer (&weights->ema, g_ptr_array_unref);
  return is_ok;
}

void
rn_weights_use_ema (RnWeights *weights, const char *hint)
{
  if (weights->ema == NULL)
    return;
  exchange_ema (weights);
  g_clear_pointer (&weights->ema, g_ptr_array_unref);
  for (guint i = 0; i + 1 < weights->ignored->len; i++)
    if (strcmp (g_ptr_array_index (weights->ignored, i), "ema") == 0)
      {
        g_free (g_ptr_array_index (weights->ignored, i));
        g_ptr_array_index (weights->ignored, i) = g_strdup ("the weights without their mean");
      }
  g_message ("%s: its running mean of the weights is taken (ema/), as in the evaluations of its training%s%s",
             weights->path, hint != NULL ? "; " : "", hint != NULL ? hint : "");
}

/* @place: of the first tensor in the file. */
static gboolean
take_safetensors (RnWeights *weights, const RnSafetensors *file, guint64 place, GError **error)
{
  if (!add_all (weights, file, place, FALSE, error) || !take_ema (weights, file, place, error))
    return FALSE;
  const char *classes = rn_safetensors_metadata (file, RN_CHECKPOINT_CLASSES);
  if (classes != NULL)
    take_classes (weights, classes);
  weights->config = g_strdup (rn_safetensors_metadata (file, RN_CHECKPOINT_CONFIG));
  return weights->items->len > 0 || rn_weights_damaged (weights, error, "there is no tensor in it");
}

/* The header is read through a mapping that is given up at once, the data with rn_weights_read_at. */
gboolean
rn_weights_open_safetensors (RnWeights *weights, GError **error)
{
  g_autoptr (RnSafetensors) file = rn_safetensors_open (weights->path, error);

  if (file == NULL || !rn_safetensors_verify (file, error))
    return FALSE;
  guint64 place = weights->size;
  for (guint i = 0; i < rn_safetensors_size (file);
       i++) /* no gaps, so that the data are the end of the file */
    {
      gsize bytes = rn_safetensors_get (file, i)->bytes;
      if (bytes > place)
        return rn_weights_damaged (weights, error, "it changes while it is read");
      place -= bytes;
    }
  return take_safetensors (weights, file, place, error);
}

/* The header's size, 64-bit little-endian and below 2^32, and the brace of its JSON. */
static gboolean
is_safetensors (const guint8 *head, gsize n)
{
  return n > 8 && head[4] == 0 && head[5] == 0 && head[6] == 0 && head[7] == 0 && head[8] == '{';
}

static gboolean
open_by_content (RnWeights *weights, GError **error)
{
  guint8 head[RN_FILE_KIND_BYTES];
  gsize n = (gsize) MIN (weights->size, sizeof head);

  if (!rn_weights_read_at (weights, 0, head, n, error))
    return FALSE;
  if (n >= 4 && memcmp (head, "PK\3\4", 4) == 0)
    {
      weights->format = RN_WEIGHTS_TORCH_ZIP;
      return rn_weights_open_torch_zip (weights, error);
    }
  if (rn_weights_is_torch_legacy (head, n))
    {
      weights->format = RN_WEIGHTS_TORCH_LEGACY;
      return rn_weights_open_torch_legacy (weights, error);
    }
  if (is_safetensors (head, n))
    {
      weights->format = RN_WEIGHTS_SAFETENSORS;
      return rn_weights_open_safetensors (weights, error);
    }
  const char *what;
  rn_file_kind (head, n, &what);
  rn_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED,
                "%s is not a checkpoint: it is %s (expected .safetensors, or a .pth that torch.save wrote)",
                weights->path, what != NULL ? what : "data of an unknown kind");
  return FALSE;
}

static RnWeights *
weights_new (const char *path)
{
  RnWeights *weights = g_new0 (RnWeights, 1);

  weights->path = g_strdup (path);
  weights->fd = -1;
  weights->items = g_ptr_array_new_with_free_func (item_free);
  weights->names = g_hash_table_new (g_str_hash, g_str_equal);
  weights->ignored = g_ptr_array_new_with_free_func (g_free);
  weights->storages = g_array_new (FALSE, FALSE, sizeof (RnWeightStorage));
  return weights;
}

/* Ends the lists. */
static RnWeights *
finish (RnWeights *weights)
{
  g_ptr_array_add (weights->ignored, NULL);
  if (weights->classes != NULL)
    g_ptr_array_add (weights->classes, NULL);
  return weights;
}

RnWeights *
rn_weights_open (const char *path, GError **error)
{
  g_autoptr (RnWeights) weights = weights_new (path);

  if (!open_file (weights, error) || !open_by_content (weights, error))
    return NULL;
  return finish (g_steal_pointer (&weights));
}

RnWeights *
rn_weights_from_safetensors (const RnSafetensors *file, GError **error)
{
  g_autoptr (RnWeights) weights = weights_new (rn_safetensors_path (file));

  weights->format = RN_WEIGHTS_SAFETENSORS;
  weights->lent = file;
  if (!take_safetensors (weights, file, 0, error))
    return NULL;
  return finish (g_steal_pointer (&weights));
}

const char *
rn_weights_path (const RnWeights *weights)
{
  return weights->path;
}

RnWeightsFormat
rn_weights_format (const RnWeights *weights)
{
  return weights->format;
}

guint
rn_weights_size (const RnWeights *weights)
{
  return weights->items->len;
}

const RnWeight *
rn_weights_get (const RnWeights *weights, guint i)
{
  g_return_val_if_fail (i < weights->items->len, NULL);
  return &((RnWeightItem *) g_ptr_array_index (weights->items, i))->weight;
}

const char *const *
rn_weights_ignored (const RnWeights *weights)
{
  return (const char *const *) weights->ignored->pdata;
}

const char *const *
rn_weights_classes (const RnWeights *weights)
{
  return weights->classes != NULL ? (const char *const *) weights->classes->pdata : NULL;
}

const char *
rn_weights_config (const RnWeights *weights)
{
  return weights->config;
}

/* ---- Reading ---- */

static gboolean
read_storage (RnWeights *weights, const RnWeightItem *item, void *dst, gsize bytes, GError **error)
{
  RnWeightStorage *storage = &g_array_index (weights->storages, RnWeightStorage, item->storage);

  if (weights->lent != NULL)
    {
      const RnStoredTensor *stored = rn_safetensors_find (weights->lent, item->weight.name);
      memcpy (dst, stored->data + item->offset, bytes);
      rn_safetensors_forget (weights->lent, stored);
      return TRUE;
    }
  return weights->zip != NULL
             ? rn_torch_zip_read (weights, storage, item->offset, dst, bytes, error)
             : rn_weights_read_at (weights, storage->place + item->offset, dst, bytes, error);
}

/* Row-major without gaps; strides of dimensions of one element do not matter. */
static gboolean
is_contiguous (const RnWeightItem *item)
{
  int64_t stride = 1;

  for (int i = item->weight.rank; i-- > 0; stride *= item->weight.dims[i])
    if (item->weight.dims[i] > 1 && item->strides[i] != stride)
      return FALSE;
  return TRUE;
}

/* Elements of @src, which starts with the first one, in row-major order. */
static void
gather (const RnWeightItem *item, const char *src, char *dst)
{
  const RnWeight *weight = &item->weight;
  int64_t index[RN_WEIGHTS_MAX_DIMS] = { 0 }, at = 0;

  for (int64_t i = 0; i < weight->n; i++)
    {
      memcpy (dst + i * (int64_t) weight->element_bytes, src + at * (int64_t) weight->element_bytes,
              weight->element_bytes);
      for (int d = weight->rank; d-- > 0;)
        {
          at += item->strides[d];
          if (++index[d] < weight->dims[d])
            break;
          at -= index[d] * item->strides[d];
          index[d] = 0;
        }
    }
}

static gpointer
try_malloc (const RnWeights *weights, const RnWeightItem *item, gsize bytes, GError **error)
{
  gpointer memory = g_try_malloc (bytes);
  if (memory == NULL)
    rn_weights_damaged (weights, error, "no memory for the %" G_GSIZE_FORMAT " bytes of \"%s\"", bytes,
                        item->weight.name);
  return memory;
}

gboolean
rn_weights_read (RnWeights *weights, guint i, void *dst, GError **error)
{
  g_return_val_if_fail (i < weights->items->len, FALSE);

  const RnWeightItem *item = g_ptr_array_index (weights->items, i);
  const RnWeight *weight = &item->weight;
  if (weight->n == 0)
    return TRUE;
  if (is_contiguous (item))
    return read_storage (weights, item, dst, (gsize) weight->n * weight->element_bytes, error);

  gsize span = 1; /* inside the storage, as was checked */
  for (int d = 0; d < weight->rank; d++)
    span += (gsize) (weight->dims[d] - 1) * (gsize) item->strides[d];
  span *= weight->element_bytes;
  g_autofree char *src = try_malloc (weights, item, span, error);
  if (src == NULL || !read_storage (weights, item, src, span, error))
    return FALSE;
  gather (item, src, dst);
  return TRUE;
}

gboolean
rn_weights_read_f32 (RnWeights *weights, guint i, float *dst, GError **error)
{
  g_return_val_if_fail (i < weights->items->len, FALSE);

  const RnWeightItem *item = g_ptr_array_index (weights->items, i);
  gsize n = (gsize) item->weight.n;
  if (n == 0)
    return TRUE;
  g_autofree char *src = try_malloc (weights, item, n * item->weight.element_bytes, error);
  if (src == NULL || !rn_weights_read (weights, i, src, error))
    return FALSE;
  return rn_weight_type_to_f32 (item->type, src, n, dst)
         || rn_weights_damaged (weights, error, "\"%s\" has dtype %s, which has no conversion here",
                                item->weight.name, item->weight.type);
}
