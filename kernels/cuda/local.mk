# The module of the CUDA device. Files are listed whether there is a toolkit or not, so that every archive has them.

# Convolutions: cuDNN and nothing else of the device. Tests link them with the library itself.
CUDA_CONV_SOURCES = \
  kernels/cuda/conv-engines.c kernels/cuda/conv-engines.h kernels/cuda/conv-graph.c kernels/cuda/conv-graph.h \
  kernels/cuda/conv-measure.c kernels/cuda/conv-plan.c kernels/cuda/conv-plan.h kernels/cuda/conv-private.h \
  kernels/cuda/conv-verify.c kernels/cuda/conv-verify.h kernels/cuda/cudnn.c kernels/cuda/cudnn.h \
  kernels/cuda/cudnn-descriptors.c kernels/cuda/cudnn-private.h kernels/cuda/plan-store.c kernels/cuda/plan-store.h \
  kernels/cuda/try.h

# C, with the flags of the rest.
CUDA_SOURCES = $(CUDA_CONV_SOURCES) kernels/cuda/conv-workspace.h kernels/cuda/device-cuda.c \
  kernels/cuda/device-cuda.h kernels/cuda/kernels.c kernels/cuda/kernels.h kernels/cuda/launch-elementwise.h \
  kernels/cuda/launch-loss.h kernels/cuda/launch-move.h kernels/cuda/launch-norm.h kernels/cuda/launch-normalize.h \
  kernels/cuda/launch-optim.h kernels/cuda/launch-pool.h kernels/cuda/launch-select.h kernels/cuda/launch-stats.h \
  kernels/cuda/launch-sums.h kernels/cuda/launch-weights.h kernels/cuda/launch.h kernels/cuda/map.h \
  kernels/cuda/module.c kernels/cuda/module.h kernels/cuda/ops-conv.c kernels/cuda/ops-elementwise.c \
  kernels/cuda/ops-loss.c kernels/cuda/ops-move.c kernels/cuda/ops-norm.c kernels/cuda/ops-normalize.c \
  kernels/cuda/ops-optim.c kernels/cuda/ops-pool.c kernels/cuda/ops-select.c kernels/cuda/ops-stats.c \
  kernels/cuda/results.c kernels/cuda/results.h kernels/cuda/staging.c kernels/cuda/staging.h kernels/cuda/startup.c \
  kernels/cuda/startup.h

# Kernels: nvcc compiles them for the module, and the C++ compiler for the simulated device (tests/gpu/local.mk).
CUDA_KERNELS = kernels/cuda/box-loss.cu kernels/cuda/channel-sums.cu kernels/cuda/elementwise.cu \
  kernels/cuda/focal.cu kernels/cuda/grad-stats.cu kernels/cuda/loss-value.cu kernels/cuda/move.cu \
  kernels/cuda/norm.cu kernels/cuda/normalize.cu kernels/cuda/optim.cu kernels/cuda/pool.cu kernels/cuda/topk.cu \
  kernels/cuda/weights.cu
CUDA_KERNEL_INCLUDES = kernels/cuda/kernel.cuh kernels/cuda/moments.cuh kernels/cuda/pack.cuh kernels/cuda/parts.cuh \
  kernels/cuda/rows.cuh kernels/cuda/workspace.h

# What the module has its own copy of: it is opened by a program that shows none of its symbols.
CUDA_SHARED_SOURCES = kernels/call-cache.h kernels/call-cache.c kernels/device.h kernels/device.c kernels/half.h \
  kernels/half.c kernels/trace-dispatch.h kernels/ops.def kernels/op.h kernels/op.c kernels/op-check.h \
  kernels/op-check.c kernels/op-check-maps.c kernels/op-cost.c runner/base/atomic-file.h runner/base/atomic-file.c \
  runner/base/error.h runner/base/error.c runner/base/folder.h runner/base/folder.c runner/base/json.h \
  runner/base/json.c runner/base/open-file.h runner/base/open-file.c

