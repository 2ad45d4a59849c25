/* weights-fixture.h: a folder for weight files made by hand, sound and hostile. */
#ifndef TESTS_WEIGHTS_WEIGHTS_FIXTURE_H
#define TESTS_WEIGHTS_WEIGHTS_FIXTURE_H

#include "runner/weights/weights.h"

/* A literal with NULs, as pointer and length. */
/* Two arguments. Functions that newer releases of GLib have as macros too are called in brackets:
 * (g_string_append_len). */
#define BYTES(literal) (literal), (sizeof (literal) - 1)

typedef struct
{
  char *dir, *path; /* path: of the one file in it */
} Fixture;

void fixture_set_up (Fixture *f, gconstpointer data);
void fixture_tear_down (Fixture *f, gconstpointer data);
void fixture_write (const Fixture *f, const void *bytes, gsize n);

/* Opening the file must fail with RN_CHECKPOINT_ERROR_DAMAGED and a message that has the path and @part. */
void fixture_refused (const Fixture *f, const char *part);

/* Zip archives, made by libzip. */
typedef struct
{
  const char *name;
  const void *bytes;
  gsize n;
  gboolean packed;
} ZipEntry;
void fixture_write_zip (const Fixture *f, const ZipEntry *entries, guint n);

/* Pickles. */
void pickle_text (GString *pickle, const char *text);
void pickle_long (GString *pickle, gint64 number);
/*
 * A call of _rebuild_tensor_v2 on storage @key of @n elements of @storage ("FloatStorage"), without view;
 * sizes and strides have @rank members.
 */
void pickle_tensor (GString *pickle, const char *storage, const char *key, gint64 n, gint64 offset, int rank,
                    const gint64 *sizes, const gint64 *strides);

#endif
