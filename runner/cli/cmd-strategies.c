/* cmd-strategies.c: `runner strategies`: the memory strategies, and which of them go together. */
#include "config.h"

#include "runner/cli/commands.h"

#include "runner/base/error.h"
#include "runner/base/registry.h"
#include "runner/cli/common.h"
#include "runner/cli/json.h"
#include "runner/strategy-rules.h"

#include <string.h>

/* ---- Reasons of pairs, numbered ---- */

/* One key has one value: its strategies exclude each other, and no rule has to say so. */
#define SAME_KEY "="

/* "yes", "=" or the number of the rule. (transfer full) */
static char *
cell (RnStrategyId a, RnStrategyId b, const char *yes)
{
  int rule = rn_strategy_rule_of_pair (a, b);

  if (rn_strategies_pair_reason (a, b) == NULL)
    return g_strdup (yes);
  return rule >= 0 ? g_strdup_printf ("%d", rule + 1) : g_strdup (SAME_KEY);
}

/* What a rule is about besides its strategy: a setting, or other strategies. (transfer full) */
static char *
rule_setting (const RnStrategyRule *rule)
{
  if (rule->setting != NULL)
    return g_strdup (rule->setting);
  GString *text = g_string_new (NULL);
  for (int i = 0; i < rule->n_others; i++)
    g_string_append_printf (text, "%s%s", i > 0 ? ", " : "", rn_strategy_get (rule->others[i])->name);
  return g_string_free (text, FALSE);
}

/* ---- Text ---- */

static void
print_one (const RnStrategy *strategy)
{
  g_print ("%s: %s\n", strategy->name, strategy->summary);
  g_print ("in a file: %s%s\n", strategy->yaml, strategy->is_default ? " (default)" : "");
  g_print ("after --set:");
  for (int i = 0; strategy->lines[i] != NULL; i++)
    g_print (" '%s'", strategy->lines[i]);
  g_print ("\nresult: %s\n", rn_strategy_result_text (strategy->result));
  if (strategy->known_as != NULL)
    g_print ("known as: %s\n", strategy->known_as);
  for (int i = 0; i < rn_strategy_rules_count (); i++)
    {
      const RnStrategyRule *rule = rn_strategy_rule_get (i);
      g_autofree char *setting = rule_setting (rule);
      gboolean is_about = rule->strategy == strategy->id;
      for (int j = 0; j < rule->n_others; j++)
        is_about = is_about || rule->others[j] == strategy->id;
      if (is_about)
        g_print ("%s does not go with %s: %s; what works: %s\n", rn_strategy_get (rule->strategy)->name,
                 setting, rule->reason, rule->instead);
    }
}

static void
print_list (void)
{
  gsize width = 0;

  for (int id = 0; id < RN_STRATEGY_COUNT; id++)
    width = MAX (width, strlen (rn_strategy_get ((RnStrategyId) id)->name));
  for (int id = 0; id < RN_STRATEGY_COUNT; id++)
    {
      const RnStrategy *strategy = rn_strategy_get ((RnStrategyId) id);
      g_print ("%-*s  %s\n%*s  %s\n", (int) width, strategy->name, strategy->yaml, (int) width, "",
               strategy->summary);
    }
  g_print ("\nThey go together, but for these:\n");
  for (int i = 0; i < rn_strategy_rules_count (); i++)
    {
      const RnStrategyRule *rule = rn_strategy_rule_get (i);
      g_autofree char *setting = rule_setting (rule);
      g_print ("  %s and %s: %s\n", rn_strategy_get (rule->strategy)->name, setting, rule->reason);
    }
}

static gboolean
show (const char *name, GError **error)
{
  if (name == NULL)
    {
      print_list ();
      return TRUE;
    }
  const RnStrategy *strategy = rn_strategy_find (name);
  if (strategy != NULL)
    {
      print_one (strategy);
      return TRUE;
    }
  const char *names[RN_STRATEGY_COUNT + 1] = { NULL };
  for (int id = 0; id < RN_STRATEGY_COUNT; id++)
    names[id] = rn_strategy_get ((RnStrategyId) id)->name;
  const char *nearest = rn_suggest (name, names);
  g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, "no strategy \"%s\"; %s%s%s", name,
               nearest != NULL ? "did you mean \"" : "without a name all are listed",
               nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "");
  return FALSE;
}

/* ---- Markdown: the tables of docs/strategies.md ---- */

static void
print_markdown_list (void)
{
  g_print ("| name | one line | what it does | result | known as |\n|---|---|---|---|---|\n");
  for (int id = 0; id < RN_STRATEGY_COUNT; id++)
    {
      const RnStrategy *strategy = rn_strategy_get ((RnStrategyId) id);
      g_print ("| %s | `%s`%s | %s | %s | %s |\n", strategy->name, strategy->yaml,
               strategy->is_default ? " (default)" : "", strategy->summary,
               rn_strategy_result_text (strategy->result),
               strategy->known_as != NULL ? strategy->known_as : "");
    }
}

/* Strategies have letters, or the table would be too wide to read. */
G_STATIC_ASSERT (RN_STRATEGY_COUNT <= 26);

