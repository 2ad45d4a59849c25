/* The simulated runtime runs work late and in any order that streams and events allow, and finds races. */
#include "config.h"
#include <glib.h>
#include <math.h>
#include <string.h>
#include "tests/gpu/sim-fixture.h"

/* ---- when things run ---- */

static void
test_lazy (void)
{
  start (SIM_LATE, 0);
  cudaStream_t stream = new_stream ();
  float *memory = device_memory (BYTES), *host = pinned_memory (BYTES);
  g_assert_true (isnan (host[0]) && isnan (host[N - 1]));
  for (int i = 0; i < N; i++)
    host[i] = (float) i;
  OK (cudaMemcpyAsync (memory, host, BYTES, cudaMemcpyHostToDevice, stream));
  OK (queue_add (stream, "op", memory, memory, 1));
  OK (cudaMemcpyAsync (host, memory, BYTES, cudaMemcpyDeviceToHost, stream));
  g_assert_cmpfloat (host[7], ==, 7);
  OK (cudaStreamSynchronize (stream));
  for (int i = 0; i < N; i++)
    g_assert_cmpfloat (host[i], ==, (float) i + 1);
  NO_FAULT ();
}

/* Polling comes to an end, and not at once. */
static void
test_query (void)
{
  for (unsigned seed = 0; seed < 5; seed++)
    for (size_t s = 0; s < G_N_ELEMENTS (schedules); s++)
      {
        start (schedules[s], seed);
        cudaStream_t stream = new_stream ();
        cudaEvent_t event = new_event ();
        int counter = 0;
        OK (cudaEventQuery (event));
        for (int i = 0; i < 8; i++)
          queue_note (stream, &counter);
        OK (cudaEventRecord (event, stream));
        int n_queries = 1;
        for (; cudaEventQuery (event) != cudaSuccess; n_queries++)
          {
            g_assert_cmpint (cudaGetLastError (), ==, cudaErrorNotReady);
            g_assert_cmpint (n_queries, <, 1000);
          }
        g_assert_cmpint (counter, ==, 8);
        if (schedules[s] == SIM_LATE)
          g_assert_cmpint (n_queries, ==, 9);
        OK (cudaStreamQuery (stream));
        NO_FAULT ();
      }
}

/* Stream a waits in its middle for the first half of b. */
static void
run_two_streams (int *at_sync_a, int *at_sync_b)
{
  cudaStream_t a = new_stream (), b = new_stream (), c = new_stream ();
  cudaEvent_t half = new_event (), of_a = new_event ();
  int counters[3] = { 0 };
  for (int i = 0; i < 3; i++)
    queue_note (b, &counters[1]);
  OK (cudaEventRecord (half, b));
  for (int i = 0; i < 4; i++)
    queue_note (b, &counters[1]);
  queue_note (a, &counters[0]);
  OK (cudaStreamWaitEvent (a, half, 0));
  queue_note (a, &counters[0]);
  OK (cudaEventRecord (of_a, a));
  queue_note (c, &counters[2]);
  OK (cudaStreamWaitEvent (c, of_a, 0));
  queue_note (c, &counters[2]);
  OK (cudaStreamSynchronize (a));
  g_assert_cmpint (counters[0], ==, 2);
  *at_sync_a = counters[1] * 10 + counters[2];
  OK (cudaDeviceSynchronize ());
  g_assert_cmpint (counters[2], ==, 2);
  *at_sync_b = counters[1];
  NO_FAULT ();
}

static void
test_schedules (void)
{
  int before, after;
  start (SIM_LATE, 0);
  run_two_streams (&before, &after);
  g_assert_cmpint (before, ==, 30);
  g_assert_cmpint (after, ==, 7);
  start (SIM_EARLY, 0);
  run_two_streams (&before, &after);
  g_assert_cmpint (before, ==, 72);
  g_assert_cmpint (after, ==, 7);

  /* By the seed: always the same, and with many seeds many things. */
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  for (unsigned seed = 0; seed < 50; seed++)
    {
      int again;
      start (SIM_RANDOM, seed);
      run_two_streams (&before, &after);
      g_assert_cmpint (before, >=, 30);
      g_assert_cmpint (after, ==, 7);
      start (SIM_RANDOM, seed);
      run_two_streams (&again, &after);
      g_assert_cmpint (before, ==, again);
      g_hash_table_add (seen, GINT_TO_POINTER (before));
    }
  g_assert_cmpuint (g_hash_table_size (seen), >=, 8);
}

static void
spend_run (void *closure)
{
  sim_spend (*(double *) closure);
}

