/*
 * fuzz.h: one harness for each reader of files from elsewhere.
 *
 * Two programs feed them: test-mutations with the same damage to the same seeds on every machine, and fuzz
 * with inputs that libFuzzer makes (`make fuzz`). What once went wrong is kept in corpus/NAME/, and
 * test-mutations runs it.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <glib.h>

G_BEGIN_DECLS

/* A piece of text or code that means something to the reader. */
typedef struct
{
  const char *bytes;
  gsize size;
} RnFuzzToken;

/* From a string literal, which may contain \0. */
#define RN_FUZZ_TOKEN(text) \
  {                         \
    text, sizeof text - 1   \
  }

typedef struct
{
  const char *name;
  /* 1: @data was read; 0: it was refused, with an error that rn_fuzz_check took. Others end the
   * program. */
  int (*run) (const guint8 *data, gsize size);
  /* Adds GBytes, each of which is read. */
  void (*add_seeds) (GPtrArray *seeds);
  const RnFuzzToken *tokens; /* the last has bytes NULL; NULL: none */
} RnFuzzReader;

/* All, NULL-ended. */
extern const RnFuzzReader *const rn_fuzz_readers[];
const RnFuzzReader *rn_fuzz_find (const char *name);

/* ---- For harnesses ---- */

/*
 * The value that a harness returns for @ok: aborts unless @error is set exactly when @ok is false, and is one
 * line of printable UTF-8.
 */
int rn_fuzz_check (gboolean ok, const GError *error);

/*
 * The path of a file with @size bytes of @data, until the next call. It is a regular file in memory; the path
 * is the same each time.
 */
const char *rn_fuzz_file (const guint8 *data, gsize size);

void rn_fuzz_add_text (GPtrArray *seeds, const char *text);
/* A file of the tests, by its path in the source tree; skipped if G_TEST_SRCDIR is not set. */
void rn_fuzz_add_file (GPtrArray *seeds, const char *path);

/* ---- For the programs ---- */

/* Of the last error that rn_fuzz_check saw, shortened. */
const char *rn_fuzz_last_message (void);

/*
 * Number @number of the mutations of the reader's @seeds (all GBytes, at least one): bits, bytes, interesting
 * integers, tokens; pieces cut out, repeated, taken from other seeds; the end cut off.
 */
GBytes *rn_fuzz_mutate (const RnFuzzReader *reader, GPtrArray *seeds, guint32 number);

/* Puts a token or an interesting integer somewhere into [*size] bytes of @data, which has room for @room. */
void rn_fuzz_insert (const RnFuzzReader *reader, guint8 *data, gsize *size, gsize room, guint32 seed);

G_END_DECLS

#endif
