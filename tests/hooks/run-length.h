/* run-length.h: sequences of numbers as the golden tables write them: "4x3 2x1" is 4, 4, 4, 2. */
#ifndef TESTS_HOOKS_RUN_LENGTH_H
#define TESTS_HOOKS_RUN_LENGTH_H

#include <glib.h>

G_BEGIN_DECLS

typedef struct
{
  GString *text; /* owned */
  double value;
  int count;
} RunLength;

static inline void
run_length_init (RunLength *runs)
{
  *runs = (RunLength){ .text = g_string_new (NULL) };
}

static inline void
run_length_flush (RunLength *runs)
{
  if (runs->count > 0)
    g_string_append_printf (runs->text, "%s%.9gx%d", runs->text->len > 0 ? " " : "", runs->value,
                            runs->count);
  runs->count = 0;
}

static inline void
run_length_add (RunLength *runs, double value)
{
  if (runs->count > 0 && value != runs->value)
    run_length_flush (runs);
  runs->value = value;
  runs->count++;
}

static inline void
run_length_assert (RunLength *runs, const char *expected)
{
  run_length_flush (runs);
  g_assert_cmpstr (runs->text->str, ==, expected);
  g_string_free (runs->text, TRUE);
}

G_END_DECLS

#endif
