/*
 * weights.h: named tensors from a file of any kind that people bring: safetensors, PyTorch .pth as a zip
 * archive (1.6 and later) or as the older plain pickle. Told apart by content, not by name.
 *
 * Nothing in a file is executed or trusted: the pickle reader knows the few opcodes and globals that
 * checkpoints use and refuses all others by name; sizes and offsets are checked before use.
 */
#ifndef RUNNER_WEIGHTS_WEIGHTS_H
#define RUNNER_WEIGHTS_WEIGHTS_H

#include <glib.h>
#include <stdint.h>
#include "runner/safetensors.h"

G_BEGIN_DECLS

#define RN_WEIGHTS_MAX_DIMS 8

typedef enum
{
  RN_WEIGHTS_SAFETENSORS,
  RN_WEIGHTS_TORCH_ZIP,
  RN_WEIGHTS_TORCH_LEGACY,
} RnWeightsFormat;

typedef struct
{
  const char *name; /* key of the state dict, as in the file; a nested dict's keys are joined by "." */
  const char *type; /* safetensors' names: "F32", "F16", "BF16", "F64", "I64", "U8", "BOOL", ... */
  gsize element_bytes;
  int rank;
  int64_t dims[RN_WEIGHTS_MAX_DIMS];
  int64_t n; /* elements */
} RnWeight;

typedef struct _RnWeights RnWeights;

/*
 * Opens @path and reads its index; data stay in the file until they are read. Errors:
 * RN_CHECKPOINT_ERROR_MISSING (not there, a folder, a pipe), _DAMAGED (says what is wrong, and for a pickle,
 * which opcode or global was refused).
 *
 * From a PyTorch file: the tensors of `state_dict` or `model` if the top-level dict has one of them, else its
 * own. Optimizer states and the rest are left out, and named by rn_weights_ignored.
 */
RnWeights *rn_weights_open (const char *path, GError **error);
/* The same of a file that is open, and whose checksum was compared: @file is lent, and not read twice. */
RnWeights *rn_weights_from_safetensors (const RnSafetensors *file, GError **error);
void rn_weights_free (RnWeights *weights);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnWeights, rn_weights_free)

/*
 * Where the file is a checkpoint of ours with a running mean of the weights (EMA), says so and goes on with
 * that in their place: it is what the evaluations of the training saw. Before anything is read. @hint:
 * (nullable) how to get the weights themselves, for the message.
 */
#define RN_WEIGHTS_NO_EMA "--no-ema takes the weights themselves"
void rn_weights_use_ema (RnWeights *weights, const char *hint);

const char *rn_weights_path (const RnWeights *weights);
RnWeightsFormat rn_weights_format (const RnWeights *weights);
guint rn_weights_size (const RnWeights *weights);
const RnWeight *rn_weights_get (const RnWeights *weights, guint i); /* in the order of the file */
/* Top-level entries that were left out ("optimizer", "meta", "epoch"; of ours "momentum", "ema"), NULL-ended.
 * Lent. */
const char *const *rn_weights_ignored (const RnWeights *weights);
/* Class names that the file states (MMDetection: meta.CLASSES; ours: metadata), NULL-ended; NULL if none.
 * Lent. */
const char *const *rn_weights_classes (const RnWeights *weights);

/* The configuration, as YAML, that the weights were trained with, where the file is one of ours; or NULL.
 * Lent. */
const char *rn_weights_config (const RnWeights *weights);

/*
 * The elements of tensor @i in row-major order, whatever strides the file has: rn_weights_read as they are
 * stored ([n * element_bytes] little-endian), rn_weights_read_f32 converted ([n]; F16, BF16, F64 and integers
 * too).
 */
gboolean rn_weights_read (RnWeights *weights, guint i, void *dst, GError **error);
gboolean rn_weights_read_f32 (RnWeights *weights, guint i, float *dst, GError **error);

G_END_DECLS

#endif
