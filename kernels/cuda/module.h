/*
 * module.h: what the module runner-cuda-1.so offers the program. The program opens the module at run time
 * (kernels/cuda-module.h); this table is all that they share, and both check its number.
 */
#ifndef KERNELS_CUDA_MODULE_H
#define KERNELS_CUDA_MODULE_H

#include "kernels/device.h"

G_BEGIN_DECLS

/* The symbol: const RnCudaModule *rn_cuda_module (void). */
#define RN_CUDA_MODULE_SYMBOL "rn_cuda_module"

typedef enum
{
  RN_CUDA_LAYOUT_AUTO, /* NHWC in half precision and TF32, NCHW in strict single precision */
  RN_CUDA_LAYOUT_NHWC,
  RN_CUDA_LAYOUT_NCHW,
} RnCudaLayout;

typedef struct
{
  int ordinal;            /* of the device */
  gboolean half;          /* the run computes in half precision */
  gboolean tf32;          /* convolutions in single precision may round their inputs to 10 bits */
  gboolean deterministic; /* engines by rank, nothing is measured */
  RnCudaLayout layout;
  const char *plan_file;  /* (nullable) chosen engines are read from it and written to it; lent */
  const char *cache_file; /* (nullable) engines that were chosen before on this machine; lent */
  const char *profile;    /* (nullable) JSON of a device that is not there: a device for plans alone; lent */
} RnCudaOptions;

/* One device, for `runner devices`. */
typedef struct
{
  char name[256];
  int capability[2]; /* major, minor */
  int n_multiprocessors;
  guint64 free_bytes, total_bytes;
  char driver[32], runtime[32], cudnn[32]; /* versions, "13.0" */
} RnCudaInfo;

typedef struct
{
  int number; /* RN_CUDA_MODULE_NUMBER of kernels/module-number.h, which is made of what both share */
  /* NULL with an error of domain RN_DEVICE_ERROR, code MISSING or MEMORY: one line, what is wrong and what
   * helps. */
  RnDevice *(*open) (const RnCudaOptions *options, GError **error);
  int (*count) (GError **error); /* devices; 0 with an error when none can be used */
  gboolean (*describe) (int ordinal, RnCudaInfo *info, GError **error);
  /* The device as cuDNN writes it down, JSON. (transfer full) */
  char *(*profile) (int ordinal, GError **error);
  const RnKernel *const *(*kernels) (void); /* for `runner ops`: NULL-ended */
} RnCudaModule;

const RnCudaModule *rn_cuda_module (void);

G_END_DECLS

#endif
