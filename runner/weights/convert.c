#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/weights/convert.h"

#include "runner/base/error.h"
#include "runner/base/open-file.h"
#include "runner/base/size.h"
#include "runner/checkpoint.h"
#include "runner/safetensors.h"
#include "runner/weights/torch-writer.h"

#include <math.h>
#include <string.h>

#define HALF "F16"
#define FIRST_OVERFLOW 65520.0f /* rounds to 2^16, which half precision does not have */
#define NAME_WIDTH 48

/* A tensor on its way. */
typedef struct
{
  const RnMappedWeight *tensor;
  const RnWeight *weight;
  const char *type; /* in the new file */
  gsize element_bytes, bytes;
} Item;

typedef struct
{
  RnNameMap *map;
  GArray *items; /* of Item */

  /* for writers that ask for parts: the tensor that was asked for last */
  const Item *cached;
  guint8 *cache;
  gsize cache_bytes;
} Conversion;

static void
conversion_clear (Conversion *conversion)
{
  g_clear_pointer (&conversion->items, g_array_unref);
  g_clear_pointer (&conversion->map, rn_name_map_free);
  g_clear_pointer (&conversion->cache, g_free);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Conversion, conversion_clear)

/* ---- half precision ---- */

guint16
rn_half_from_float (float value)
{
  guint32 bits, size;
  memcpy (&bits, &value, sizeof bits);
  guint16 sign = (bits >> 16) & 0x8000;
  size = bits & 0x7fffffff;

  if (size > 0x7f800000) /* no number */
    return sign | 0x7e00;
  if (fabsf (value) >= FIRST_OVERFLOW)
    return sign | 0x7c00;
  if (size < 0x38800000) /* below 2^-14: multiples of 2^-24, which are the steps of floats in [0.5, 1) */
    {
      float sum = fabsf (value) + 0.5f;
      memcpy (&size, &sum, sizeof size);
      return sign | (guint16) (size - 0x3f000000);
    }
  size += 0xfff + ((size >> 13) & 1);
  return sign | (guint16) ((size - 0x38000000) >> 13);
}

static gboolean
can_be_half (const RnWeight *weight)
{
  static const char *const types[] = { "F32", "BF16", "F64", NULL };
  return g_strv_contains (types, weight->type);
}

static float *
read_floats (const Conversion *conversion, const Item *item, GError **error)
{
  g_autofree float *values = g_try_new (float, MAX (item->tensor->n, 1));
  if (values == NULL)
    g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY, "%s: no memory for %s",
                 rn_weights_path (conversion->map->weights), item->weight->name);
  if (values == NULL || !rn_mapped_read_f32 (conversion->map, item->tensor, values, error))
    return NULL;
  return g_steal_pointer (&values);
}

/* Makes @item half precision if its values can be. A double may be finite where its float is not. */
static gboolean
try_half (const Conversion *conversion, Item *item, GError **error)
{
  g_autofree float *values = read_floats (conversion, item, error);
  gboolean is_double = strcmp (item->type, "F64") == 0;
  gint64 n_too_large = 0, n_not_finite = 0;

  if (values == NULL)
    return FALSE;
  for (int64_t i = 0; i < item->tensor->n; i++)
    {
      gboolean is_too_large = fabsf (values[i]) >= FIRST_OVERFLOW && (is_double || isfinite (values[i]));
      n_too_large += is_too_large;
      n_not_finite += !is_too_large && !isfinite (values[i]);
    }
  if (n_not_finite > 0)
    g_warning ("%s: %" G_GINT64_FORMAT " infinities or no numbers", item->tensor->name, n_not_finite);
  if (n_too_large > 0)
    {
      g_warning ("%s: %" G_GINT64_FORMAT " values are too large for half precision, so it stays %s",
                 item->tensor->name, n_too_large, item->type);
      return TRUE;
    }
  item->type = HALF;
  item->element_bytes = sizeof (guint16);
  return TRUE;
}

/* ---- reading ---- */

