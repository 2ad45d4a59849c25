/* budget.c: candidates, and the fastest of them that fits. */
#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/budget.h"

#include "runner/base/error.h"
#include "runner/base/size.h"

#include <math.h>
#include <string.h>

/* Lengths of segments are tried in all combinations, up to so many. */
#define MAX_COMBINATIONS 100
#define MAX_LENGTHS 5

struct _RnBudget
{
  RnPredictor *predictor;
  const RnNode *root;    /* lent, while trying */
  GPtrArray *candidates; /* of RnCandidate, in the order in which they were tried; the first is the base */
  GPtrArray *by_time;    /* the same, fastest first; of equals the one with the fewest lines */
  RnProgress progress;
  gpointer user_data;
  int n_tried, n_known;
};

static void
candidate_free (gpointer data)
{
  RnCandidate *candidate = data;

  g_strfreev (candidate->lines);
  g_free (candidate);
}

/* ---- trying ---- */

/* @lines and @line, as a new list. */
static char **
append_line (char *const *lines, const char *line)
{
  g_autoptr (GPtrArray) list = g_ptr_array_new ();

  for (int i = 0; lines[i] != NULL; i++)
    g_ptr_array_add (list, g_strdup (lines[i]));
  g_ptr_array_add (list, g_strdup (line));
  g_ptr_array_add (list, NULL);
  return (char **) g_ptr_array_free (g_steal_pointer (&list), FALSE);
}

/* @lines: (transfer full). FALSE: the configuration is refused with them. */
static gboolean
try_lines (RnBudget *budget, char **lines, GError **error)
{
  RnCandidate *candidate = g_new0 (RnCandidate, 1);

  candidate->lines = lines;
  if (!rn_predict (budget->predictor, (const char *const *) lines, 0, RN_PREDICT_BOUND,
                   &candidate->prediction, error))
    {
      candidate_free (candidate);
      return FALSE;
    }
  const RnCandidate *base = budget->candidates->len > 0 ? budget->candidates->pdata[0] : candidate;
  candidate->seconds = MAX (candidate->prediction.seconds, base->prediction.seconds);
  g_ptr_array_add (budget->candidates, candidate);
  return TRUE;
}

static void
show_progress (RnBudget *budget)
{
  budget->n_tried++;
  if (budget->progress != NULL)
    budget->progress (budget->n_tried, budget->n_known, budget->user_data);
}

static int
compare_times (gconstpointer a, gconstpointer b)
{
  const RnCandidate *x = *(const RnCandidate *const *) a, *y = *(const RnCandidate *const *) b;
  gsize bytes_x = x->prediction.memory.total_bytes, bytes_y = y->prediction.memory.total_bytes;

  if (x->seconds != y->seconds)
    return x->seconds < y->seconds ? -1 : 1;
  return bytes_x < bytes_y ? -1 : bytes_x > bytes_y;
}

/* Those of which no other is both as fast and as small: what it makes sense to add a line to. */
static GPtrArray *
find_front (const RnBudget *budget)
{
  g_autoptr (GPtrArray) sorted = g_ptr_array_copy (budget->candidates, NULL, NULL);
  GPtrArray *front = g_ptr_array_new ();
  gsize least = G_MAXSIZE;

  g_ptr_array_set_free_func (sorted, NULL);
  g_ptr_array_sort (sorted, compare_times);
  for (guint i = 0; i < sorted->len; i++)
    {
      RnCandidate *candidate = sorted->pdata[i];
      if (candidate->prediction.memory.total_bytes >= least)
        continue;
      least = candidate->prediction.memory.total_bytes;
      g_ptr_array_add (front, candidate);
    }
  return front;
}

