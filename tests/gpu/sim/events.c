/* events.c: entry points of the runtime for streams and events. */
#include "config.h"
#include "tests/gpu/sim/internal.h"

/* Waits for all of @stream. */
static void
finish (SimStream *stream)
{
  sim_streams_run (stream, stream->n_queued, false);
  sim_host_waited (&stream->clock, stream->time);
}

static bool
is_idle (const SimStream *stream)
{
  return stream->n_run == stream->n_queued;
}

/* ---- streams ---- */

cudaError_t
cudaStreamCreateWithFlags (cudaStream_t *stream, unsigned flags)
{
  SIM_LOCK ();
  cudaError_t error = sim_call ("cudaStreamCreateWithFlags");
  if (error != cudaSuccess)
    return error;
  if (flags != cudaStreamNonBlocking)
    {
      sim_fault (
          "cudaStreamCreateWithFlags: a stream that waits for the default stream; it must be non-blocking");
      return sim_return (cudaErrorInvalidValue);
    }
  *stream = sim_streams_new ();
  return cudaSuccess;
}

cudaError_t
cudaStreamDestroy (cudaStream_t stream)
{
  SIM_LOCK ();
  cudaError_t error = sim_call ("cudaStreamDestroy");
  if (!sim_streams_check (stream, "cudaStreamDestroy"))
    return sim_return (cudaErrorInvalidResourceHandle);
  if (!is_idle (stream) && !sim_has_failed ())
    sim_fault ("cudaStreamDestroy: work is queued on stream %u", stream->index);
  sim_streams_run (stream, stream->n_queued, false);
  stream->is_live = false;
  return error;
}

cudaError_t
cudaStreamSynchronize (cudaStream_t stream)
{
  SIM_LOCK ();
  cudaError_t error = sim_call ("cudaStreamSynchronize");
  if (error != cudaSuccess)
    return error;
  if (!sim_streams_check (stream, "cudaStreamSynchronize"))
    return sim_return (cudaErrorInvalidResourceHandle);
  finish (stream);
  return sim_return (sim_sticky_error ());
}

cudaError_t
cudaStreamQuery (cudaStream_t stream)
{
  SIM_LOCK ();
  cudaError_t error = sim_call ("cudaStreamQuery");
  if (error != cudaSuccess)
    return error;
  if (!sim_streams_check (stream, "cudaStreamQuery"))
    return sim_return (cudaErrorInvalidResourceHandle);
  sim_streams_run (stream, stream->n_queued, true);
  if (sim_sticky_error () != cudaSuccess)
    return sim_return (sim_sticky_error ());
  if (!is_idle (stream))
    return sim_return (cudaErrorNotReady);
  finish (stream);
  return cudaSuccess;
}

cudaError_t
cudaStreamWaitEvent (cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
  SIM_LOCK ();
  cudaError_t error = sim_call ("cudaStreamWaitEvent");
  if (error != cudaSuccess)
    return error;
  if (!sim_streams_check (stream, "cudaStreamWaitEvent") || !sim_events_check (event, "cudaStreamWaitEvent"))
    return sim_return (cudaErrorInvalidResourceHandle);
  if (flags != cudaEventWaitDefault)
    return sim_return (cudaErrorInvalidValue);
  /* An event that was never recorded lets everything pass. */
  if (event->mark)
    sim_streams_wait (stream, event->mark);
  return cudaSuccess;
}

cudaError_t
cudaDeviceSynchronize (void)
{
  SIM_LOCK ();
  cudaError_t error = sim_call ("cudaDeviceSynchronize");
  if (error != cudaSuccess)
    return error;
  const GPtrArray *streams = sim_streams_all ();
  for (guint i = 0; i < streams->len; i++)
    finish (streams->pdata[i]);
  return sim_return (sim_sticky_error ());
}

/* ---- events ---- */

cudaError_t
cudaEventCreateWithFlags (cudaEvent_t *event, unsigned flags)
{
  SIM_LOCK ();
  cudaError_t error = sim_call ("cudaEventCreateWithFlags");
  if (error != cudaSuccess)
    return error;
  if (flags & ~(unsigned) (cudaEventBlockingSync | cudaEventDisableTiming))
    return sim_return (cudaErrorInvalidValue);
  *event = sim_events_new (!(flags & cudaEventDisableTiming));
  return cudaSuccess;
}

cudaError_t
cudaEventDestroy (cudaEvent_t event)
{
  SIM_LOCK ();
  cudaError_t error = sim_call ("cudaEventDestroy");
  if (!sim_events_check (event, "cudaEventDestroy"))
    return sim_return (cudaErrorInvalidResourceHandle);
  event->is_live = false;
  return error;
}

cudaError_t
cudaEventRecord (cudaEvent_t event, cudaStream_t stream)
{
  SIM_LOCK ();
  cudaError_t error = sim_call ("cudaEventRecord");
  if (error != cudaSuccess)
    return error;
  if (!sim_streams_check (stream, "cudaEventRecord") || !sim_events_check (event, "cudaEventRecord"))
    return sim_return (cudaErrorInvalidResourceHandle);
  sim_streams_record (stream, event);
  return cudaSuccess;
}

/* The host learns what the last record of @event knows. */
static cudaError_t
await_event (SimEvent *event, bool is_query)
{
  SimMark *mark = event->mark;
  if (!mark)
    return cudaSuccess;
  if (!sim_mark_is_reached (mark))
    sim_streams_run (mark->stream, mark->position, is_query);
  if (sim_sticky_error () != cudaSuccess)
    return sim_sticky_error ();
  if (!sim_mark_is_reached (mark))
    return cudaErrorNotReady;
  sim_host_waited (&mark->clock, mark->time);
  return cudaSuccess;
}

cudaError_t
cudaEventQuery (cudaEvent_t event)
{
  SIM_LOCK ();
  cudaError_t error = sim_call ("cudaEventQuery");
  if (error != cudaSuccess)
    return error;
  if (!sim_events_check (event, "cudaEventQuery"))
    return sim_return (cudaErrorInvalidResourceHandle);
  return sim_return (await_event (event, true));
}

cudaError_t
cudaEventSynchronize (cudaEvent_t event)
{
  SIM_LOCK ();
  cudaError_t error = sim_call ("cudaEventSynchronize");
  if (error != cudaSuccess)
    return error;
  if (!sim_events_check (event, "cudaEventSynchronize"))
    return sim_return (cudaErrorInvalidResourceHandle);
  return sim_return (await_event (event, false));
}

cudaError_t
cudaEventElapsedTime (float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
  SIM_LOCK ();
  cudaError_t error = sim_call ("cudaEventElapsedTime");
  if (error != cudaSuccess)
    return error;
  if (!sim_events_check (start, "cudaEventElapsedTime") || !sim_events_check (end, "cudaEventElapsedTime"))
    return sim_return (cudaErrorInvalidResourceHandle);
  if (!start->has_timing || !end->has_timing || !start->mark || !end->mark)
    return sim_return (cudaErrorInvalidResourceHandle);
  if (!sim_mark_is_reached (start->mark) || !sim_mark_is_reached (end->mark))
    return sim_return (cudaErrorNotReady);
  *milliseconds = (float) (end->mark->time - start->mark->time);
  return cudaSuccess;
}
