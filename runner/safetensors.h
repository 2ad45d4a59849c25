/*
 * safetensors.h: files of named tensors, readable by the `safetensors` library for Python.
 *
 * Eight bytes with the size of the header, little-endian; the header, JSON: name -> {dtype, shape,
 * data_offsets}, and "__metadata__" with texts; then the data, without gaps. Files that we write carry a
 * checksum (crc32c over header and data) as their first metadata entry; files from elsewhere have none.
 */
#ifndef RUNNER_SAFETENSORS_H
#define RUNNER_SAFETENSORS_H

#include <glib.h>
#include <runner/tensor.h>

G_BEGIN_DECLS

#define RN_SAFETENSORS_MAX_DIMS 8

/* ---- Reading ---- */

typedef struct
{
  char *name;
  const char *type; /* as in the file: "F32", "BF16", "F64", ... */
  gsize element_bytes;
  int rank;
  int64_t dims[RN_SAFETENSORS_MAX_DIMS];
  const guint8 *data; /* in the mapped file; not aligned */
  gsize bytes;
} RnStoredTensor;

typedef struct _RnSafetensors RnSafetensors;

/*
 * Maps @path and checks the header: every size, offset and shape, no overlap, no gap. Errors:
 * RN_CHECKPOINT_ERROR_MISSING, _DAMAGED.
 */
RnSafetensors *rn_safetensors_open (const char *path, GError **error);
/* The same for @size bytes in memory, lent for the life of the object; @name is for messages. */
RnSafetensors *rn_safetensors_open_memory (const void *bytes, gsize size, const char *name, GError **error);
void rn_safetensors_free (RnSafetensors *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnSafetensors, rn_safetensors_free)

const char *rn_safetensors_path (const RnSafetensors *file);
guint rn_safetensors_size (const RnSafetensors *file);
const RnStoredTensor *rn_safetensors_get (const RnSafetensors *file,
                                          guint i); /* in the order of their data */
const RnStoredTensor *rn_safetensors_find (const RnSafetensors *file, const char *name); /* NULL if absent */
const char *rn_safetensors_metadata (const RnSafetensors *file, const char *key);        /* NULL if absent */
/* Names of metadata that start with @prefix, sorted. (transfer container) */
GPtrArray *rn_safetensors_metadata_keys (const RnSafetensors *file, const char *prefix);
/* Reads everything and compares the checksum. A file without one passes. RN_CHECKPOINT_ERROR_DAMAGED. */
gboolean rn_safetensors_verify (const RnSafetensors *file, GError **error);

/* @tensor was read and will not be needed soon: its part of the file need not stay in memory. */
void rn_safetensors_forget (const RnSafetensors *file, const RnStoredTensor *tensor);

/* ---- Writing ---- */

/* Copies @size bytes at @offset of the tensor's data to @dst: tensors may live on a device, and are never all
 * copied at once. */
typedef gboolean (*RnTensorRead) (gpointer source, gsize offset, void *dst, gsize size, GError **error);

typedef struct _RnSafetensorsWriter RnSafetensorsWriter;

RnSafetensorsWriter *rn_safetensors_writer_new (void);
void rn_safetensors_writer_free (RnSafetensorsWriter *writer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnSafetensorsWriter, rn_safetensors_writer_free)

/* Later texts of the same key replace earlier ones. "checksum" is the writer's own. */
void rn_safetensors_writer_set_metadata (RnSafetensorsWriter *writer, const char *key, const char *value);
/* A tensor in plain layout (cblk 1). Names must differ. @free_source may be NULL. */
void rn_safetensors_writer_add (RnSafetensorsWriter *writer, const char *name, const RnTensorDesc *desc,
                                RnTensorRead read, gpointer source, GDestroyNotify free_source);
/* The same for any type, by its name in the file; @dims: [rank], at most RN_SAFETENSORS_MAX_DIMS. Their
 * product must fit into a gsize. */
void rn_safetensors_writer_add_typed (RnSafetensorsWriter *writer, const char *name, const char *type,
                                      gsize element_bytes, int rank, const int64_t *dims, RnTensorRead read,
                                      gpointer source, GDestroyNotify free_source);
/* Writes beside @path, then puts the file in its place at once. The tensors are read twice.
 * RN_CHECKPOINT_ERROR_WRITE; a RN_DEVICE_ERROR of a tensor's reader stays what it is. */
gboolean rn_safetensors_writer_save (RnSafetensorsWriter *writer, const char *path, GError **error);

G_END_DECLS

#endif
