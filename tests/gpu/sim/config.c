/*
 * config.c: which device is simulated, and what happens to its calls: they are counted, and fail as planned.
 */
#include "config.h"
#include "tests/gpu/sim/internal.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB ((gsize) 1 << 30)

GRecMutex sim_mutex;

/* The same figures as NVIDIA's data sheets and the programming guide, table of compute capabilities. The
 * first two are too old for us. */
static const SimModel models[] = {
  { "gtx1080",
    "NVIDIA GeForce GTX 1080",
    { 6, 1 },
    20,
    49152,
    32,
    2048,
    2097152,
    8 * GIB,
    1733500,
    5005000,
    256 },
  { "v100", "Tesla V100-SXM2-16GB", { 7, 0 }, 80, 98304, 32, 2048, 6291456, 16 * GIB, 1530000, 877000, 4096 },
  { "gtx1660",
    "NVIDIA GeForce GTX 1660",
    { 7, 5 },
    22,
    65536,
    16,
    1024,
    1572864,
    6 * GIB,
    1785000,
    4001000,
    192 },
  { "t4", "Tesla T4", { 7, 5 }, 40, 65536, 16, 1024, 4194304, 15 * GIB, 1590000, 5001000, 256 },
  { "a100",
    "NVIDIA A100-SXM4-40GB",
    { 8, 0 },
    108,
    166912,
    32,
    2048,
    41943040,
    40 * GIB,
    1410000,
    1215000,
    5120 },
  { "rtx3060",
    "NVIDIA GeForce RTX 3060",
    { 8, 6 },
    28,
    101376,
    16,
    1536,
    2359296,
    12 * GIB,
    1777000,
    7501000,
    192 },
  { "rtx4090",
    "NVIDIA GeForce RTX 4090",
    { 8, 9 },
    128,
    101376,
    24,
    1536,
    75497472,
    24 * GIB,
    2520000,
    10501000,
    384 },
  { "h200", "NVIDIA H200", { 9, 0 }, 132, 232448, 32, 2048, 62914560, 141 * GIB, 1980000, 3201000, 6144 },
  { "b200", "NVIDIA B200", { 10, 0 }, 148, 232448, 32, 2048, 132644864, 180 * GIB, 1965000, 3996000, 8192 },
  { "rtx5090",
    "NVIDIA GeForce RTX 5090",
    { 12, 0 },
    170,
    101376,
    24,
    1536,
    100663296,
    32 * GIB,
    2407000,
    14001000,
    512 },
};

static bool has_started;
static SimConfig config;
static char *model_key; /* of config */
static const SimModel *model;

static unsigned long n_calls, n_waits, n_until_failure; /* 0: none planned */
static cudaError_t planned_error, last_error, sticky_error;
static bool has_failed;

static bool expects_faults;
static unsigned long n_faults;
static char first_fault[1024];

/* ---- configuration ---- */

static const SimModel *
find_model (const char *key)
{
  g_autoptr (GString) known = g_string_new (NULL);

  for (guint i = 0; i < G_N_ELEMENTS (models); i++)
    {
      if (strcmp (models[i].key, key) == 0)
        return &models[i];
      g_string_append_printf (known, "%s%s", i > 0 ? ", " : "", models[i].key);
    }
  g_error ("simulated CUDA device: there is no model \"%s\"; RN_SIM_DEVICE knows %s", key, known->str);
}

static guint64
number (const char *text, const char *variable)
{
  guint64 value;
  g_autoptr (GError) error = NULL;
  if (!g_ascii_string_to_unsigned (text, 10, 0, G_MAXINT64, &value, &error))
    g_error ("simulated CUDA device: %s: %s", variable, error->message);
  return value;
}