/* Each of @choices, lines of one @key, added to each candidate of the front; unless the file has the key. */
static void
extend (RnBudget *budget, const char *key, const char *const *choices)
{
  g_autoptr (GPtrArray) front = NULL;
  guint n = g_strv_length ((char **) choices);

  if (!rn_node_is_null (rn_node_path (budget->root, key)))
    return;
  front = find_front (budget);
  budget->n_known += (int) (front->len * n);
  for (guint i = 0; i < front->len; i++)
    for (guint k = 0; k < n; k++)
      {
        const RnCandidate *candidate = front->pdata[i];
        /* What does not go with the file, or has no effect on this model, is no candidate. */
        try_lines (budget, append_line (candidate->lines, choices[k]), NULL);
        show_progress (budget);
      }
}

/* ---- segments ---- */

/* No segment, one block, and what the usual rules would take: sqrt (n), halves, all. In ascending order. */
static int
list_lengths (int n_blocks, gboolean few, int lengths[MAX_LENGTHS])
{
  int root = (int) ceil (sqrt (n_blocks)), n = 0;
  const int all[MAX_LENGTHS] = { 0, 1, root, (n_blocks + 1) / 2, n_blocks };
  const int ends[] = { 0, root, n_blocks };

  for (int length = 0; length <= n_blocks; length++)
    {
      gboolean is_in = FALSE;
      for (gsize i = 0; i < (few ? G_N_ELEMENTS (ends) : MAX_LENGTHS); i++)
        is_in |= (few ? ends[i] : all[i]) == length;
      if (is_in)
        lengths[n++] = length;
    }
  return n;
}

static int
count_combinations (const RnTrainedStages *stages, gboolean few)
{
  int lengths[MAX_LENGTHS], n = 1;

  for (int s = 0; s < stages->n; s++)
    n *= list_lengths (stages->blocks[s], few, lengths);
  return n;
}

/* All combinations of lengths but that of no segment at all. (transfer full) */
static char **
list_segments (const RnTrainedStages *stages)
{
  gboolean few = count_combinations (stages, FALSE) > MAX_COMBINATIONS;
  int n = count_combinations (stages, few);
  char **lines = g_new0 (char *, n);

  for (int i = 1; i < n; i++)
    {
      g_autoptr (GString) line = g_string_new ("model.backbone.with_cp={stages: [");
      for (int s = 0, rest = i; s < stages->n; s++)
        {
          int lengths[MAX_LENGTHS], n_lengths = list_lengths (stages->blocks[s], few, lengths);
          g_string_append_printf (line, "%s%d", s > 0 ? ", " : "", lengths[rest % n_lengths]);
          rest /= n_lengths;
        }
      g_string_append (line, "]}");
      lines[i - 1] = g_string_free (g_steal_pointer (&line), FALSE);
    }
  return lines;
}

/* ---- the search ---- */

static void
search (RnBudget *budget)
{
  static const char *const heads[] = { "memory.head=depth_first", "model.bbox_head.with_cp=true", NULL };
  static const char *const updates[] = { "memory.update=in_backward", NULL };
  static const char *const recompute[] = { "memory.recompute=bn_relu", "memory.recompute=frozen",
                                           "memory.recompute=[bn_relu, frozen]", NULL };
  static const char *const offload[] = { "memory.offload=idle>128",      "memory.offload=idle>64",
                                         "memory.offload=idle>32",       "memory.offload=idle>16",
                                         "memory.offload=block_outputs", NULL };
  static const char *const limits[] = { "memory.workspace_limit=64MiB", "memory.workspace_limit=32MiB",
                                        "memory.workspace_limit=16MiB", "memory.workspace_limit=8MiB", NULL };
  const RnCandidate *base = budget->candidates->pdata[0];
  g_auto (GStrv) segments = list_segments (&base->prediction.stages);

  /* What costs nothing first, so that the rest is tried on top of it. */
  extend (budget, "memory.head", heads);
  extend (budget, "memory.update", updates);
  extend (budget, "memory.recompute", recompute);
  extend (budget, "model.backbone.with_cp", (const char *const *) segments);
  extend (budget, "memory.workspace_limit", limits);
  extend (budget, "memory.offload", offload);
}

