/*
 * fixture-file.h: what make_fixtures.py wrote: a line has a kind, for most kinds a name, and numbers.
 */
#ifndef TESTS_MODELS_PARITY_FIXTURE_FILE_H
#define TESTS_MODELS_PARITY_FIXTURE_FILE_H

#include <glib.h>

#define N_SAMPLES 64
#define N_PROJECTIONS 8
#define N_SUMMARY (2 + N_SAMPLES + N_PROJECTIONS)

typedef struct
{
  char *kind;     /* "loss", "gradient", ... */
  char *name;     /* of the tensor; NULL for kinds without one */
  GArray *values; /* of double */
} FixtureLine;

typedef struct
{
  GPtrArray *lines; /* of FixtureLine */
  guint64 seed;
} FixtureFile;

/* tests/models/parity/NAME.txt; a failure ends the test. */
FixtureFile *fixture_file_read (const char *name);
void fixture_file_free (FixtureFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (FixtureFile, fixture_file_free)

/* The @n-th line of a kind, or NULL. */
const FixtureLine *fixture_file_get (const FixtureFile *file, const char *kind, guint n);

static inline double
fixture_value (const FixtureLine *line, guint i)
{
  g_assert_cmpuint (i, <, line->values->len);
  return g_array_index (line->values, double, i);
}

/*
 * Compares a tensor of @n elements with its line: norm and largest entry within @tolerance of themselves,
 * samples within @tolerance of the largest entry. A projection is the sum over n products with uniform
 * numbers in [-1, 1), whose standard deviation is norm / sqrt (3); an error of relative size @tolerance moves
 * it by no more than three such deviations times @tolerance.
 */
void fixture_assert_tensor (const FixtureFile *file, const FixtureLine *line, const float *x, gint64 n,
                            double tolerance);

#endif
