/*
 * cuda-module.h: finds and opens runner-cuda-1.so, the module of the CUDA device. The program links no CUDA
 * library, and needs none until somebody asks for the device.
 */
#ifndef KERNELS_CUDA_MODULE_LOADER_H
#define KERNELS_CUDA_MODULE_LOADER_H

#include "kernels/cuda/module.h"

G_BEGIN_DECLS

/*
 * rn_cuda_module_get:
 *
 * The module, opened by the first call and kept. It is looked for at the path in RN_CUDA_MODULE, else where
 * the program was built, else where it is installed. From the main thread. Errors: RN_DEVICE_ERROR_MISSING,
 * one line: what is missing, the module or one of its libraries, and what helps.
 */
const RnCudaModule *rn_cuda_module_get (GError **error);

/* For tests: takes this one, which is linked in; NULL: looks for the module again. */
void rn_cuda_module_use (const RnCudaModule *module);

G_END_DECLS

#endif