/* Of equal times the fewest lines, then what was tried first. */
static int
compare_choices (gconstpointer a, gconstpointer b, gpointer user_data)
{
  const RnCandidate *x = *(const RnCandidate *const *) a, *y = *(const RnCandidate *const *) b;
  const GPtrArray *tried = user_data;
  guint lines_x = g_strv_length (x->lines), lines_y = g_strv_length (y->lines), place_x, place_y;

  if (x->seconds != y->seconds)
    return x->seconds < y->seconds ? -1 : 1;
  if (lines_x != lines_y)
    return lines_x < lines_y ? -1 : 1;
  g_ptr_array_find ((GPtrArray *) tried, x, &place_x);
  g_ptr_array_find ((GPtrArray *) tried, y, &place_y);
  return place_x < place_y ? -1 : place_x > place_y;
}

RnBudget *
rn_budget_new (const RnJob *job, const GArray *shapes, RnProgress progress, gpointer user_data,
               GError **error)
{
  g_autoptr (RnBudget) budget = g_new0 (RnBudget, 1);

  budget->predictor = rn_predictor_new (job, shapes);
  budget->root = job->root;
  budget->candidates = g_ptr_array_new_with_free_func (candidate_free);
  budget->progress = progress;
  budget->user_data = user_data;
  budget->n_known = 1;
  if (!try_lines (budget, g_new0 (char *, 1), error))
    return NULL;
  show_progress (budget);
  search (budget);
  budget->by_time = g_ptr_array_copy (budget->candidates, NULL, NULL);
  g_ptr_array_set_free_func (budget->by_time, NULL);
  g_ptr_array_sort_with_data (budget->by_time, compare_choices, budget->candidates);
  return g_steal_pointer (&budget);
}

void
rn_budget_free (RnBudget *budget)
{
  if (budget == NULL)
    return;
  g_clear_pointer (&budget->by_time, g_ptr_array_unref);
  g_ptr_array_unref (budget->candidates);
  rn_predictor_free (budget->predictor);
  g_free (budget);
}

RnPredictor *
rn_budget_predictor (RnBudget *budget)
{
  return budget->predictor;
}

const RnCandidate *
rn_budget_base (RnBudget *budget)
{
  return budget->candidates->pdata[0];
}

GPtrArray *
rn_budget_front (const RnBudget *budget)
{
  g_autoptr (GPtrArray) front = find_front (budget);
  GPtrArray *lines = g_ptr_array_new ();

  for (guint i = 0; i < front->len; i++)
    g_ptr_array_add (lines, ((const RnCandidate *) front->pdata[i])->lines);
  return lines;
}

char *
rn_lines_to_arguments (char *const *lines)
{
  GString *text = g_string_new (lines[0] != NULL ? "--set" : NULL);

  for (int i = 0; lines[i] != NULL; i++)
    {
      gboolean is_plain = strpbrk (lines[i], " []{}>*?#&;|<()$'\"\\~!") == NULL;
      g_autofree char *quoted = is_plain ? g_strdup (lines[i]) : g_shell_quote (lines[i]);
      g_string_append_printf (text, " %s", quoted);
    }
  return g_string_free (text, FALSE);
}

guint
rn_budget_count (const RnBudget *budget)
{
  return budget->candidates->len;
}

/* ---- answers ---- */

/* Over all shapes, and placed. What was predicted before is the least that this can give. */
static gboolean
make_exact (RnBudget *budget, RnCandidate *candidate, GError **error)
{
  RnPrediction all;

  if (candidate->is_exact)
    return TRUE;
  if (!rn_predict (budget->predictor, (const char *const *) candidate->lines, 0, RN_PREDICT_ALL, &all, error))
    return FALSE;
  candidate->prediction.memory = all.memory;
  candidate->is_exact = TRUE;
  return TRUE;
}

