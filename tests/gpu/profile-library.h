/* profile-library.h: the real cuDNN for a device that is not there, by a file of kernels/cuda/profiles. */
#ifndef TESTS_GPU_PROFILE_LIBRARY_H
#define TESTS_GPU_PROFILE_LIBRARY_H

#include "kernels/cuda/conv-plan.h"

G_BEGIN_DECLS

/* The JSON of "t4". (transfer full) */
char *profile_text (const char *name);
/* @deterministic: else it plans for a measurement. (transfer full) */
RnConvLibrary *profile_library (const char *name, gboolean deterministic);

G_END_DECLS

#endif
