#include "config.h"

#include "hooks/best.h"

#include <math.h>
#include <string.h>

/* ---- Rules ---- */

static const char *const greater_defaults[] = { "acc",   "top",  "AR@",  "auc",  "precision", "mAP",
                                                "mDice", "mIoU", "mAcc", "aAcc", NULL };
static const char *const less_defaults[] = { "loss", NULL };

static gboolean
is_among (const char *score, const char *const *names)
{
  for (; *names != NULL; names++)
    if (g_ascii_strcasecmp (*names, score) == 0)
      return TRUE;
  return FALSE;
}

static gboolean
contains_one (const char *score, const char *const *names)
{
  g_autofree char *lower = g_ascii_strdown (score, -1);

  for (; *names != NULL; names++)
    {
      g_autofree char *part = g_ascii_strdown (*names, -1);
      if (*part != '\0' && strstr (lower, part) != NULL)
        return TRUE;
    }
  return FALSE;
}

/* AP50, AP75: too short a name to look for within others. */
static gboolean
is_average_precision (const char *score)
{
  return g_str_has_prefix (score, "AP") && g_ascii_isdigit (score[2]);
}

static gboolean
parse_rule (const char *text, const RnNode *config, RnScoreRule *rule, GError **error)
{
  const RnNode *node = config != NULL ? rn_node_get (config, "rule") : NULL;

  if (strcmp (text, "greater") != 0 && strcmp (text, "less") != 0)
    return rn_node_error (node != NULL ? node : config, error,
                          "no rule \"%s\"; there are greater, less, null", text);
  *rule = strcmp (text, "less") == 0 ? RN_RULE_LESS : RN_RULE_GREATER;
  return TRUE;
}

gboolean
rn_score_rule_choose (const char *score, const RnRuleKeys *keys, const RnNode *config, RnScoreRule *rule,
                      GError **error)
{
  const char *const *greater = keys->greater_keys != NULL ? keys->greater_keys : greater_defaults;
  const char *const *less = keys->less_keys != NULL ? keys->less_keys : less_defaults;

  if (keys->rule != NULL)
    return parse_rule (keys->rule, config, rule, error);
  if (is_among (score, greater))
    *rule = RN_RULE_GREATER;
  else if (is_among (score, less))
    *rule = RN_RULE_LESS;
  else if (contains_one (score, greater))
    *rule = RN_RULE_GREATER;
  else if (contains_one (score, less))
    *rule = RN_RULE_LESS;
  else if (is_average_precision (score))
    *rule = RN_RULE_GREATER;
  else
    return rn_node_error (config, error,
                          "the name \"%s\" does not tell whether more or less of it is better; what works: "
                          "`rule: greater` or `rule: less`",
                          score);
  return TRUE;
}

const char *
rn_score_rule_name (RnScoreRule rule)
{
  return rule == RN_RULE_LESS ? "less" : "greater";
}

gboolean
rn_score_is_better (RnScoreRule rule, double a, double b)
{
  return rule == RN_RULE_LESS ? a < b : a > b;
}

/* ---- The best files ---- */

typedef struct
{
  char *name;
  double score;
} Entry;

struct _RnBestList
{
  RnScoreRule rule;
  GArray *entries; /* of Entry, best first */
};

static void
clear_entry (gpointer entry)
{
  g_free (((Entry *) entry)->name);
}

RnBestList *
rn_best_list_new (RnScoreRule rule)
{
  RnBestList *list = g_new0 (RnBestList, 1);
  list->rule = rule;
  list->entries = g_array_new (FALSE, FALSE, sizeof (Entry));
  g_array_set_clear_func (list->entries, clear_entry);
  return list;
}

void
rn_best_list_free (RnBestList *list)
{
  if (list == NULL)
    return;
  g_array_unref (list->entries);
  g_free (list);
}

static const Entry *
get (const RnBestList *list, guint i)
{
  return &g_array_index (list->entries, Entry, i);
}

RnScoreRule
rn_best_list_rule (const RnBestList *list)
{
  return list->rule;
}

guint
rn_best_list_size (const RnBestList *list)
{
  return list->entries->len;
}

const char *
rn_best_list_name (const RnBestList *list, guint i)
{
  return get (list, i)->name;
}

double
rn_best_list_score (const RnBestList *list, guint i)
{
  return get (list, i)->score;
}

/* The first place whose file is worse. */
static guint
find_place (const RnBestList *list, double score)
{
  guint place = 0;
  while (place < list->entries->len && !rn_score_is_better (list->rule, score, get (list, place)->score))
    place++;
  return place;
}

static void
insert (RnBestList *list, const char *name, double score)
{
  Entry entry = { g_strdup (name), score };
  g_array_insert_val (list->entries, find_place (list, score), entry);
}

int
rn_best_list_offer (RnBestList *list, const char *name, double score, guint max, char **dropped)
{
  *dropped = NULL;
  /* An evaluation that is done again after a resume writes the same file. */
  for (guint i = list->entries->len; i-- > 0;)
    if (strcmp (get (list, i)->name, name) == 0)
      g_array_remove_index (list->entries, i);

  guint place = find_place (list, score);
  if (!isfinite (score) || place >= max)
    return -1;
  insert (list, name, score);
  if (list->entries->len > max)
    {
      *dropped = g_strdup (get (list, list->entries->len - 1)->name);
      g_array_set_size (list->entries, max);
    }
  return (int) place;
}

void
rn_best_list_save (const RnBestList *list, RnRecord *state)
{
  g_autoptr (GString) names = g_string_new (NULL);
  g_autoptr (GArray) scores = g_array_new (FALSE, FALSE, sizeof (double));

  for (guint i = 0; i < list->entries->len; i++)
    {
      g_string_append_printf (names, "%s%s", i > 0 ? "\n" : "", get (list, i)->name);
      g_array_append_val (scores, get (list, i)->score);
    }
  rn_record_set_string (state, "best_names", names->str);
  rn_record_set_floats (state, "best_scores", (const double *) (gconstpointer) scores->data, scores->len);
}

static gboolean
is_file_of_ours (const char *dir, const char *name)
{
  g_autofree char *path = g_build_filename (dir, name, NULL);
  return g_str_has_prefix (name, "best_") && strchr (name, '/') == NULL
         && g_file_test (path, G_FILE_TEST_IS_REGULAR);
}

void
rn_best_list_load (RnBestList *list, const RnRecord *state, const char *dir)
{
  const char *text = rn_record_string (state, "best_names");
  gsize n;
  const double *scores = rn_record_floats (state, "best_scores", &n);
  g_auto (GStrv) names = g_strsplit (text != NULL ? text : "", "\n", -1);

  g_array_set_size (list->entries, 0);
  for (gsize i = 0; i < n && names[i] != NULL; i++)
    if (isfinite (scores[i]) && is_file_of_ours (dir, names[i]))
      insert (list, names[i], scores[i]);
}
