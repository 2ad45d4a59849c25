/* non-finite.c: where the first NaN or infinite value of a forward pass comes from. */
#include "config.h"

#include "runner/programs-private.h"

#include <string.h>

#define CHUNK 65536 /* bytes on the host at a time; a multiple of every element */

/* Non-finite elements among @n: the exponent's bits are all set. */
static gint64
count_non_finite (const guint8 *data, RnDType dtype, gsize n)
{
  gint64 found = 0;

  if (dtype == RN_F32)
    for (gsize i = 0; i < n; i++)
      {
        guint32 bits;
        memcpy (&bits, data + i * sizeof bits, sizeof bits);
        found += (bits & 0x7f800000) == 0x7f800000;
      }
  else
    for (gsize i = 0; i < n; i++)
      {
        guint16 bits, mask = dtype == RN_F16 ? 0x7c00 : 0x7f80;
        memcpy (&bits, data + i * sizeof bits, sizeof bits);
        found += (bits & mask) == mask;
      }
  return found;
}

/* In value @v as it lies; padding channels are zero. */
static gboolean
count_in_value (RnPrograms *p, const RnProgram *program, RnValueId v, gint64 *found, GError **error)
{
  const RnValue *value = rn_graph_value (program->plan->graph, v);
  const guint8 *address = rn_executor_address (program->executor, v);
  gsize size = rn_dtype_size (value->desc.dtype), bytes = rn_desc_bytes (&value->desc);
  guint8 chunk[CHUNK];

  *found = 0;
  if (value->desc.dtype != RN_F32 && value->desc.dtype != RN_F16 && value->desc.dtype != RN_BF16)
    return TRUE;
  for (gsize at = 0; at < bytes; at += CHUNK)
    {
      gsize n = MIN (bytes - at, CHUNK);
      RnStatus status = p->device->vtbl->copy_out (p->device, chunk, address + at, n);
      if (status != RN_STATUS_OK)
        {
          g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL,
                       "copying %s from the device failed: %s", value->name,
                       rn_device_fault (p->device, status));
          return FALSE;
        }
      *found += count_non_finite (chunk, value->desc.dtype, n / size);
    }
  return TRUE;
}

/* The first weight or buffer among the inputs of @op that is not finite itself, or RN_NO_VALUE. */
static gboolean
find_bad_param (RnPrograms *p, const RnProgram *program, const RnGraphOp *op, RnValueId *param,
                GError **error)
{
  *param = RN_NO_VALUE;
  for (int s = 0; s < RN_OP_MAX_IN && *param == RN_NO_VALUE; s++)
    {
      gint64 found;
      if (op->in[s] == RN_NO_VALUE
          || rn_graph_value (program->plan->graph, op->in[s])->kind != RN_VALUE_PARAM)
        continue;
      if (!count_in_value (p, program, op->in[s], &found, error))
        return FALSE;
      if (found > 0)
        *param = op->in[s];
    }
  return TRUE;
}

static gboolean
look_at_op (RnPrograms *p, const RnProgram *program, int i, char **where, GError **error)
{
  const RnGraph *graph = program->plan->graph;
  const RnGraphOp *op = rn_graph_op (graph, i);

  for (int s = 0; s < RN_OP_MAX_OUT; s++)
    {
      gint64 found;
      RnValueId param;
      /* Running statistics remember a NaN of earlier; the pass does not use them. */
      if (op->out[s] == RN_NO_VALUE || rn_graph_value (graph, op->out[s])->kind == RN_VALUE_PARAM)
        continue;
      if (!count_in_value (p, program, op->out[s], &found, error))
        return FALSE;
      if (found == 0)
        continue;
      if (op->op == RN_OP_NORMALIZE)
        {
          *where = g_strdup_printf ("the images of the batch: %" G_GINT64_FORMAT " pixel values", found);
          return TRUE;
        }
      if (!find_bad_param (p, program, op, &param, error))
        return FALSE;
      g_autofree char *text = rn_op_describe (&program->plan->calls[i]);
      *where = g_strdup_printf (
          "%s: %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " values are NaN or infinite after %s%s%s",
          op->scope, found, rn_desc_elements (&rn_graph_value (graph, op->out[s])->desc), text,
          param != RN_NO_VALUE ? ", whose parameter has such values from a step before: " : "",
          param != RN_NO_VALUE ? rn_param_set_get (p->params, rn_graph_value (graph, param)->param)->name
                               : "");
      return TRUE;
    }
  return TRUE;
}

/*
 * Whether op @i of the forward program is a part of the forward pass. A depth-first head has backward ops
 * there too: they would add to gradients that are complete, so they do not run, and neither does what moves
 * their results. @written: [values] by the ops that did.
 */
static gboolean
belongs_to_pass (const RnGraph *graph, int i, const gboolean *written)
{
  const RnGraphOp *op = rn_graph_op (graph, i);

  if (op->phase != RN_PHASE_FORWARD && op->phase != RN_PHASE_MOVE)
    return FALSE;
  for (int s = 0; s < RN_OP_MAX_IN; s++)
    {
      const RnValue *value = op->in[s] != RN_NO_VALUE ? rn_graph_value (graph, op->in[s]) : NULL;
      if (value != NULL && (value->kind == RN_VALUE_ACTIVATION || value->kind == RN_VALUE_GRADIENT)
          && !written[op->in[s]])
        return FALSE;
    }
  return TRUE;
}

static void
note_written (const RnGraph *graph, int i, gboolean *written)
{
  for (int s = 0; s < RN_OP_MAX_OUT; s++)
    if (rn_graph_op (graph, i)->out[s] != RN_NO_VALUE)
      written[rn_graph_op (graph, i)->out[s]] = TRUE;
}

static gboolean
look_at_ops (RnPrograms *p, const RnProgram *program, char **where, GError **error)
{
  const RnGraph *graph = program->plan->graph;
  g_autofree gboolean *written = g_new0 (gboolean, graph->values->len);

  for (int i = 0; i < graph->turn && *where == NULL; i++)
    {
      if (!belongs_to_pass (graph, i, written))
        continue;
      if (!rn_executor_run (program->executor, i, i + 1, error) || !look_at_op (p, program, i, where, error))
        return FALSE;
      note_written (graph, i, written);
    }
  return TRUE;
}

gboolean
rn_programs_find_non_finite (RnPrograms *p, const RnBatch *batch, char **where, GError **error)
{
  g_return_val_if_fail (p->reserved, FALSE);

  *where = NULL;
  p->current = NULL;
  RnShape shape = { RN_MODE_TRAIN, batch->n, batch->height, batch->width };
  RnProgram *program = rn_programs_prepare (p, shape, error);
  if (program == NULL || !rn_programs_copy_batch (p, program, batch, 1, error))
    return FALSE;
  return look_at_ops (p, program, where, error);
}