const RnCandidate *
rn_budget_find (RnBudget *budget, const RnRoom *room, GError **error)
{
  for (guint i = 0; i < budget->by_time->len; i++)
    {
      RnCandidate *candidate = budget->by_time->pdata[i];
      if (rn_room_needed (room, &candidate->prediction.memory) > room->bytes)
        continue;
      if (!make_exact (budget, candidate, error))
        return NULL;
      if (rn_room_needed (room, &candidate->prediction.memory) <= room->bytes)
        return candidate;
    }
  return NULL;
}

const RnCandidate *
rn_budget_smallest (RnBudget *budget, const RnRoom *room, GError **error)
{
  RnCandidate *smallest = NULL;
  guint64 least = G_MAXUINT64;

  for (guint i = 0; i < budget->by_time->len; i++)
    {
      RnCandidate *candidate = budget->by_time->pdata[i];
      if (rn_room_needed (room, &candidate->prediction.memory) >= least)
        continue;
      if (!make_exact (budget, candidate, error))
        return NULL;
      guint64 needed = rn_room_needed (room, &candidate->prediction.memory);
      if (needed >= least)
        continue;
      least = needed;
      smallest = candidate;
    }
  return smallest;
}

/* ---- memory.budget ---- */

static gboolean
refuse (const RnJob *job, const RnRoom *room, GError **error)
{
  const RnCandidate *smallest = rn_budget_smallest (job->budget, room, error);

  if (smallest == NULL)
    return FALSE;
  guint64 least = rn_room_needed (room, &smallest->prediction.memory);
  g_autofree char *asked = rn_size_format (room->bytes), *least_text = rn_size_format (least);
  g_autofree char *lines = rn_lines_to_arguments (smallest->lines);
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY,
               "%s: memory.budget: no plan of this run fits in %s; the smallest budget that works is "
               "--set memory.budget=%" G_GUINT64_FORMAT " (%s%s%s); what needs less: a smaller "
               "data.samples_per_gpu or img_scale, fp16, memory.momentum: host",
               rn_node_origin (job->config.memory.budget_node), asked, least, least_text,
               lines[0] != '\0' ? ", with " : "", lines);
  return FALSE;
}

static void
report (const RnJob *job, const RnRoom *room)
{
  const RnCandidate *base = rn_budget_base (job->budget), *chosen = job->chosen;
  g_autofree char *asked = rn_size_format (room->bytes);
  g_autofree char *total = rn_size_format (chosen->prediction.memory.total_bytes);
  g_autofree char *plain = rn_size_format (base->prediction.memory.total_bytes);
  g_autofree char *lines = rn_lines_to_arguments (chosen->lines);

  if (chosen == base)
    g_message ("budget %s: the configuration fits as it is, in %s", asked, total);
  else
    g_message (
        "budget %s: %s in place of %s; a step is predicted to take %.2f times as long; chosen of %u: %s",
        asked, total, plain, chosen->seconds / base->seconds, rn_budget_count (job->budget), lines);
}

gboolean
rn_budget_apply (RnJob *job, const GArray *shapes, GError **error)
{
  RnRoom room;
  g_autoptr (GError) local = NULL;

  if (!rn_room_of (job, "memory.budget: auto", &room, error))
    return FALSE;
  g_clear_pointer (&job->budget, rn_budget_free);
  job->budget = rn_budget_new (job, shapes, rn_job_show_progress, (gpointer) "choosing strategies", error);
  if (job->budget == NULL)
    return FALSE;
  job->chosen = rn_budget_find (job->budget, &room, &local);
  if (local != NULL)
    {
      g_propagate_error (error, g_steal_pointer (&local));
      return FALSE;
    }
  if (job->chosen == NULL)
    return refuse (job, &room, error);
  job->budget_bytes = room.bytes;
  report (job, &room);
  return rn_job_change (job, (const char *const *) job->chosen->lines, error);
}
