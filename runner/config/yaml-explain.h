/* yaml-explain.h: what libyaml's messages mean to somebody who writes a file by hand. */
#ifndef RUNNER_CONFIG_YAML_EXPLAIN_H
#define RUNNER_CONFIG_YAML_EXPLAIN_H

#include <glib.h>

G_BEGIN_DECLS

/* What yaml_parser_t says of its failure; lines and columns from 0. */
typedef struct
{
  const char *problem, *context; /* context: the rule that failed, or NULL */
  struct
  {
    gsize line, column;
  } at, begin; /* where the parser gave up; where the rule began */
} RnYamlProblem;

/*
 * The message for a problem in @text of @length bytes. @line and @column, from 1, are of the place to look
 * at, which is often before the one where the parser gave up. (transfer full)
 */
char *rn_yaml_explain (const RnYamlProblem *problem, const char *text, gsize length, gsize *line,
                       gsize *column);

G_END_DECLS

#endif
