/* internal.h: what the parts of the simulated runtime share among themselves. */
#ifndef TESTS_GPU_SIM_INTERNAL_H
#define TESTS_GPU_SIM_INTERNAL_H

#include <glib.h>
#include "tests/gpu/sim/sim.h"

#if defined(__has_feature) && !defined(__SANITIZE_ADDRESS__)
  #if __has_feature(address_sanitizer)
    #define __SANITIZE_ADDRESS__ 1
  #endif
#endif
/* What instrumented code may not touch, to the byte. */
#ifdef __SANITIZE_ADDRESS__
  #include <sanitizer/asan_interface.h>
  #define POISON(address, bytes) __asan_poison_memory_region (address, bytes)
  #define UNPOISON(address, bytes) __asan_unpoison_memory_region (address, bytes)
#else
  #define POISON(address, bytes) ((void) (address), (void) (bytes))
  #define UNPOISON(address, bytes) ((void) (address), (void) (bytes))
#endif

G_BEGIN_DECLS

/* ---- config.c ---- */

/* One lock for all: held by every entry point and while queued work runs. */
extern GRecMutex sim_mutex;
#define SIM_LOCK() g_autoptr (GRecMutexLocker) sim_lock G_GNUC_UNUSED = g_rec_mutex_locker_new (&sim_mutex)

/* What a model of GPU says of itself. */
typedef struct
{
  const char *key, *name;
  int capability[2];
  int n_multiprocessors;
  gsize shared_optin; /* bytes of shared memory that a block can ask for */
  int blocks_per_sm, threads_per_sm;
  gsize l2_bytes, memory_bytes;
  int clock_khz, memory_clock_khz, bus_bits;
} SimModel;

const SimModel *sim_model (void);
/* Starts with what the environment says, unless something runs already. */
void sim_start (void);
/* Keeps @error for cudaGetLastError, and returns it. */
cudaError_t sim_return (cudaError_t error);
cudaError_t sim_last_error (bool forget);
/* The error that has ended the context, or cudaSuccess. */
cudaError_t sim_sticky_error (void);
void sim_set_sticky_error (cudaError_t error);
/* A planned failure was delivered: what is left undone after it is not the program's mistake. */
bool sim_has_failed (void);

/* ---- memory.c ---- */

typedef struct
{
  guint8 *address;
  gsize bytes;
  bool is_pinned;
  guint number;  /* counts from 1, for messages */
  guint8 *pages; /* between two guard pages */
  gsize pages_bytes;
} SimAllocation;

void sim_memory_reset (void);
/* NULL: the device has not as much. */
void *sim_memory_allocate (gsize bytes, bool is_pinned);
void sim_memory_release (const SimAllocation *allocation);
/* The live allocation that holds @address, or NULL. */
const SimAllocation *sim_memory_find (const void *address);
/* "allocation 3 (4096 bytes) at offset 256", (transfer full) */
char *sim_memory_describe (const void *address);
guint sim_memory_n_live (void);

/* Device memory that queued work can reach: @ranges only, or all with NULL. */
void sim_memory_open (const SimRange *ranges, guint n_ranges);
void sim_memory_close (void);
/* Reports bytes around allocations that were written; @what ran last. */
void sim_memory_check_guards (const char *what);
/* Pages that a fault has opened are closed again. */
void sim_memory_close_strays (void);

/* ---- ranges.c ---- */

/* How far each stream has got, as one of them or the host knows it. */
typedef struct
{
  guint64 *at;
  guint n;
} SimClock;

void sim_clock_join (SimClock *clock, const SimClock *other);
/* The stream @index takes one more step. */
guint64 sim_clock_tick (SimClock *clock, guint index);
guint64 sim_clock_at (const SimClock *clock, guint index);
void sim_clock_clear (SimClock *clock);

/* A piece of work, for messages about it. */
typedef struct
{
  char *what;
  guint stream; /* index */
  guint64 at;   /* of its stream's clock */
} SimOp;

SimOp *sim_op_new (const char *what, guint stream, guint64 at);
void sim_op_unref (SimOp *op);

void sim_ranges_reset (void);
/* @op, which knows @clock, touches @ranges. */
void sim_ranges_access (SimOp *op, const SimClock *clock, const SimRange *ranges, guint n_ranges);
/* Work on the range that @host does not know to be done, or NULL; writes only, unless @also_reads. */
const SimOp *sim_ranges_pending (const SimClock *host, const void *address, gsize bytes, bool also_reads);
/* Nothing is known of the range any more. */
void sim_ranges_forget (const void *address, gsize bytes);

/* ---- streams.c ---- */

typedef struct CUstream_st SimStream;
typedef struct CUevent_st SimEvent;

struct CUstream_st
{
  guint index;
  bool is_live;
  GQueue items;            /* not run yet */
  guint64 n_queued, n_run; /* items */
  SimClock clock;          /* at the end of the queue */
  double time;             /* in milliseconds */
};

/* A place in a queue, that an event has recorded. Counts references. */
typedef struct
{
  SimStream *stream;
  guint64 position; /* reached once the stream has run so many items */
  SimClock clock;   /* what has happened before it */
  double time;      /* once it is reached */
} SimMark;

struct CUevent_st
{
  bool is_live, has_timing;
  SimMark *mark; /* of the last record; NULL: none yet */
};

void sim_streams_reset (void);
SimStream *sim_streams_new (void);
SimEvent *sim_events_new (bool has_timing);
/* Whether they can be used; a fault that names @entry_point where not. */
bool sim_streams_check (cudaStream_t stream, const char *entry_point);
bool sim_events_check (cudaEvent_t event, const char *entry_point);
/* All that were ever made, of SimStream. */
const GPtrArray *sim_streams_all (void);
guint sim_streams_n_live (void); /* and events */

/* Checks ranges, finds races, and queues: what sim_enqueue does once the call has passed. */
cudaError_t sim_streams_add (cudaStream_t stream, const char *what, const SimRange *ranges, guint n_ranges,
                             void (*run) (void *), void *closure, void (*destroy) (void *));
void sim_streams_record (SimStream *stream, SimEvent *event);
void sim_streams_wait (SimStream *stream, SimMark *mark);
bool sim_mark_is_reached (const SimMark *mark);

/* Runs until @stream has run @position items in all, or, with @is_query, a part of the way. */
void sim_streams_run (SimStream *stream, guint64 position, bool is_query);
/* Runs all that is queued; the host learns nothing of it. */
void sim_streams_finish_all (void);
/* The host has found that all which @clock knows is done. */
void sim_host_waited (const SimClock *clock, double time);
const SimClock *sim_host_clock (void);
/* What runs now in this thread, or NULL. */
const SimOp *sim_running_op (void);

/* ---- fibers.cc ---- */

/* "kernel 'add', block (0,0,0), thread (5,0,0)": what runs now, lent until the next call; NULL outside of
 * kernels. */
const char *sim_place (void);
/* Whether @address is a guard page of the shared memory of the kernel that runs: then it has been reported,
 * and can be accessed until the block ends. */
bool sim_kernel_segv (const void *address);

G_END_DECLS

#endif
