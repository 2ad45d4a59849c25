/* cost.c: rates of kernels, and sums over plans. */
#include "config.h"

#include "graph/cost.h"

#include "kernels/half.h"

#include <string.h>

/* Of one kind of machine. */
typedef struct
{
  /* 1e9 multiply-adds per second and thread: convolutions in plain loops, their weight gradients, and with
   * Winograd's transform, whose multiply-adds are counted as if they were all done. */
  double direct, weights, winograd;
  /* How many times that in half precision: converted on the way, and where the processor multiplies it, with
   * 1x1 and with larger windows, which use again what they load. */
  double converted, native_1x1, native;
  double bandwidth; /* 1e9 bytes per second, all threads together */
  double link;      /* 1e9 bytes copied per second to or from host memory */
  double call;      /* seconds that a call takes however small it is */
} Rates;

/* The smallest times of tests/graph/bench-cost over RetinaNet R50 at 256x384 and 608x1024, two threads. */
static const Rates avx512 = { .direct = 90,
                              .weights = 60,
                              .winograd = 200,
                              .converted = 0.92,
                              .native_1x1 = 1.9,
                              .native = 3.3,
                              .bandwidth = 35,
                              .link = 12,
                              .call = 10e-6 };
/* Registers of half the length, slower memory; no Winograd and no products of half precision to count on. */
static const Rates avx2 = { .direct = 19,
                            .weights = 16,
                            .winograd = 34,
                            .converted = 0.9,
                            .native_1x1 = 1,
                            .native = 1,
                            .bandwidth = 18,
                            .link = 8,
                            .call = 10e-6 };
/* A card of the middle: its data sheet, of which convolutions reach half. */
static const Rates cuda = { .direct = 4000,
                            .weights = 4000,
                            .winograd = 4000,
                            .converted = 4,
                            .native_1x1 = 4,
                            .native = 4,
                            .bandwidth = 400,
                            .link = 12,
                            .call = 5e-6 };

/* Plain C, for every device. */
#define REF_RATE 0.5
/* Strided windows leave part of what they load unused. */
#define STRIDED_FACTOR 0.6

static gboolean
is_cuda (const RnDevice *device)
{
  return strcmp (device->vtbl->name, "cuda") == 0;
}

static const Rates *
rates_of (const RnDevice *device)
{
  if (is_cuda (device))
    return &cuda;
  return device->cblk >= 16 ? &avx512 : &avx2; /* the block is what a register holds */
}

/* 1e9 multiply-adds per second. */
static double
conv_rate (const RnDevice *device, const Rates *rates, const RnOpCall *call, const char *kernel)
{
  double rate = call->op == RN_OP_CONV2D_BWD_WEIGHTS ? rates->weights : rates->direct;

  if (g_str_has_prefix (kernel, "ref:"))
    return REF_RATE;
  if (strstr (kernel, "winograd") != NULL)
    rate = rates->winograd;
  else if (call->args.conv.kernel[0] > 1 && call->args.conv.stride[0] > 1)
    rate *= STRIDED_FACTOR;
  if (strstr (kernel, "bf16") != NULL)
    rate *= call->args.conv.kernel[0] == 1 ? rates->native_1x1 : rates->native;
  else if (rn_dtype_is_half (call->args.conv.compute))
    rate *= rates->converted;
  return rate * (is_cuda (device) ? 1 : device->n_threads);
}

double
rn_cost_op (const RnDevice *device, const RnOpCall *call, const RnPrepared *prepared)
{
  const Rates *rates = rates_of (device);
  RnOpCost cost = rn_op_cost (call);
  double seconds = (double) cost.bytes / (rates->bandwidth * 1e9);

  if (call->op == RN_OP_COPY)
    seconds = (double) rn_desc_bytes (&call->in[0]) / (rates->link * 1e9);
  else if (cost.macs > 0)
    seconds =
        MAX (seconds, (double) cost.macs / (conv_rate (device, rates, call, prepared->kernel->name) * 1e9));
  return seconds + rates->call;
}

double
rn_cost_plan (const RnPlan *plan)
{
  double seconds = 0;

  for (guint i = 0; i < plan->graph->ops->len; i++)
    seconds += rn_cost_op (plan->device, &plan->calls[i], &plan->prepared[i]);
  return seconds;
}

RnPlanWork
rn_cost_work (const RnPlan *plan)
{
  RnPlanWork work = { 0 };

  for (guint i = 0; i < plan->graph->ops->len; i++)
    {
      gint64 macs = rn_op_cost (&plan->calls[i]).macs;
      if (rn_graph_op (plan->graph, (int) i)->phase == RN_PHASE_RECOMPUTE)
        work.recompute += macs;
      else
        work.step += macs;
    }
  return work;
}

double
rn_plan_work_extra (const RnPlanWork *work)
{
  return work->step > 0 ? 100.0 * (double) work->recompute / (double) work->step : 0;
}
