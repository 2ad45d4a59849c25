/* trace-dispatch.h: does the environment ask why a kernel or an engine was chosen? */
#ifndef KERNELS_TRACE_DISPATCH_H
#define KERNELS_TRACE_DISPATCH_H

#include <glib.h>

G_BEGIN_DECLS

/* RN_TRACE is a comma-separated list of topics; "dispatch" is this one. */
static inline gboolean
rn_traces_dispatch (void)
{
  const char *topics = g_getenv ("RN_TRACE");
  if (topics == NULL)
    return FALSE;
  g_auto (GStrv) topic = g_strsplit (topics, ",", -1);
  return g_strv_contains ((const char *const *) topic, "dispatch");
}

G_END_DECLS

#endif