static void
test_elapsed (void)
{
  start (SIM_LATE, 0);
  cudaStream_t a = new_stream (), b = new_stream ();
  cudaEvent_t events[3], without = new_event ();
  for (int i = 0; i < 3; i++)
    OK (cudaEventCreateWithFlags (&events[i], cudaEventDefault));
  static double times[] = { 2.5, 4 };
  static const SimRange none;
  float milliseconds;
  OK (cudaEventRecord (events[0], a));
  OK (sim_enqueue (a, "long", &none, 0, spend_run, &times[0], NULL));
  OK (cudaEventRecord (events[1], a));
  OK (cudaStreamWaitEvent (b, events[1], 0));
  OK (sim_enqueue (b, "longer", &none, 0, spend_run, &times[1], NULL));
  OK (cudaEventRecord (events[2], b));
  g_assert_cmpint (cudaEventElapsedTime (&milliseconds, events[0], events[2]), ==, cudaErrorNotReady);
  OK (cudaEventSynchronize (events[2]));
  OK (cudaEventElapsedTime (&milliseconds, events[0], events[1]));
  g_assert_cmpfloat (milliseconds, ==, 2.5f);
  OK (cudaEventElapsedTime (&milliseconds, events[0], events[2]));
  g_assert_cmpfloat (milliseconds, ==, 6.5f);
  /* What the host queues after it has waited begins after that. */
  OK (cudaEventRecord (events[0], a));
  OK (cudaEventRecord (without, a));
  OK (cudaDeviceSynchronize ());
  OK (cudaEventElapsedTime (&milliseconds, events[1], events[0]));
  g_assert_cmpfloat (milliseconds, ==, 4);
  g_assert_cmpint (cudaEventElapsedTime (&milliseconds, events[0], without), ==,
                   cudaErrorInvalidResourceHandle);
  NO_FAULT ();
}

/* ---- races ---- */

typedef enum
{
  RAW, /* the consumer does not wait for its producer */
  WAR, /* the next producer does not wait for the last consumer */
  WAW,
} Hazard;

typedef enum
{
  NO_EDGE,
  EDGE,
  EDGE_BY_THIRD_STREAM,
  EDGE_BY_HOST,
  EVENT_NOT_RECORDED,
  EVENT_RECORDED_TOO_EARLY,
} Edge;

/* Two ops on two streams, with @edge from the first to the second; what the second has come to, in [0]. */
static float
run_hazard (Hazard hazard, Edge edge)
{
  cudaStream_t a = new_stream (), b = new_stream (), third = new_stream ();
  cudaEvent_t event = new_event (), second_event = new_event ();
  float *memory = device_memory (2 * BYTES), *other = device_memory (2 * BYTES),
        *host = pinned_memory (BYTES);
  OK (queue_add (a, "start", memory, NULL, 1));
  OK (cudaStreamSynchronize (a));

  if (edge == EVENT_RECORDED_TOO_EARLY)
    OK (cudaEventRecord (event, a));
  OK (queue_add (a, "first", hazard == WAR ? other : memory, hazard == WAR ? memory : NULL, 10));
  switch (edge)
    {
    case NO_EDGE:
      break;
    case EDGE:
      OK (cudaEventRecord (event, a));
      OK (cudaStreamWaitEvent (b, event, 0));
      break;
    case EDGE_BY_THIRD_STREAM:
      OK (cudaEventRecord (event, a));
      OK (cudaStreamWaitEvent (third, event, 0));
      OK (cudaEventRecord (second_event, third));
      OK (cudaStreamWaitEvent (b, second_event, 0));
      break;
    case EDGE_BY_HOST:
      OK (cudaEventRecord (event, a));
      OK (cudaEventSynchronize (event));
      break;
    case EVENT_NOT_RECORDED:
    case EVENT_RECORDED_TOO_EARLY:
      OK (cudaStreamWaitEvent (b, event, 0));
      break;
    }
  OK (queue_add (b, "second", hazard == RAW ? other : memory, hazard == RAW ? memory : NULL, 100));
  const char *fault = sim_first_fault ();
  g_assert_true ((fault == NULL) == (edge == EDGE || edge == EDGE_BY_THIRD_STREAM || edge == EDGE_BY_HOST));
  /* WAR: whether the reader still found what it should; else what the second op has left. */
  cudaStream_t awaited = hazard == WAR ? a : b;
  OK (cudaMemcpyAsync (host, hazard == WAW ? memory : other, BYTES, cudaMemcpyDeviceToHost, awaited));
  OK (cudaStreamSynchronize (awaited));
  float value = host[0];
  OK (cudaDeviceSynchronize ());
  return value;
}