static void
print_markdown_pairs (void)
{
  g_print ("|   |");
  for (int b = 0; b < RN_STRATEGY_COUNT; b++)
    g_print (" %c |", 'A' + b);
  g_print ("\n|---|");
  for (int b = 0; b < RN_STRATEGY_COUNT; b++)
    g_print ("---|");
  g_print ("\n");
  for (int a = 0; a < RN_STRATEGY_COUNT; a++)
    {
      g_print ("| %c %s |", 'A' + a, rn_strategy_get ((RnStrategyId) a)->name);
      for (int b = 0; b < RN_STRATEGY_COUNT; b++)
        {
          g_autofree char *text = a == b ? g_strdup ("") : cell ((RnStrategyId) a, (RnStrategyId) b, "+");
          g_print (" %s |", text);
        }
      g_print ("\n");
    }
}

static void
print_markdown_rules (void)
{
  g_print ("| # | strategy | does not go with | because | what works |\n|---|---|---|---|---|\n");
  for (int i = 0; i < rn_strategy_rules_count (); i++)
    {
      const RnStrategyRule *rule = rn_strategy_rule_get (i);
      g_autofree char *setting = rule_setting (rule);
      g_print ("| %d | %s | %s | %s | %s |\n", i + 1, rn_strategy_get (rule->strategy)->name, setting,
               rule->reason, rule->instead);
    }
}

static void
print_markdown (void)
{
  print_markdown_list ();
  g_print ("\n+: they go together. %s: values of one key. A number: refused, for the reason below.\n\n",
           SAME_KEY);
  print_markdown_pairs ();
  g_print ("\n");
  print_markdown_rules ();
}

/* ---- JSON ---- */

static void
add_strategy (JsonBuilder *builder, const RnStrategy *strategy)
{
  json_builder_begin_object (builder);
  rn_json_add_string (builder, "name", strategy->name);
  rn_json_add_string (builder, "key", strategy->key);
  rn_json_add_string (builder, "yaml", strategy->yaml);
  rn_json_add_strings (builder, "set", strategy->lines);
  rn_json_add_string (builder, "summary", strategy->summary);
  rn_json_add_string (builder, "result", rn_strategy_result_text (strategy->result));
  rn_json_add_string (builder, "known_as", strategy->known_as != NULL ? strategy->known_as : "");
  rn_json_add_bool (builder, "default", strategy->is_default);
  json_builder_end_object (builder);
}

static void
add_rule (JsonBuilder *builder, const RnStrategyRule *rule)
{
  const char *others[RN_STRATEGY_RULE_MAX_OTHERS + 1] = { NULL };
  g_autofree char *setting = rule_setting (rule);

  for (int i = 0; i < rule->n_others; i++)
    others[i] = rn_strategy_get (rule->others[i])->name;
  json_builder_begin_object (builder);
  rn_json_add_string (builder, "strategy", rn_strategy_get (rule->strategy)->name);
  rn_json_add_strings (builder, "others", others);
  rn_json_add_string (builder, "setting", setting);
  rn_json_add_string (builder, "reason", rule->reason);
  rn_json_add_string (builder, "instead", rule->instead);
  json_builder_end_object (builder);
}

/* Pairs that cannot be: a pair that is not there can. */
static void
add_pairs (JsonBuilder *builder)
{
  for (int a = 0; a < RN_STRATEGY_COUNT; a++)
    for (int b = a + 1; b < RN_STRATEGY_COUNT; b++)
      {
        const char *reason = rn_strategies_pair_reason ((RnStrategyId) a, (RnStrategyId) b);
        if (reason == NULL)
          continue;
        json_builder_begin_object (builder);
        rn_json_add_string (builder, "a", rn_strategy_get ((RnStrategyId) a)->name);
        rn_json_add_string (builder, "b", rn_strategy_get ((RnStrategyId) b)->name);
        rn_json_add_string (builder, "reason", reason);
        json_builder_end_object (builder);
      }
}

static void
print_json (void)
{
  g_autoptr (JsonBuilder) builder = json_builder_new ();

  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "strategies");
  json_builder_begin_array (builder);
  for (int id = 0; id < RN_STRATEGY_COUNT; id++)
    add_strategy (builder, rn_strategy_get ((RnStrategyId) id));
  json_builder_end_array (builder);
  json_builder_set_member_name (builder, "rules");
  json_builder_begin_array (builder);
  for (int i = 0; i < rn_strategy_rules_count (); i++)
    add_rule (builder, rn_strategy_rule_get (i));
  json_builder_end_array (builder);
  json_builder_set_member_name (builder, "refused_pairs");
  json_builder_begin_array (builder);
  add_pairs (builder);
  json_builder_end_array (builder);
  json_builder_end_object (builder);
  rn_json_print (builder);
}

int
rn_cmd_strategies (int argc, char **argv)
{
  gboolean as_json = FALSE, as_markdown = FALSE;
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &as_json, "Print everything as JSON", NULL },
    { "markdown", 0, 0, G_OPTION_ARG_NONE, &as_markdown, "Print the tables of docs/strategies.md", NULL },
    { NULL },
  };
  const RnUsage usage = {
    .arguments = "[NAME]",
    .summary =
        "Lists the memory strategies, the line that sets each, and which of them do not go together; or "
        "explains one. `runner plan` says what each would save.",
    .examples = "  runner strategies\n"
                "  runner strategies in_backward\n",
    .n_max = 1,
    .entries = entries,
  };
  GError *error = NULL;
  g_auto (RnOptions) options;

  if (!rn_options_parse (&usage, argc, argv, &options, &error))
    return rn_cli_fail (error);
  if (as_markdown)
    print_markdown ();
  else if (as_json)
    print_json ();
  else if (!show (options.arguments[0], &error))
    return rn_cli_fail (error);
  return 0;
}
