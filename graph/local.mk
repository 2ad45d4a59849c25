# Sources of this folder.
librunner_internal_la_SOURCES += \
  graph/arena-check.c graph/arena-check.h \
  graph/build.c \
  graph/check.c \
  graph/cost.c graph/cost.h \
  graph/executor.c graph/executor.h \
  graph/graph.c graph/graph.h \
  graph/memory-options.h \
  graph/params.c graph/params.h \
  graph/pass-amp.c \
  graph/pass-depth-first.c \
  graph/pass-fold-bn.c \
  graph/pass-freeze.c \
  graph/pass-fuse-backward.c \
  graph/pass-fuse.c \
  graph/pass-gradient.c \
  graph/pass-keep.c \
  graph/pass-layout.c \
  graph/pass-mask-sums.c \
  graph/pass-normalize.c \
  graph/pass-offload.c \
  graph/pass-recompute.c \
  graph/pass-update.c \
  graph/passes.c graph/passes.h \
  graph/placement.c \
  graph/plan.c graph/plan.h \
  graph/print.c \
  graph/queues.c graph/queues.h \
  graph/recompute-search.c graph/recompute-segments.c graph/recompute.h \
  graph/update-graph.c graph/update-graph.h