static void
test_races (void)
{
  static const char *const patterns[] = {
    [RAW] = "race: 'second: add' (stream 1) reads 4096 bytes of allocation 1 (8192 bytes) at offset 0 "
            "that 'first: add' (stream 0) writes*",
    [WAR] = "race: 'second: add' (stream 1) writes 4096 bytes of allocation 1 (8192 bytes) at offset 0 "
            "that 'first: add' (stream 0) reads*",
    [WAW] = "race: 'second: add' (stream 1) writes 4096 bytes of allocation 1 (8192 bytes) at offset 0 "
            "that 'first: add' (stream 0) writes*",
  };
  static const Edge missing[] = { NO_EDGE, EVENT_NOT_RECORDED, EVENT_RECORDED_TOO_EARLY };
  static const Edge enough[] = { EDGE, EDGE_BY_THIRD_STREAM, EDGE_BY_HOST };
  static const float right[] = { [RAW] = 110, [WAR] = 11, [WAW] = 100 };

  for (size_t s = 0; s < G_N_ELEMENTS (schedules); s++)
    for (Hazard hazard = RAW; hazard <= WAW; hazard++)
      for (size_t i = 0; i < 3; i++)
        {
          start (schedules[s], 1);
          run_hazard (hazard, missing[i]);
          FAULT (patterns[hazard]);
          start (schedules[s], 1);
          g_assert_cmpfloat (run_hazard (hazard, enough[i]), ==, right[hazard]);
          NO_FAULT ();
        }
  /* The schedules show it in the values as well: a consumer too early, a producer too early. */
  start (SIM_LATE, 0);
  g_assert_cmpfloat (run_hazard (RAW, NO_EDGE), ==, 101);
  start (SIM_EARLY, 0);
  g_assert_cmpfloat (run_hazard (WAR, NO_EDGE), ==, 110);
}

/* Parts of one allocation are told apart, and reads do not disturb each other. */
static void
test_disjoint (void)
{
  start (SIM_RANDOM, 3);
  cudaStream_t a = new_stream (), b = new_stream ();
  float *memory = device_memory (4 * BYTES);
  OK (queue_add (a, "x", memory, memory + 2 * N, 1));
  OK (queue_add (b, "y", memory + N, memory + 2 * N, 1));
  OK (queue_add (a, "z", memory, memory + 2 * N + N / 2, 1));
  NO_FAULT ();
  OK (queue_add (b, "w", memory + 3 * N - 1, NULL, 1));
  FAULT ("race: 'w: add' (stream 1) writes * bytes of allocation 1 (16384 bytes) at offset 12284 that "
         "'z: add' (stream 0) reads*");
  OK (cudaDeviceSynchronize ());
}

/* An account that keeps everything: which ops happen before what comes next in a stream, or on the host. */
enum
{
  N_STREAMS = 3,
  N_CELLS = 24,
  N_STEPS = 60
};

typedef struct
{
  int from, to; /* cells */
  bool writes;
} Op;

typedef struct
{
  cudaStream_t streams[N_STREAMS];
  cudaEvent_t events[N_STREAMS];
  char *memory;
  Op ops[N_STEPS];
  int n_ops;
  /* By op. */
  bool knows[N_STREAMS][N_STEPS], event_knows[N_STREAMS][N_STEPS], host_knows[N_STEPS];
} Account;

static void
learn (bool *knows, const bool *other)
{
  for (int i = 0; i < N_STEPS; i++)
    knows[i] |= other[i];
}

static void
count (void *closure)
{
  ++*(int *) closure;
}

/* Queues @op on stream @s; whether it conflicts with an op that does not happen before it. */
static bool
account_op (Account *a, int s, Op op)
{
  static int counter;
  const SimRange range = { .address = a->memory + op.from,
                           .bytes = (size_t) (op.to - op.from),
                           .writes = op.writes };
  bool has_race = false;
  for (int i = 0; i < a->n_ops; i++)
    {
      const Op *other = &a->ops[i];
      bool conflicts = (op.writes || other->writes) && op.from < other->to && other->from < op.to;
      has_race |= conflicts && !a->knows[s][i];
    }
  OK (sim_enqueue (a->streams[s], "op", &range, 1, count, &counter, NULL));
  a->knows[s][a->n_ops] = true;
  a->ops[a->n_ops++] = op;
  return has_race;
}

