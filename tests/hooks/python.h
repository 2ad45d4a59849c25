/* python.h: runs the scripts beside the tests. */
#ifndef TESTS_HOOKS_PYTHON_H
#define TESTS_HOOKS_PYTHON_H

#include <glib.h>

/*
 * Output of tests/hooks/@script with @args (NULL-ended), by the Python of RN_TEST_PYTHON, else python3. NULL
 * where there is no Python, or none with the libraries that the script asks for, which it says by exiting
 * with 77: the test is then marked as skipped. Another failure ends the test. (transfer full)
 */
char *run_python (const char *script, const char *const *args);

#endif
