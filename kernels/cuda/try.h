/* try.h: steps of which each can fail. */
#ifndef KERNELS_CUDA_TRY_H
#define KERNELS_CUDA_TRY_H

#include "runner/base/error.h"

/* Returns the status of @call from the function that it stands in, unless it is RN_STATUS_OK. */
#define RN_TRY(call)               \
  do                               \
    {                              \
      RnStatus status_ = (call);   \
      if (status_ != RN_STATUS_OK) \
        return status_;            \
    }                              \
  while (0)

#endif
