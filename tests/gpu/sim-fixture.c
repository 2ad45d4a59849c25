/* sim-fixture.c: see sim-fixture.h. */
#include "config.h"
#include "tests/gpu/sim-fixture.h"

const SimSchedule schedules[3] = { SIM_LATE, SIM_EARLY, SIM_RANDOM };

void
assert_fault (const char *pattern, int line)
{
  const char *fault = sim_first_fault ();
  if (fault == NULL || !g_pattern_match_simple (pattern, fault))
    g_error ("line %d: expected \"%s\", found \"%s\"", line, pattern, fault ? fault : "nothing");
}

void
start (SimSchedule schedule, unsigned seed)
{
  const SimConfig config = {
    .model = "t4", .n_devices = 1, .driver_version = CUDART_VERSION, .schedule = schedule, .seed = seed
  };
  sim_reset (&config);
  sim_expect_faults (true);
}

cudaStream_t
new_stream (void)
{
  cudaStream_t stream;
  OK (cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking));
  return stream;
}

cudaEvent_t
new_event (void)
{
  cudaEvent_t event;
  OK (cudaEventCreateWithFlags (&event, cudaEventDisableTiming));
  return event;
}

float *
device_memory (size_t bytes)
{
  void *memory;
  OK (cudaMalloc (&memory, bytes));
  return memory;
}

float *
pinned_memory (size_t bytes)
{
  void *memory;
  OK (cudaHostAlloc (&memory, bytes, cudaHostAllocDefault));
  return memory;
}

/* ---- pieces of work ---- */

typedef struct
{
  float *to;
  const float *from; /* NULL: value alone */
  float value;
} Add;

static void
add_run (void *closure)
{
  const Add *a = closure;
  for (int i = 0; i < N; i++)
    a->to[i] = (a->from ? a->from[i] : 0) + a->value;
}

cudaError_t
queue_add (cudaStream_t stream, const char *op, float *to, const float *from, float value)
{
  const Add add = { to, from, value };
  const SimRange ranges[] = { { .address = from, .bytes = BYTES },
                              { .address = to, .bytes = BYTES, .writes = true } };
  sim_declare_ranges (op, ranges, G_N_ELEMENTS (ranges));
  cudaError_t error = sim_enqueue (stream, "add", NULL, 0, add_run, g_memdup2 (&add, sizeof add), g_free);
  sim_declare_ranges (NULL, NULL, 0);
  return error;
}

typedef struct
{
  char *address;
  gssize from, to;
  gboolean is_read;
} Touch;

static volatile char last_read;

__attribute__ ((no_sanitize ("address"))) void
touch (void *address, gssize from, gssize to, gboolean is_read)
{
  volatile char *bytes = address;
  for (gssize i = from; i < to; i++)
    if (is_read)
      last_read = bytes[i];
    else
      bytes[i] = 1;
}

static void
touch_run (void *closure)
{
  const Touch *t = closure;
  touch (t->address, t->from, t->to, t->is_read);
}

void
queue_touch (cudaStream_t stream, void *address, gssize from, gssize to, gboolean is_read)
{
  const Touch closure = { address, from, to, is_read };
  OK (sim_enqueue (stream, "touch", NULL, 0, touch_run, g_memdup2 (&closure, sizeof closure), g_free));
}

static void
note_run (void *closure)
{
  ++*(int *) closure;
}

void
queue_note (cudaStream_t stream, int *counter)
{
  static const SimRange none;
  OK (sim_enqueue (stream, "note", &none, 0, note_run, counter, NULL));
}
