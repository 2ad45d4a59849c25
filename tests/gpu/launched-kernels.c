/* launched-kernels.c: which kernels the simulated device was told to launch. One that no case reaches fails,
 * and so does an instance of a template. */
#include "config.h"

#include "kernels/op.h"
#include "tests/gpu/test-device.h"
#include "tests/gpu/weight-kernels.h"

/*
 * RN_BOUNDS puts no-operations in front of each kernel, one for 32 threads, and the compiler keeps a list of
 * where they begin (GCC's -fpatchable-function-entry).
 */
extern const char *const __start___patchable_function_entries[];
extern const char *const __stop___patchable_function_entries[];

static GHashTable *launched; /* of functions */

cudaError_t __real_sim_check_launch (const char *kernel, const void *function, struct dim3 grid,
                                     struct dim3 block, size_t shared_bytes);
cudaError_t __wrap_sim_check_launch (const char *kernel, const void *function, struct dim3 grid,
                                     struct dim3 block, size_t shared_bytes);

/* The linker puts it in the place of sim_check_launch. */
cudaError_t
__wrap_sim_check_launch (const char *kernel, const void *function, struct dim3 grid, struct dim3 block,
                         size_t shared_bytes)
{
  if (launched == NULL)
    launched = g_hash_table_new (NULL, NULL);
  g_hash_table_add (launched, (gpointer) function);
  return __real_sim_check_launch (kernel, function, grid, block, shared_bytes);
}

/* The last one before @function. */
static const char *const *
entry_of (const char *function)
{
  const char *const *found = NULL;

  for (const char *const *entry = __start___patchable_function_entries;
       entry < __stop___patchable_function_entries; entry++)
    if (*entry < function && (found == NULL || *entry > *found))
      found = entry;
  return found;
}

static void
test_instances (gconstpointer data)
{
  const guint *n_kernels_tested = data;

  if (*n_kernels_tested < RN_OP_COUNT)
    {
      g_test_skip ("not all kernels were tested");
      return;
    }
  g_autoptr (GHashTable) reached = g_hash_table_new (NULL, NULL);
  GHashTableIter iter;
  gpointer function;
  g_assert_nonnull (launched);
  g_hash_table_iter_init (&iter, launched);
  while (g_hash_table_iter_next (&iter, &function, NULL))
    g_hash_table_add (reached, (gpointer) entry_of (function));

  int n_missing = 0;
  for (const char *const *entry = __start___patchable_function_entries;
       entry < __stop___patchable_function_entries; entry++)
    if (!g_hash_table_contains (reached, entry))
      {
        n_missing++;
        g_test_message ("no case reaches the kernel behind %p", *entry);
      }
  g_test_message ("%u instances of kernels were reached", g_hash_table_size (reached));
  g_assert_cmpuint (g_hash_table_size (reached), >, 0);
  g_assert_cmpint (n_missing, ==, 0);
  g_clear_pointer (&launched, g_hash_table_unref);
}

void
add_tests_of_simulation (const guint *n_kernels_tested)
{
  add_weight_tests ();
  g_test_add_data_func ("/gpu/instances/reached", n_kernels_tested, test_instances);
}
