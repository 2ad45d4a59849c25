/* torch-writer.h: PyTorch's .pth files (zip form), as torch.load (weights_only=True) reads them. */
#ifndef RUNNER_WEIGHTS_TORCH_WRITER_H
#define RUNNER_WEIGHTS_TORCH_WRITER_H

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

typedef struct _RnTorchWriter RnTorchWriter;

RnTorchWriter *rn_torch_writer_new (void);
void rn_torch_writer_free (RnTorchWriter *writer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnTorchWriter, rn_torch_writer_free)

/* Gives [bytes] of the tensor in row-major order, when the file is written. */
typedef gboolean (*RnTorchRead) (gpointer source, void *dst, gsize bytes, GError **error);

/* @type: as RnWeight.type. */
void rn_torch_writer_add (RnTorchWriter *writer, const char *name, const char *type, int rank,
                          const int64_t *dims, RnTorchRead read, gpointer source, GDestroyNotify free_source);
/* Goes to meta.CLASSES, as MMDetection writes it. */
void rn_torch_writer_set_classes (RnTorchWriter *writer, const char *const *classes);
/*
 * Writes {"meta": {...}, "state_dict": OrderedDict} if @with_meta (MMDetection's layout), else the plain
 * state dict (torchvision's). Through a temporary file. RN_CHECKPOINT_ERROR_WRITE.
 */
gboolean rn_torch_writer_save (RnTorchWriter *writer, const char *path, gboolean with_meta, GError **error);

G_END_DECLS

#endif