/* "t4,driver=12040,devices=1,memory=1000000,error=802" */
static void
read_device (SimConfig *c, char **words)
{
  for (guint i = 0; words[i]; i++)
    {
      g_auto (GStrv) pair = g_strsplit (words[i], "=", 2);
      if (!pair[1])
        c->model = words[i];
      else if (strcmp (pair[0], "driver") == 0)
        c->driver_version = (int) number (pair[1], "RN_SIM_DEVICE");
      else if (strcmp (pair[0], "devices") == 0)
        c->n_devices = (int) number (pair[1], "RN_SIM_DEVICE");
      else if (strcmp (pair[0], "memory") == 0)
        c->memory_bytes = number (pair[1], "RN_SIM_DEVICE");
      else if (strcmp (pair[0], "error") == 0)
        c->startup_error = (cudaError_t) number (pair[1], "RN_SIM_DEVICE");
      else
        g_error ("simulated CUDA device: RN_SIM_DEVICE: \"%s\" is not driver, devices, memory or error",
                 pair[0]);
    }
}

static void
read_schedule (SimConfig *c, const char *text)
{
  if (strcmp (text, "late") == 0)
    c->schedule = SIM_LATE;
  else if (strcmp (text, "early") == 0)
    c->schedule = SIM_EARLY;
  else if (g_str_has_prefix (text, "random:"))
    {
      c->schedule = SIM_RANDOM;
      c->seed = (unsigned) number (text + strlen ("random:"), "RN_SIM_SCHEDULE");
    }
  else
    g_error ("simulated CUDA device: RN_SIM_SCHEDULE: \"%s\" is not late, early or random:SEED", text);
}

static void
read_failure (const char *text)
{
  g_auto (GStrv) pair = g_strsplit (text, ":", 2);
  sim_fail_call (number (pair[0], "RN_SIM_FAIL"),
                 pair[1] ? (cudaError_t) number (pair[1], "RN_SIM_FAIL") : cudaErrorLaunchFailure);
}

static void
start (const SimConfig *given)
{
  sim_streams_reset ();
  sim_ranges_reset ();
  sim_memory_reset ();
  has_failed = false;
  n_calls = n_waits = n_until_failure = 0;
  last_error = sticky_error = cudaSuccess;
  n_faults = 0;
  expects_faults = false;

  SimConfig next = { .model = "t4", .n_devices = 1, .driver_version = CUDART_VERSION };
  const char *device = g_getenv ("RN_SIM_DEVICE"), *schedule = g_getenv ("RN_SIM_SCHEDULE"),
             *failure = g_getenv ("RN_SIM_FAIL");
  g_auto (GStrv) words = g_strsplit (device ? device : "", ",", -1);
  if (given)
    next = *given;
  else
    {
      read_device (&next, words);
      if (schedule)
        read_schedule (&next, schedule);
      if (failure)
        read_failure (failure);
    }
  model = find_model (next.model ? next.model : "t4");
  g_free (model_key);
  model_key = g_strdup (model->key);
  next.model = model_key;
  if (next.memory_bytes == 0)
    next.memory_bytes = model->memory_bytes;
  config = next;
}

void
sim_reset (const SimConfig *given)
{
  SIM_LOCK ();
  start (given);
  if (!has_started)
    fprintf (stderr, "simulated CUDA device\n");
  has_started = true;
}

void
sim_start (void)
{
  if (!has_started)
    sim_reset (NULL);
}

const SimConfig *
sim_config (void)
{
  sim_start ();
  return &config;
}

const SimModel *
sim_model (void)
{
  sim_start ();
  return model;
}

/* ---- calls ---- */

/* These come back whatever is done about them. */
static bool
is_sticky (cudaError_t error)
{
  switch (error)
    {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      return true;
    default:
      return false;
    }
}

/* Errors of a driver that cannot be used are not forgotten either. */
static bool
is_of_driver (cudaError_t error)
{
  return error == cudaErrorInsufficientDriver || error == cudaErrorStubLibrary;
}

cudaError_t
sim_return (cudaError_t error)
{
  if (error != cudaSuccess)
    last_error = error;
  return error;
}

