librunner_internal_la_SOURCES += kernels/ops.def kernels/op.h kernels/op.c kernels/op-check.h kernels/op-check.c \
  kernels/op-check-maps.c kernels/op-cost.c kernels/call-cache.h kernels/call-cache.c kernels/device.h \
  kernels/device.c kernels/kernel-table.h kernels/kernel-table.c kernels/no-memory.h kernels/plan-device.h \
  kernels/plan-device.c kernels/cuda/workspace.h kernels/half.h kernels/half.c kernels/host-memory.h \
  kernels/host-memory.c kernels/topk-key.h kernels/trace-dispatch.h

# The CUDA device is a module; the program only knows where it is.
librunner_internal_la_SOURCES += kernels/cuda-module.c kernels/cuda-module.h kernels/cuda/module.h
nodist_librunner_internal_la_SOURCES = kernels/module-dir.h
CLEANFILES += kernels/module-dir.h
kernels/module-dir.h: Makefile
	$(AM_V_GEN)$(MKDIR_P) kernels && echo '#define RN_MODULE_DIR "$(pkglibdir)"' > $@.tmp \
	  && { cmp -s $@.tmp $@ && rm $@.tmp || mv $@.tmp $@; }
kernels/cuda-module.lo: kernels/module-dir.h kernels/module-number.h

# Program and module share these files: a number of what they say tells whether both are of one build.
MODULE_INTERFACE = kernels/call-cache.h kernels/cuda/module.h kernels/device.h kernels/op.h kernels/ops.def runner/tensor.h
CLEANFILES += kernels/module-number.h
kernels/module-number.h: $(MODULE_INTERFACE)
	$(AM_V_GEN)$(MKDIR_P) kernels && cd '$(srcdir)' && sum=`cat $(MODULE_INTERFACE) | cksum | sed 's/ .*//'` \
	  && cd '$(abs_builddir)' && echo "#define RN_CUDA_MODULE_NUMBER $$((sum % 1000000000))" > $@

# Plain C, the oracle.
librunner_internal_la_SOURCES += kernels/ref/conv.c kernels/ref/elementwise.c kernels/ref/ema.c \
  kernels/ref/grad-stats.c kernels/ref/losses.c kernels/ref/move.c kernels/ref/norm.c kernels/ref/normalize.c \
  kernels/ref/optim.c kernels/ref/pool.c kernels/ref/topk.c

librunner_internal_la_SOURCES += kernels/cpu/device-cpu.h kernels/cpu/device-cpu.c kernels/cpu/parallel.h \
  kernels/cpu/planes.h kernels/cpu/rows.h kernels/cpu/strips.h kernels/cpu/vector-math.h kernels/cpu/box-loss.c \
  kernels/cpu/elementwise.c kernels/cpu/ema.c kernels/cpu/focal.c kernels/cpu/grad-stats.c kernels/cpu/move.c \
  kernels/cpu/norm.c kernels/cpu/normalize.c kernels/cpu/optim.c kernels/cpu/pool.c kernels/cpu/topk.c

if HAVE_ONEDNN
librunner_internal_la_SOURCES += \
  kernels/cpu/onednn.h kernels/cpu/onednn.c kernels/cpu/weights-map.h kernels/cpu/weights-map.c \
  kernels/cpu/conv-core.h kernels/cpu/conv-core.c kernels/cpu/conv.c \
  kernels/cpu/conv-copy.h kernels/cpu/conv-copy.c kernels/cpu/conv-half.h kernels/cpu/conv-half.c
endif
