/* program.h: runs the program that was built, as a user would. */
#ifndef TESTS_CLI_PROGRAM_H
#define TESTS_CLI_PROGRAM_H

#include <glib.h>
#include <json-glib/json-glib.h>
#include "tests/tree.h"

G_BEGIN_DECLS

typedef struct
{
  int code; /* exit status */
  char *out, *err;
} Result;

void result_clear (Result *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Result, result_clear)

/* Runs `runner @first ...`, up to NULL. Being killed by a signal fails the test. */
Result run_program (const char *first, ...) G_GNUC_NULL_TERMINATED;

/* What a run printed: one JSON value and nothing around it. Fails the test if that is not so. (transfer full)
 */
JsonParser *parse_json (const Result *result);
/* The object that it is. Lent. */
JsonObject *json_object_of (JsonParser *parser);

/* Fails the test, showing @text, if @words are not in it. */
void assert_contains (const char *text, const char *words);

/* The path of a file in configs/. (transfer full) */
char *config_file (const char *name);

G_END_DECLS

#endif