cudaError_t
sim_last_error (bool forget)
{
  cudaError_t error = sticky_error ? sticky_error : last_error;
  if (forget && !is_of_driver (last_error))
    last_error = cudaSuccess;
  return error;
}

cudaError_t
sim_sticky_error (void)
{
  return sticky_error;
}

void
sim_set_sticky_error (cudaError_t error)
{
  if (sticky_error == cudaSuccess)
    sticky_error = error;
  has_failed = true;
}

bool
sim_has_failed (void)
{
  return has_failed;
}

/* What stands in the way of @entry_point from the beginning. */
static cudaError_t
startup_error (const char *entry_point)
{
  static const char *const no_driver[] = { "cudaDriverGetVersion", "cudaRuntimeGetVersion", "cudnnGetVersion",
                                           NULL };
  static const char *const no_context[] = { "cudaGetDeviceCount", "cudaGetDeviceProperties", NULL };
  if (g_strv_contains (no_driver, entry_point))
    return cudaSuccess;
  /* Any driver of the same major number runs a program of a newer minor one. */
  if (config.driver_version / 1000 < CUDART_VERSION / 1000)
    return cudaErrorInsufficientDriver;
  switch (config.startup_error)
    {
    case cudaErrorDevicesUnavailable: /* only a context needs the device to itself */
      return g_strv_contains (no_context, entry_point) ? cudaSuccess : config.startup_error;
    case cudaErrorNoKernelImageForDevice: /* see sim_enqueue */
      return cudaSuccess;
    case cudaSuccess:
      return config.n_devices == 0 ? cudaErrorNoDevice : cudaSuccess;
    default:
      return config.startup_error;
    }
}

/* Memory is released when the device has done all that was queued. */
static bool
is_wait (const char *entry_point)
{
  static const char *const names[] = { "cudaStreamSynchronize", "cudaEventSynchronize",
                                       "cudaDeviceSynchronize", "cudaFree",
                                       "cudaFreeHost",          NULL };

  return g_strv_contains (names, entry_point);
}

cudaError_t
sim_call (const char *entry_point)
{
  SIM_LOCK ();
  sim_start ();
  sim_memory_close_strays ();
  n_calls++;
  n_waits += is_wait (entry_point);
  if (sticky_error)
    return sim_return (sticky_error);
  cudaError_t error = startup_error (entry_point);
  if (n_until_failure > 0 && --n_until_failure == 0)
    {
      error = planned_error;
      has_failed = true;
    }
  if (is_sticky (error))
    sim_set_sticky_error (error);
  return sim_return (error);
}

void
sim_fail_call (unsigned long n, cudaError_t error)
{
  SIM_LOCK ();
  n_until_failure = n;
  planned_error = error;
}

unsigned long
sim_n_calls (void)
{
  return n_calls;
}

unsigned long
sim_n_waits (void)
{
  return n_waits;
}

/* ---- faults ---- */

void
sim_fault (const char *format, ...)
{
  char text[sizeof first_fault];
  va_list arguments;
  va_start (arguments, format);
  vsnprintf (text, sizeof text, format, arguments);
  va_end (arguments);
  fprintf (stderr, "simulated CUDA device: %s", text);
  /* What it takes to see it again. */
  if (config.schedule == SIM_RANDOM)
    fprintf (stderr, " (schedule random:%u)", config.seed);
  fputc ('\n', stderr);
  if (!expects_faults)
    abort ();
  if (n_faults++ == 0)
    memcpy (first_fault, text, sizeof text);
}

void
sim_expect_faults (bool expect)
{
  SIM_LOCK ();
  sim_start ();
  expects_faults = expect;
}

const char *
sim_first_fault (void)
{
  return n_faults > 0 ? first_fault : NULL;
}

unsigned long
sim_n_faults (void)
{
  return n_faults;
}

unsigned long
sim_n_live (void)
{
  SIM_LOCK ();
  return sim_memory_n_live () + sim_streams_n_live ();
}
