/*
 * params.h: the parameters and buffers of a model: names, shapes, and the flat arrays that hold values,
 * gradients, the optimizer's states and a running mean of the values.
 *
 * They are shared by all plans. Values live in plain layout (OIHW, vectors) at fixed offsets; every tensor
 * starts on a 64-byte border and the gaps are zero, so that norms and copies may run over the whole array.
 */
#ifndef GRAPH_PARAMS_H
#define GRAPH_PARAMS_H

#include <glib.h>
#include "graph/memory-options.h"
#include "kernels/device.h"

G_BEGIN_DECLS

typedef enum
{
  RN_PARAM_WEIGHT, /* learned, or frozen by requires_grad */
  RN_PARAM_BUFFER, /* running statistics: saved, never learned */
} RnParamKind;

typedef enum
{
  RN_INIT_CONSTANT, /* a */
  RN_INIT_NORMAL,   /* mean a, standard deviation b */
  RN_INIT_UNIFORM,  /* in [a, b), then rounded to float */
} RnInitKind;

typedef struct
{
  RnInitKind kind;
  double a, b;
} RnInit;

typedef struct
{
  char *name; /* as in MMDetection's state_dict: "backbone.layer1.0.conv1.weight" */
  RnParamKind kind;
  RnTensorDesc desc; /* F32 */
  gboolean trainable;
  gboolean is_norm, is_bias; /* for paramwise_cfg */
  RnInit init;
  gsize value_offset; /* bytes in values, from rn_param_set_allocate on */
  gsize grad_offset;  /* bytes in grads, likewise; trainable ones only */
  gsize state_offset; /* bytes in each state, likewise */
} RnParam;

typedef struct _RnParamSet RnParamSet;

RnParamSet *rn_param_set_new (void);
void rn_param_set_free (RnParamSet *set); /* also the arrays, on their device */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnParamSet, rn_param_set_free)

/*
 * Returns the index of parameter @name, adding it on first sight. Later calls (graphs of other shapes) must
 * give the same shape; a difference is a programmer's fault. Adding after rn_param_set_allocate is one too.
 */
int rn_param_set_intern (RnParamSet *set, const char *name, RnParamKind kind, const RnTensorDesc *desc,
                         gboolean trainable, RnInit init);
int rn_param_set_size (const RnParamSet *set);
const RnParam *rn_param_set_get (const RnParamSet *set, int i);
RnParam *rn_param_set_edit (RnParamSet *set, int i);
int rn_param_set_find (const RnParamSet *set, const char *name); /* -1 if unknown */

/*
 * Numbers of the set. Counts are elements of weights, without buffers; bytes include the 64-byte gaps.
 * Each state of the optimizer takes rn_param_set_state_bytes, a running mean rn_param_set_value_bytes.
 */
gint64 rn_param_set_n_elements (const RnParamSet *set, gboolean trainable_only);
int rn_param_set_n_weights (const RnParamSet *set); /* tensors of kind WEIGHT */
gsize rn_param_set_value_bytes (const RnParamSet *set);
gsize rn_param_set_grad_bytes (const RnParamSet *set);
gsize rn_param_set_state_bytes (const RnParamSet *set);

/* How the optimizer's states are stored, in single precision on the device if this is never called: before
 * graphs with steps of the optimizer are made, and before rn_param_set_allocate. */
void rn_param_set_store_states (RnParamSet *set, RnMomentumForm form);
RnDType rn_param_set_state_dtype (const RnParamSet *set);
gboolean rn_param_set_has_host_states (const RnParamSet *set); /* their addresses are of the host */

/* The most arrays that an optimizer keeps beside the gradients. */
#define RN_PARAM_MAX_STATES 3

/*
 * Allocates values on @device, gradients if @gradients, and @n_states arrays for the optimizer, all zero.
 * Errors: RN_DEVICE_ERROR_MEMORY.
 */
gboolean rn_param_set_allocate (RnParamSet *set, RnDevice *device, gboolean gradients, int n_states,
                                GError **error);
/* Allocates a running mean of all values, zero; after rn_param_set_allocate. */
gboolean rn_param_set_allocate_ema (RnParamSet *set, GError **error);
/* Draws the initial values: each tensor from its own stream keyed by (seed, hash of its name), so that order
 * and threads do not matter. */
gboolean rn_param_set_init (RnParamSet *set, guint64 seed, GError **error);

/* Device addresses; NULL before allocation, or for gradients and states of frozen tensors. */
void *rn_param_set_value (const RnParamSet *set, int i);
void *rn_param_set_grad (const RnParamSet *set, int i);
void *rn_param_set_state (const RnParamSet *set, int state, int i); /* @state: 0 to RN_PARAM_MAX_STATES - 1 */
void *rn_param_set_ema (const RnParamSet *set, int i);
/* The whole arrays. */
void *rn_param_set_all_values (const RnParamSet *set);
void *rn_param_set_all_grads (const RnParamSet *set);
void *rn_param_set_all_ema (const RnParamSet *set);
gboolean rn_param_set_zero_grads (RnParamSet *set, GError **error);

G_END_DECLS

#endif
