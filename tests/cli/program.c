#include "config.h"

#include "tests/cli/program.h"

#include <string.h>

void
result_clear (Result *result)
{
  g_free (result->out);
  g_free (result->err);
}

Result
run_program (const char *first, ...)
{
  g_autoptr (GPtrArray) argv = g_ptr_array_new ();
  g_autofree char *program = g_test_build_filename (G_TEST_BUILT, "runner", "runner", NULL);
  g_ptr_array_add (argv, program);
  va_list args;
  va_start (args, first);
  for (const char *arg = first; arg != NULL; arg = va_arg (args, const char *))
    g_ptr_array_add (argv, (gpointer) arg);
  va_end (args);
  g_ptr_array_add (argv, NULL);

  Result result = { 0 };
  g_autoptr (GError) error = NULL;
  int status = 0;
  g_spawn_sync (NULL, (char **) argv->pdata, NULL, G_SPAWN_DEFAULT, NULL, NULL, &result.out, &result.err,
                &status, &error);
  g_assert_no_error (error);
  if (!g_spawn_check_wait_status (status, &error))
    {
      g_assert_true (error->domain == G_SPAWN_EXIT_ERROR);
      result.code = error->code;
    }
  return result;
}

JsonParser *
parse_json (const Result *result)
{
  g_autoptr (GError) error = NULL;
  JsonParser *parser = json_parser_new_immutable ();

  if (result->code != 0)
    g_error ("exit code %d: %s", result->code, result->err);
  json_parser_load_from_data (parser, result->out, -1, &error);
  g_assert_no_error (error);
  return parser;
}

JsonObject *
json_object_of (JsonParser *parser)
{
  return json_node_get_object (json_parser_get_root (parser));
}

void
assert_contains (const char *text, const char *words)
{
  if (strstr (text, words) == NULL)
    g_error ("no \"%s\" in: %s", words, text);
}

char *
config_file (const char *name)
{
  return g_test_build_filename (G_TEST_DIST, "configs", name, NULL);
}