/* All of the new tensor. @dst: [bytes] */
static gboolean
produce (const Conversion *conversion, const Item *item, void *dst, GError **error)
{
  if (item->type == item->weight->type)
    return rn_mapped_read (conversion->map, item->tensor, dst, error);
  g_autofree float *values = read_floats (conversion, item, error);
  for (int64_t i = 0; values != NULL && i < item->tensor->n; i++)
    {
      guint16 half = GUINT16_TO_LE (rn_half_from_float (values[i]));
      memcpy ((guint8 *) dst + i * (int64_t) sizeof half, &half, sizeof half);
    }
  return values != NULL;
}

typedef struct
{
  Conversion *conversion;
  const Item *item;
} Source;

static gboolean
read_whole (gpointer data, void *dst, gsize bytes, GError **error)
{
  const Source *source = data;
  g_assert (bytes == source->item->bytes);
  return produce (source->conversion, source->item, dst, error);
}

static gboolean
read_part (gpointer data, gsize offset, void *dst, gsize size, GError **error)
{
  const Source *source = data;
  Conversion *conversion = source->conversion;

  if (conversion->cached != source->item)
    {
      conversion->cached = NULL;
      if (conversion->cache_bytes < source->item->bytes)
        {
          g_free (conversion->cache);
          conversion->cache_bytes = 0;
          conversion->cache = g_try_malloc (source->item->bytes);
          if (conversion->cache == NULL)
            {
              g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY, "no memory for %s",
                           source->item->tensor->name);
              return FALSE;
            }
          conversion->cache_bytes = source->item->bytes;
        }
      if (!produce (conversion, source->item, conversion->cache, error))
        return FALSE;
      conversion->cached = source->item;
    }
  memcpy (dst, conversion->cache + offset, size);
  return TRUE;
}

static Source *
source_new (Conversion *conversion, const Item *item)
{
  Source *source = g_new (Source, 1);
  *source = (Source){ conversion, item };
  return source;
}

/* ---- the conversion ---- */

static gboolean
fill (Conversion *conversion, RnWeights *weights, const RnConvertOptions *options, GError **error)
{
  conversion->items = g_array_new (FALSE, TRUE, sizeof (Item));
  conversion->map = rn_name_map_new (weights, NULL, options->names, error);
  if (conversion->map == NULL)
    return FALSE;
  for (guint i = 0; i < conversion->map->tensors->len; i++)
    {
      const RnMappedWeight *tensor = rn_name_map_get (conversion->map, i);
      const RnWeight *weight = rn_weights_get (weights, tensor->index);
      Item item = { tensor, weight, weight->type, weight->element_bytes, 0 };
      if (options->is_half && can_be_half (weight) && !try_half (conversion, &item, error))
        return FALSE;
      if (!g_size_checked_mul (&item.bytes, (gsize) tensor->n, item.element_bytes))
        {
          g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED, "%s: %s is too large",
                       rn_weights_path (weights), weight->name);
          return FALSE;
        }
      g_array_append_val (conversion->items, item);
    }
  if (conversion->items->len > 0)
    return TRUE;
  g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH, "%s: holds no weights",
               rn_weights_path (weights));
  return FALSE;
}

static gboolean
save_safetensors (Conversion *conversion, const char *const *classes, const char *path, GError **error)
{
  g_autoptr (RnSafetensorsWriter) writer = rn_safetensors_writer_new ();

  rn_safetensors_writer_set_metadata (writer, "format", "pt"); /* what other readers look for */
  if (classes != NULL)
    {
      g_autofree char *text = g_strjoinv ("\n", (char **) classes);
      rn_safetensors_writer_set_metadata (writer, RN_CHECKPOINT_CLASSES, text);
    }
  const char *config = rn_weights_config (conversion->map->weights);
  if (config != NULL)
    rn_safetensors_writer_set_metadata (writer, RN_CHECKPOINT_CONFIG, config);
  for (guint i = 0; i < conversion->items->len; i++)
    {
      const Item *item = &g_array_index (conversion->items, Item, i);
      rn_safetensors_writer_add_typed (writer, item->tensor->name, item->type, item->element_bytes,
                                       item->weight->rank, item->tensor->dims, read_part,
                                       source_new (conversion, item), g_free);
    }
  return rn_safetensors_writer_save (writer, path, error);
}