/* One random step; whether it is a race. */
static bool
account_step (Account *a, GRand *random)
{
  int s = g_rand_int_range (random, 0, N_STREAMS), e = g_rand_int_range (random, 0, N_STREAMS);
  int what = g_rand_int_range (random, 0, 20);
  learn (a->knows[s], a->host_knows);
  if (what < 6)
    {
      int from = g_rand_int_range (random, 0, N_CELLS), n = g_rand_int_range (random, 1, 5);
      return account_op (a, s, (Op){ from, MIN (from + n, N_CELLS), g_rand_int_range (random, 0, 3) == 0 });
    }
  if (what < 12)
    {
      OK (cudaEventRecord (a->events[s], a->streams[s]));
      memcpy (a->event_knows[s], a->knows[s], sizeof a->knows[s]);
    }
  else if (what < 18)
    {
      OK (cudaStreamWaitEvent (a->streams[s], a->events[e], 0));
      learn (a->knows[s], a->event_knows[e]);
    }
  else if (what == 18)
    {
      OK (cudaEventSynchronize (a->events[e]));
      learn (a->host_knows, a->event_knows[e]);
    }
  else
    {
      OK (cudaStreamSynchronize (a->streams[s]));
      learn (a->host_knows, a->knows[s]);
    }
  return false;
}

/* Random ops with random edges: the first that conflicts with one which does not happen before it must be the
 * first that is reported. */
static void
test_random_races (void)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (7);
  int n_races = 0, n_trials = 600;
  for (int trial = 0; trial < n_trials; trial++)
    {
      start (schedules[trial % 3], (unsigned) trial);
      Account a = { .memory = (char *) device_memory (N_CELLS) };
      for (int s = 0; s < N_STREAMS; s++)
        {
          a.streams[s] = new_stream ();
          a.events[s] = new_event ();
        }
      bool has_race = false;
      for (int step = 0; step < N_STEPS && !has_race; step++)
        {
          has_race = account_step (&a, random);
          g_assert_cmpint (sim_first_fault () != NULL, ==, has_race);
        }
      OK (cudaDeviceSynchronize ());
      n_races += has_race;
    }
  /* Both kinds of trials were there. */
  g_assert_cmpint (n_races, >, 50);
  g_assert_cmpint (n_races, <, n_trials - 10);
}

static void
test_host_accesses (void)
{
  start (SIM_EARLY, 0);
  cudaStream_t stream = new_stream (), other = new_stream ();
  cudaEvent_t event = new_event ();
  float *memory = device_memory (BYTES), *host = pinned_memory (2 * BYTES);
  OK (queue_add (stream, "op", memory, NULL, 1));
  OK (cudaMemcpyAsync (host, memory, BYTES, cudaMemcpyDeviceToHost, stream));
  OK (cudaEventRecord (event, stream));
  /* Not this stream, and not this half. */
  OK (cudaStreamSynchronize (other));
  sim_host_reads (host + N, BYTES);
  NO_FAULT ();
  sim_host_reads (host + N - 1, sizeof (float));
  FAULT ("race: the host reads 4 bytes of pinned allocation 2 (8192 bytes) at offset 4092, and has not "
         "waited for 'cudaMemcpyAsync' (stream 0)");

  start (SIM_EARLY, 0);
  stream = new_stream ();
  event = new_event ();
  memory = device_memory (BYTES);
  host = pinned_memory (BYTES);
  sim_host_writes (host, BYTES);
  OK (cudaMemcpyAsync (memory, host, BYTES, cudaMemcpyHostToDevice, stream));
  OK (cudaEventRecord (event, stream));
  sim_host_reads (host, BYTES);
  NO_FAULT ();
  sim_host_writes (host, BYTES);
  FAULT ("race: the host writes 4096 bytes of pinned *");
  OK (cudaEventSynchronize (event));

  start (SIM_LATE, 0);
  stream = new_stream ();
  event = new_event ();
  memory = device_memory (BYTES);
  host = pinned_memory (BYTES);
  OK (cudaMemcpyAsync (host, memory, BYTES, cudaMemcpyDeviceToHost, stream));
  OK (cudaEventRecord (event, stream));
  while (cudaEventQuery (event) == cudaErrorNotReady)
    ;
  sim_host_reads (host, BYTES);
  sim_host_writes (host, BYTES);
  float local;
  sim_host_reads (&local, sizeof local);
  NO_FAULT ();
  sim_host_reads (memory, 4);
  FAULT ("the host reads device memory: allocation 1 *");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/gpu/sim/streams/lazy", test_lazy);
  g_test_add_func ("/gpu/sim/streams/query", test_query);
  g_test_add_func ("/gpu/sim/streams/schedules", test_schedules);
  g_test_add_func ("/gpu/sim/streams/elapsed", test_elapsed);
  g_test_add_func ("/gpu/sim/streams/races", test_races);
  g_test_add_func ("/gpu/sim/streams/disjoint", test_disjoint);
  g_test_add_func ("/gpu/sim/streams/random-races", test_random_races);
  g_test_add_func ("/gpu/sim/streams/host-accesses", test_host_accesses);
  return g_test_run ();
}
