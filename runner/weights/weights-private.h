/* weights-private.h: between rn_weights_open and the readers of each format. */
#ifndef RUNNER_WEIGHTS_WEIGHTS_PRIVATE_H
#define RUNNER_WEIGHTS_WEIGHTS_PRIVATE_H

#include "runner/safetensors.h"
#include "runner/weights/pickle.h"
#include "runner/weights/weights.h"

G_BEGIN_DECLS

/* Shapes are copied between the readers. */
G_STATIC_ASSERT (RN_PICKLE_MAX_DIMS == RN_WEIGHTS_MAX_DIMS);
G_STATIC_ASSERT (RN_SAFETENSORS_MAX_DIMS == RN_WEIGHTS_MAX_DIMS);

/* The bytes that tensors lie in. */
typedef struct
{
  guint64 place; /* zip: the number of the entry; else the offset in the file */
  gsize bytes;
  gboolean checked; /* zip: the checksum was compared */
  gboolean packed;  /* zip: compressed, so there is no seeking in it */
} RnWeightStorage;

typedef struct
{
  RnWeight weight; /* with an owned name */
  const RnWeightType *type;
  guint storage;
  gsize offset;                         /* of the first element in the storage, in bytes */
  int64_t strides[RN_WEIGHTS_MAX_DIMS]; /* in elements */
} RnWeightItem;

typedef struct _RnTorchZip RnTorchZip;

struct _RnWeights
{
  char *path;
  RnWeightsFormat format;
  int fd; /* reads, not a mapping: a file that shrinks meanwhile gives an error, not a signal */
  guint64 size;
  const RnSafetensors *lent; /* open already, and read instead of fd; or NULL */
  RnTorchZip *zip;           /* NULL unless the format is RN_WEIGHTS_TORCH_ZIP */
  GPtrArray *items;          /* of RnWeightItem */
  GPtrArray *ema;            /* the same, of the running mean; NULL if the file has none */
  GHashTable *names;         /* the set of the items' names, lent */
  GArray *storages;          /* of RnWeightStorage */
  GPtrArray *ignored;        /* of char *, with a final NULL once it is open */
  GPtrArray *classes;        /* the same; NULL if none */
  char *config;              /* or NULL */
};

/* Sets RN_CHECKPOINT_ERROR_DAMAGED, "PATH: text"; returns FALSE. */
gboolean rn_weights_damaged (const RnWeights *weights, GError **error, const char *format, ...)
    G_GNUC_PRINTF (3, 4);
/* @bytes at @offset of the file. */
gboolean rn_weights_read_at (const RnWeights *weights, guint64 offset, void *dst, gsize bytes,
                             GError **error);
/* Adds a tensor with name, type, dims and strides set, contiguous if @strides is NULL. */
gboolean rn_weights_add (RnWeights *weights, const char *name, const RnPickleTensor *tensor, GError **error);

/* The readers fill @weights. */
gboolean rn_weights_open_safetensors (RnWeights *weights, GError **error);
gboolean rn_weights_open_torch_zip (RnWeights *weights, GError **error);
gboolean rn_weights_open_torch_legacy (RnWeights *weights, GError **error);
gboolean rn_weights_is_torch_legacy (const guint8 *head, gsize n);

/* Finds the tensors in what torch.save pickled; items' storages are those of @pickle. */
gboolean rn_weights_take_pickle (RnWeights *weights, const RnPickle *pickle, GError **error);

/* @bytes at @offset of entry storage->place. */
gboolean rn_torch_zip_read (RnWeights *weights, RnWeightStorage *storage, gsize offset, void *dst,
                            gsize bytes, GError **error);
void rn_torch_zip_free (RnTorchZip *zip);

G_END_DECLS

#endif