# Devices that need not be there, as cuDNN describes them: for plans.
cudaprofilesdir = $(pkgdatadir)/cuda/profiles
dist_cudaprofiles_DATA = \
  kernels/cuda/profiles/a100.json kernels/cuda/profiles/b200.json kernels/cuda/profiles/gtx1660.json \
  kernels/cuda/profiles/h200.json kernels/cuda/profiles/rtx3060.json kernels/cuda/profiles/rtx4090.json \
  kernels/cuda/profiles/rtx5090.json kernels/cuda/profiles/t4.json
# A program that is not installed looks for them where it was built.
noinst_DATA = cuda/profiles/stamp
CLEANFILES += cuda/profiles/stamp cuda/profiles/*.json
cuda/profiles/stamp: $(dist_cudaprofiles_DATA)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && for file in $(dist_cudaprofiles_DATA); do \
	  cp -f '$(srcdir)'/$$file $(@D)/ || exit 1; done && touch $@

EXTRA_DIST += $(CUDA_SOURCES) $(CUDA_KERNELS) $(CUDA_KERNEL_INCLUDES) kernels/cuda/module.map build-aux/nvcc-wrap.sh

if HAVE_CUDA
kernels/cuda/runner_cuda_1_la-module.lo: kernels/module-number.h
pkglib_LTLIBRARIES = runner-cuda-1.la
noinst_LTLIBRARIES += kernels/libcuda-shared.la

kernels_libcuda_shared_la_SOURCES = $(CUDA_SHARED_SOURCES)
kernels_libcuda_shared_la_CPPFLAGS = $(AM_CPPFLAGS)

runner_cuda_1_la_SOURCES = $(CUDA_SOURCES) $(CUDA_KERNELS) $(CUDA_KERNEL_INCLUDES)
runner_cuda_1_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS) -DRN_CUDA_ARCH='"$(CUDA_ARCH)"'
runner_cuda_1_la_LIBADD = kernels/libcuda-shared.la $(CUDA_LIBS) $(RN_LIBS)
runner_cuda_1_la_DEPENDENCIES = kernels/libcuda-shared.la $(srcdir)/kernels/cuda/module.map
runner_cuda_1_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared $(CUDA_RPATH) \
  -Wl,--version-script=$(srcdir)/kernels/cuda/module.map
if !SANITIZERS
runner_cuda_1_la_LDFLAGS += -Wl,-z,defs
endif

# Warnings are errors, as with --enable-werror, because nvcc has few of them. Objects are the same wherever and whenever
# they are made. One thread launches kernels. (libtool would take -Xcompiler for itself.)
CUDA_NVCCFLAGS = -std=c++17 -O2 -Werror all-warnings -Wdefault-stream-launch \
  --compiler-options=-Wall,-Wextra,-Wno-unused-parameter,-fvisibility=hidden,-fno-exceptions,-fno-threadsafe-statics \
  $(NVCC_SEED)$@
# Our headers include GLib's: as those of a system, since nvcc warns of attributes that it does not know.
NVCC_INCLUDES = `echo ' $(RN_CFLAGS)' | sed -e 's/ -I/ -isystem /g' -e 's/ -[^i][^ ]*//g'`
AM_V_NVCC = $(am__v_NVCC_@AM_V@)
am__v_NVCC_ = $(am__v_NVCC_@AM_DEFAULT_V@)
am__v_NVCC_0 = @echo "  NVCC    " $@;
am__v_NVCC_1 =

SUFFIXES = .cu .sim.cc
.cu.lo:
	$(AM_V_NVCC)$(MKDIR_P) $(@D) && $(LIBTOOL) $(AM_V_lt) --tag=CC $(AM_LIBTOOLFLAGS) $(LIBTOOLFLAGS) \
	  --mode=compile $(SHELL) $(top_srcdir)/build-aux/nvcc-wrap.sh '$(NVCC)' -shared \
	  -I$(top_builddir) -I$(top_srcdir) $(NVCC_INCLUDES) $(CUDA_NVCCFLAGS) $(CUDA_GENCODE) $(NVCCFLAGS) \
	  -MMD -MT $@ -MF $(@:.lo=.d) -c -o $@ $<

CLEANFILES += $(CUDA_KERNELS:.cu=.d)
-include $(CUDA_KERNELS:.cu=.d)
endif
