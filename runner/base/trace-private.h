/* trace-private.h: what trace.c records and trace-file.c writes. */
#ifndef RUNNER_BASE_TRACE_PRIVATE_H
#define RUNNER_BASE_TRACE_PRIVATE_H

#include "runner/base/trace.h"

G_BEGIN_DECLS

typedef enum
{
  RN_EVENT_SPAN,
  RN_EVENT_MARK,
  RN_EVENT_COUNTER,
} RnEventForm;

typedef struct
{
  RnEventForm form;
  RnTraceKind kind; /* of a span */
  int thread;
  gint64 start, duration; /* ns */
  double value;           /* of a counter */
  const char *name;       /* equal strings are one pointer */
  const char *args[RN_TRACE_MAX_ARGS];
} RnTraceEvent;

typedef struct
{
  GMutex lock; /* guards the rest */
  gint64 start;
  guint max_events;
  gint64 n_dropped;
  gboolean wants_shapes, wants_memory;
  GArray *events;        /* of RnTraceEvent, in the order of their ends; NULL: there is no trace */
  GArray *thread_names;  /* of const char *, by thread number */
  GStringChunk *strings; /* holds each string once */
} RnTrace;

/* The one of the process. */
extern RnTrace rn_trace;

extern const char *const rn_trace_kind_names[RN_TRACE_N_KINDS];
extern const char *const rn_trace_arg_names[RN_TRACE_N_KINDS][RN_TRACE_MAX_ARGS];

G_END_DECLS

#endif
