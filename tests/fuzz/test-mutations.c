/*
 * Every reader of files from elsewhere on damaged ones: whatever the bytes, an answer; no crash, no hang, no
 * memory that is out of proportion. The damage is the same on every machine.
 *
 * RN_TEST_LONG=1: ten thousand mutations for each reader instead of a hundred.
 */
#include "config.h"

#include "tests/fuzz/fuzz.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define N_SHORT 100
#define N_LONG 10000
/* Processor time of one input, so that a loaded machine does not count. Inputs take milliseconds. */
#define MAX_SECONDS 20
#define MAX_GROWTH (256 << 10) /* KiB of the peak of memory, over all inputs of one reader */

/* ASan's allocations are limited one by one: its peak says nothing, because it keeps what was freed. */
#if defined(__SANITIZE_ADDRESS__)
  #define WITH_ASAN 1
const char *__asan_default_options (void);
__attribute__ ((visibility ("default"))) const char *
__asan_default_options (void)
{
  return "max_allocation_size_mb=256:quarantine_size_mb=16";
}
#else
  #define WITH_ASAN 0
#endif

/* What runs now, for the message of the alarm. */
static char running[256];

static void
too_long (int signal_number)
{
  static const char text[] = "Bail out! an input ran for more than 20 s of processor time: ";

  if (write (STDOUT_FILENO, text, sizeof text - 1) < 0
      || write (STDOUT_FILENO, running, strlen (running)) < 0)
    _exit (2);
  _exit (1);
}

static double
processor_time (void)
{
  struct timespec now;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

static long
peak_kib (void)
{
  struct rusage usage;

  getrusage (RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

typedef struct
{
  int n, n_read;
  double slowest; /* seconds */
} Tally;

static int
run_one (const RnFuzzReader *reader, GBytes *input, const char *what, Tally *tally)
{
  const struct itimerval limit = { .it_value = { .tv_sec = MAX_SECONDS } };
  gsize size;
  gconstpointer bytes = g_bytes_get_data (input, &size);
  /* Of its own size, so that a sanitizer sees a step beyond the end. */
  g_autofree guint8 *copy = g_malloc (MAX (size, 1));
  double start = processor_time ();
  int is_read;

  if (size > 0)
    memcpy (copy, bytes, size);
  g_snprintf (running, sizeof running, "%s %s\n", reader->name, what);
  setitimer (ITIMER_PROF, &limit, NULL);
  is_read = reader->run (copy, size);
  tally->slowest = MAX (tally->slowest, processor_time () - start);
  tally->n++;
  tally->n_read += is_read;
  return is_read;
}

/* What once went wrong, in the order of the names. */
static void
run_corpus (const RnFuzzReader *reader, Tally *tally)
{
  g_autofree char *dir = g_test_build_filename (G_TEST_DIST, "tests", "fuzz", "corpus", reader->name, NULL);
  g_autoptr (GDir) listing = g_dir_open (dir, 0, NULL);
  const char *name;

  while (listing != NULL && (name = g_dir_read_name (listing)) != NULL)
    {
      g_autofree char *path = g_build_filename (dir, name, NULL);
      g_autoptr (GError) error = NULL;
      char *bytes;
      gsize size;

      g_file_get_contents (path, &bytes, &size, &error);
      g_assert_no_error (error);
      g_autoptr (GBytes) input = g_bytes_new_take (bytes, size);
      run_one (reader, input, name, tally);
    }
}

static void
test_reader (gconstpointer data)
{
  const RnFuzzReader *reader = data;
  const int n = g_strcmp0 (g_getenv ("RN_TEST_LONG"), "1") == 0 ? N_LONG : N_SHORT;
  g_autoptr (GPtrArray) seeds = g_ptr_array_new_with_free_func ((GDestroyNotify) g_bytes_unref);
  Tally corpus = { 0 }, tally = { 0 };
  long peak;

  reader->add_seeds (seeds);
  g_assert_cmpuint (seeds->len, >, 0);
  for (guint i = 0; i < seeds->len; i++)
    {
      g_autofree char *what = g_strdup_printf ("seed %u", i);

      if (!run_one (reader, seeds->pdata[i], what, &tally))
        g_error ("%s of reader %s was refused: %s", what, reader->name, rn_fuzz_last_message ());
    }
  peak = peak_kib ();
  run_corpus (reader, &corpus);
  tally = (Tally){ 0 };
  for (int i = 0; i < n; i++)
    {
      g_autoptr (GBytes) input = rn_fuzz_mutate (reader, seeds, (guint32) i);
      g_autofree char *what = g_strdup_printf ("mutation %d", i);

      run_one (reader, input, what, &tally);
    }
  setitimer (ITIMER_PROF, &(struct itimerval){ 0 }, NULL);
  g_test_message (
      "%s: %d mutations, %d read, %d refused; %d of the corpus; slowest %.3f s; peak grew %ld KiB",
      reader->name, tally.n, tally.n_read, tally.n - tally.n_read, corpus.n,
      MAX (tally.slowest, corpus.slowest), peak_kib () - peak);
  g_assert_cmpint (tally.n_read, <, tally.n); /* or nothing was damaged */
  g_assert_cmpint (tally.n_read, >, 0);       /* or only the first check was tried */
  if (!WITH_ASAN)
    g_assert_cmpint (peak_kib () - peak, <, MAX_GROWTH);
}

int
main (int argc, char **argv)
{
  struct sigaction action = { .sa_handler = too_long };

  g_test_init (&argc, &argv, NULL);
  sigaction (SIGPROF, &action, NULL);
  for (guint i = 0; rn_fuzz_readers[i] != NULL; i++)
    {
      g_autofree char *path = g_strconcat ("/mutations/", rn_fuzz_readers[i]->name, NULL);

      g_test_add_data_func (path, rn_fuzz_readers[i], test_reader);
    }
  return g_test_run ();
}
