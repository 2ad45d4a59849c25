/* yaml-explain.h: what libyaml's messages mean to somebody who writes a file by hand. */
#ifndef RUNNER_CONFIG_YAML_EXPLAIN_H
#define RUNNER_CONFIG_YAML_EXPLAIN_H

#include <glib.h>
#include <yaml.h>

G_BEGIN_DECLS

/*
 * The message of a parser that has failed on @text of @length bytes; not for reader errors. @line and
 * @column, from 1, are of the place to look at, which is often before the one where the parser gave up.
 * (transfer full)
 */
char *rn_yaml_explain (const yaml_parser_t *parser, const char *text, gsize length, gsize *line,
                       gsize *column);

G_END_DECLS

#endif