static gboolean
save_torch (Conversion *conversion, const char *const *classes, const char *path, GError **error)
{
  g_autoptr (RnTorchWriter) writer = rn_torch_writer_new ();

  if (classes != NULL)
    rn_torch_writer_set_classes (writer, classes);
  for (guint i = 0; i < conversion->items->len; i++)
    {
      const Item *item = &g_array_index (conversion->items, Item, i);
      rn_torch_writer_add (writer, item->tensor->name, item->type, item->weight->rank, item->tensor->dims,
                           read_whole, source_new (conversion, item), g_free);
    }
  return rn_torch_writer_save (writer, path, classes != NULL, error);
}

static void
log_left_out (const RnWeights *weights)
{
  g_autofree char *ignored = g_strjoinv (", ", (char **) rn_weights_ignored (weights));

  if (*ignored != '\0')
    g_message ("left out: %s", ignored);
}

/* "53 I64, 322 F32" (transfer full) */
static char *
count_types (const char *const *types, guint n)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < n; i++)
    {
      guint first = 0, count = 0;
      while (strcmp (types[first], types[i]) != 0)
        first++;
      if (first != i)
        continue;
      for (guint k = i; k < n; k++)
        count += strcmp (types[k], types[i]) == 0;
      g_string_append_printf (text, "%s%u %s", i > 0 ? ", " : "", count, types[i]);
    }
  return g_string_free (text, FALSE);
}

static char *
describe (const char *path, const Conversion *conversion)
{
  g_autoptr (GPtrArray) types = g_ptr_array_new ();
  guint64 bytes = 0;

  for (guint i = 0; i < conversion->items->len; i++)
    {
      const Item *item = &g_array_index (conversion->items, Item, i);
      g_ptr_array_add (types, (gpointer) item->type);
      bytes += item->bytes;
    }
  g_autofree char *counts = count_types ((const char *const *) types->pdata, types->len),
                  *size = rn_size_format (bytes);
  return g_strdup_printf ("%s: %u tensors (%s), %s", path, types->len, counts, size);
}

char *
rn_weights_convert (RnWeights *weights, const char *path, const RnConvertOptions *options, GError **error)
{
  g_auto (Conversion) conversion = { 0 };
  gboolean is_safetensors = g_str_has_suffix (path, ".safetensors");
  const char *const *classes = rn_weights_classes (weights);

  if (!is_safetensors && !g_str_has_suffix (path, ".pth") && !g_str_has_suffix (path, ".pt"))
    {
      g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE,
                   "%s: the name must end in .safetensors, .pth or .pt, which says what is written", path);
      return NULL;
    }
  if (rn_is_same_file (path, rn_weights_path (weights)))
    {
      g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE,
                   "%s is the file that is read; give the new one another name", path);
      return NULL;
    }
  if (!fill (&conversion, weights, options, error))
    return NULL;
  log_left_out (weights);
  if (!is_safetensors && options->names == RN_NAMES_TO_TORCHVISION && classes != NULL)
    {
      g_message ("left out: the class names, for which torchvision's files have no place");
      classes = NULL;
    }
  if (!(is_safetensors ? save_safetensors : save_torch) (&conversion, classes, path, error))
    return NULL;
  return describe (path, &conversion);
}

char *
rn_weights_list (const RnWeights *weights)
{
  GString *text = g_string_new (NULL);
  g_autoptr (GPtrArray) types = g_ptr_array_new ();
  guint64 bytes = 0;

  for (guint i = 0; i < rn_weights_size (weights); i++)
    {
      const RnWeight *weight = rn_weights_get (weights, i);
      g_autofree char *name = rn_printable (weight->name, FALSE);
      g_string_append_printf (text, "%-*s %-5s ", NAME_WIDTH, name, weight->type);
      for (int d = 0; d < weight->rank; d++)
        g_string_append_printf (text, "%s%" G_GINT64_FORMAT, d > 0 ? "x" : "", weight->dims[d]);
      g_string_append (text, weight->rank == 0 ? "scalar\n" : "\n");
      g_ptr_array_add (types, (gpointer) weight->type);
      bytes += (guint64) weight->n * weight->element_bytes;
    }
  g_autofree char *counts = count_types ((const char *const *) types->pdata, types->len),
                  *size = rn_size_format (bytes);
  g_string_append_printf (text, "%u tensors (%s), %s\n", types->len, counts, size);
  return g_string_free (text, FALSE);
}
