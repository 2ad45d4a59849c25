/*
 * test-strategy-pairs.c: every memory strategy alone, every pair of them, and as many together as there can
 * be, against what the list in strategies.h promises. A run of the small detector (SMALL_RESNET) is four
 * iterations long. Its executors compare every byte that is written with the plan.
 *
 * A run is bit-equal to the one that has only those of its strategies that may change results; what one of
 * these may change is compared with the run that has none. What does not go together is refused when the file
 * is loaded, with the reason of the table.
 *
 * RN_TEST_ONLY=with_cp,bf16: these strategies alone. RN_TEST_LONG=1: on all of ResNet-18 and five levels, at
 * 160x128, instead.
 */
#include "config.h"

#include "runner/base/error.h"
#include "runner/config/config.h"
#include "runner/hook-class.h"
#include "runner/strategies.h"
#include "tests/runner/small-detector.h"
#include "tests/tree.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define N_ITERS 4
#define LR 0.01

static char *data;           /* folder of the data set */
static GHashTable *outcomes; /* of sets that are compared with */
static guint64 wanted;       /* strategies that are tried */

static gboolean is_long;

/* RetinaNet of ResNet-18, with a quarter of the channels or less. */
#define R18                                                                                                 \
  "model.backbone={type: ResNet, depth: 18, stem_channels: 16, base_channels: 16, frozen_stages: 1, "       \
  "norm_eval: false}",                                                                                      \
      "model.neck={type: FPN, in_channels: [16, 32, 64, 128], out_channels: 16, start_level: 1, num_outs: " \
      "5, "                                                                                                 \
      "add_extra_convs: on_input}",                                                                         \
      "model.bbox_head.in_channels=16", "model.bbox_head.feat_channels=16",                                 \
      "model.bbox_head.stacked_convs=2", "model.bbox_head.anchor_generator.strides=[8, 16, 32, 64, 128]"

#define BIT(id) ((guint64) 1 << (id))
#define HAS(set, id) (((set) >> (id)) & 1)

/* ---- A hook that looks on ---- */

typedef struct
{
  double losses[N_ITERS];
  GArray *params[N_ITERS + 1]; /* of float: all of them, at the start and after each iteration */
  char *plan;                  /* what is planned, as a text */
} Outcome;

static Outcome *watched; /* of the run that is under way */

typedef struct
{
  RnHook hook;
} WatchHook;

static gboolean
read_params (RnRunner *runner, GArray **all, GError **error)
{
  *all = g_array_new (FALSE, FALSE, sizeof (float));
  for (guint i = 0; i < rn_runner_n_params (runner); i++)
    {
      guint n = (guint) rn_desc_elements (rn_runner_param_desc (runner, i)), at = (*all)->len;
      g_array_set_size (*all, at + n);
      if (!rn_runner_read_param (runner, i, &g_array_index (*all, float, at), error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
watch_start (RnHook *hook, RnRunner *runner, GError **error)
{
  return read_params (runner, &watched->params[0], error);
}

static gboolean
watch_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  gint64 iter = rn_runner_iter (runner);
  watched->losses[iter] = rn_runner_loss (runner, "loss");
  return read_params (runner, &watched->params[iter + 1], error);
}

RN_HOOK_DEFINE (watch, WatchHook, .name = "WatchHook", .summary = "for tests", .needs = RN_NEEDS_LOSS,
                .priority = RN_PRIORITY_VERY_LOW, .before_run = watch_start, .after_train_iter = watch_iter);

static void
outcome_free (gpointer pointer)
{
  Outcome *outcome = pointer;

  for (int i = 0; i <= N_ITERS; i++)
    if (outcome->params[i] != NULL)
      g_array_unref (outcome->params[i]);
  g_free (outcome->plan);
  g_free (outcome);
}

/* ---- A run ---- */

/*
 * Everything learns. Else no batch norm that learns is outside of the blocks, and with_cp leaves none for
 * bn_relu; but then nothing is frozen.
 */
#define NOTHING_FROZEN BIT (RN_STRATEGY_COUNT)

static gboolean
has_block_cp (guint64 set)
{
  return HAS (set, RN_STRATEGY_WITH_CP) || HAS (set, RN_STRATEGY_WITH_CP_SQRT)
         || HAS (set, RN_STRATEGY_WITH_CP_LARGER_THAN);
}

/* What --set has to say for exactly these strategies. (transfer full) */
static GPtrArray *
changes_of (guint64 set)
{
  static const char *const small[] = { SMALL_RESNET, "data.train.pipeline.2.img_scale=[32, 32]" };
  static const char *const r18[] = { R18, "data.train.pipeline.2.img_scale=[160, 128]" };
  static const char *const base[] = {
    "optimizer={type: SGD, lr: 0.01, momentum: 0.9, weight_decay: 0.0001}",
    "optimizer_config.grad_clip=null",
    "lr_config={policy: fixed}",
    "runner={type: IterBasedRunner, max_iters: 4}",
    "checkpoint_config=null",
    "custom_hooks=[{type: WatchHook}]",
    "data.workers_per_gpu=1",
  };
  GPtrArray *changes = g_ptr_array_new ();

  for (gsize i = 0; !is_long && i < G_N_ELEMENTS (small); i++)
    g_ptr_array_add (changes, (gpointer) small[i]);
  for (gsize i = 0; is_long && i < G_N_ELEMENTS (r18); i++)
    g_ptr_array_add (changes, (gpointer) r18[i]);
  for (gsize i = 0; i < G_N_ELEMENTS (base); i++)
    g_ptr_array_add (changes, (gpointer) base[i]);
  if ((set & NOTHING_FROZEN) != 0)
    g_ptr_array_add (changes, (gpointer) "model.backbone.frozen_stages=-1");
  for (int id = 0; id < RN_STRATEGY_COUNT; id++)
    {
      const RnStrategy *strategy = rn_strategy_get ((RnStrategyId) id);
      if (!HAS (set, id) && strategy->is_default)
        g_ptr_array_add (changes, (gpointer) strategy->off);
      if (HAS (set, id))
        small_detector_add_strategy (changes, (RnStrategyId) id, "memory.workspace_limit=32KiB");
    }
  g_ptr_array_add (changes, NULL);
  return changes;
}

static char *
set_name (guint64 set)
{
  GString *name = g_string_new (NULL);

  for (int id = 0; id < RN_STRATEGY_COUNT; id++)
    if (HAS (set, id))
      g_string_append_printf (name, "%s%s", name->len > 0 ? "+" : "",
                              rn_strategy_get ((RnStrategyId) id)->name);
  return g_string_free (name->len > 0 ? name : g_string_append (name, "none"), FALSE);
}

static gsize
highest_value (const RnPlan *plan, RnSpace space)
{
  gsize end = 0;

  for (int b = 0; b < plan->n_buffers; b++)
    if (plan->buffers[b].space == space && plan->buffers[b].op < 0)
      end = MAX (end, plan->buffers[b].offset + plan->buffers[b].bytes);
  return end;
}

/*
 * Every value that is planned is written, and nothing above the arena. A workspace on top may keep its last
 * bytes: libraries ask for room to align theirs.
 */
static void
check_bytes (RnPrograms *programs, const char *name)
{
  g_autoptr (GError) error = NULL;
  RnMemory memory = rn_programs_memory (programs);
  gsize highest[] = { rn_programs_highest_byte (programs), rn_programs_highest_host_byte (programs) };
  gsize planned[] = { memory.arena_bytes, memory.host_arena_bytes };
  const RnPlan *plan = rn_programs_get_plan (programs, memory.worst, &error);

  g_assert_no_error (error);
  for (int space = 0; space < RN_N_SPACES; space++)
    if (highest[space] > planned[space] || highest[space] < highest_value (plan, (RnSpace) space))
      g_error ("%s: %zu bytes of arena %d are written, %zu are planned", name, highest[space], space,
               planned[space]);
}

static char *
describe_plan (RnPrograms *programs, const char *name)
{
  g_autoptr (GError) error = NULL;
  RnMemory m = rn_programs_memory (programs);
  const RnPlan *plan = rn_programs_get_plan (programs, m.worst, &error);

  if (plan == NULL)
    g_error ("%s: %s", name, error->message);
  g_autofree char *list = rn_graph_print (plan->graph);
  return g_strdup_printf ("%zu %zu %zu %zu %d\n%s", m.grad_bytes, m.state_bytes, m.arena_bytes,
                          m.workspace_bytes, plan->n_buffers, list);
}

static Outcome *
run_set (guint64 set)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *name = set_name (set), *dir = g_dir_make_tmp ("rn-pair-XXXXXX", &error);
  g_autoptr (GPtrArray) changes = changes_of (set);
  Outcome *outcome = g_new0 (Outcome, 1);

  g_assert_no_error (error);
  RnJob *job = small_detector_job (data, dir, (const char *const *) changes->pdata, &error);
  if (job == NULL)
    g_error ("%s: %s", name, error->message);
  job->check_memory = TRUE;
  g_autoptr (RnTraining) training = rn_training_new (job, NULL, TRUE, &error);
  if (training == NULL)
    g_error ("%s: %s", name, error->message);
  watched = outcome;
  if (!rn_runner_run (training->runner, &error))
    g_error ("%s: %s", name, error->message);
  watched = NULL;
  check_bytes (training->job->programs, name);
  outcome->plan = describe_plan (training->job->programs, name);
  remove_tree (dir);
  return outcome;
}

/* Kept: the run of a set that others are compared with. */
static const Outcome *
outcome_of (guint64 set)
{
  Outcome *outcome = g_hash_table_lookup (outcomes, &set);

  if (outcome == NULL)
    {
      outcome = run_set (set);
      g_hash_table_insert (outcomes, g_memdup2 (&set, sizeof set), outcome);
    }
  return outcome;
}

/* ---- Comparisons ---- */

static void
assert_same_bits (const Outcome *a, const Outcome *b, const char *name, const char *reference)
{
  for (int i = 0; i < N_ITERS; i++)
    if (memcmp (&a->losses[i], &b->losses[i], sizeof a->losses[i]) != 0)
      g_error ("%s: the loss of iteration %d is %.9g, with %s %.9g", name, i + 1, a->losses[i], reference,
               b->losses[i]);
  for (int i = 0; i <= N_ITERS; i++)
    {
      const GArray *x = a->params[i], *y = b->params[i];
      g_assert_cmpuint (x->len, ==, y->len);
      for (guint j = 0; j < x->len; j++)
        if (memcmp (&g_array_index (x, float, j), &g_array_index (y, float, j), sizeof (float)) != 0)
          g_error ("%s: after iteration %d parameter element %u is %.9g, with %s %.9g", name, i, j,
                   (double) g_array_index (x, float, j), reference, (double) g_array_index (y, float, j));
    }
}

static double
largest_move (const GArray *from, const GArray *to)
{
  double largest = 0;
  for (guint j = 0; j < from->len; j++)
    largest =
        MAX (largest, fabs ((double) g_array_index (to, float, j) - (double) g_array_index (from, float, j)));
  return largest;
}

/*
 * The first step of both moves the parameters from the same start. @relative: of the largest move; and each
 * of the two sums p - lr v is rounded once.
 */
static void
assert_same_step (const Outcome *a, const Outcome *b, int iter, double relative, const char *name)
{
  const GArray *start = a->params[0], *x = a->params[iter], *y = b->params[iter];
  double scale = largest_move (start, y);

  g_assert_cmpfloat (scale, >, 0);
  for (guint j = 0; j < x->len; j++)
    {
      double p = (double) g_array_index (x, float, j), q = (double) g_array_index (y, float, j);
      double allowed = relative * scale + 2 * (double) FLT_EPSILON * MAX (fabs (p), fabs (q));
      if (!(fabs (p - q) <= allowed))
        g_error ("%s: the first step takes parameter element %u to %.9g, not to %.9g", name, j, p, q);
    }
}

/* Rounding errors of the layers in a row, at most half a unit in the last place each: @n_layers * 2^-@bits.
 */
#define N_LAYERS 16

static void
assert_close_loss (const Outcome *a, const Outcome *b, int iter, double relative, const char *name)
{
  if (!(fabs (a->losses[iter] - b->losses[iter]) <= relative * fabs (b->losses[iter])))
    g_error ("%s: the loss of iteration %d is %.9g, which is not near %.9g", name, iter + 1, a->losses[iter],
             b->losses[iter]);
}

/* What may change the results of @set: those of its strategies, and the model. */
static guint64
changing (guint64 set)
{
  guint64 part = set & NOTHING_FROZEN;

  for (int id = 0; id < RN_STRATEGY_COUNT; id++)
    if (HAS (set, id) && rn_strategy_get ((RnStrategyId) id)->result != RN_RESULT_BITS)
      part |= BIT (id);
  return part;
}

static guint64
with_result (guint64 set, RnStrategyResult result)
{
  guint64 part = 0;

  for (int id = 0; id < RN_STRATEGY_COUNT; id++)
    if (HAS (set, id) && rn_strategy_get ((RnStrategyId) id)->result == result)
      part |= BIT (id);
  return part;
}

/* Of the forward pass, as a part of the loss. */
static double
forward_tolerance (guint64 set)
{
  if (HAS (set, RN_STRATEGY_BF16))
    return N_LAYERS * ldexp (1, -9);
  if (with_result (set, RN_RESULT_HALF) != 0)
    return N_LAYERS * ldexp (1, -12);
  return 1e-4;
}

/* A set of strategies that change results, against the plain run. */
static void
check_changes (guint64 set, const Outcome *outcome, const char *name)
{
  const Outcome *plain = outcome_of (set & NOTHING_FROZEN);
  gboolean is_half = with_result (set, RN_RESULT_HALF) != 0;

  g_assert_cmpuint (outcome->params[0]->len, ==, plain->params[0]->len);
  g_assert_true (
      memcmp (outcome->params[0]->data, plain->params[0]->data, plain->params[0]->len * sizeof (float)) == 0);
  assert_close_loss (outcome, plain, 0, forward_tolerance (set), name);
  if (HAS (set, RN_STRATEGY_ACCUMULATION))
    {
      /* Half a window: parameters have not moved, but batch norms have taken the batch in. */
      const Outcome *half = outcome_of (BIT (RN_STRATEGY_ACCUMULATION) | (set & NOTHING_FROZEN));
      assert_close_loss (outcome, half, 1, forward_tolerance (set), name);
      if (!is_half)
        assert_same_step (outcome, half, 2, with_result (set, RN_RESULT_STATE) != 0 ? ldexp (1, -8) : 1e-4,
                          name);
    }
  else if (!is_half)
    assert_same_step (outcome, plain, 1, with_result (set, RN_RESULT_STATE) != 0 ? ldexp (1, -8) : 1e-4,
                      name);
}

/* With accumulation the update in backward sums a window in the momentum: the order of sums differs. */
static gboolean
sums_otherwise (guint64 set)
{
  return HAS (set, RN_STRATEGY_IN_BACKWARD) && HAS (set, RN_STRATEGY_ACCUMULATION);
}

static void
check_set (guint64 set)
{
  g_autofree char *name = set_name (set);
  guint64 reference = changing (set);

  if (reference == set)
    {
      check_changes (set, outcome_of (set), name);
      return;
    }
  g_autofree char *reference_name = set_name (reference);
  Outcome *outcome = run_set (set);
  if (sums_otherwise (set))
    check_changes (set, outcome, name);
  else
    assert_same_bits (outcome, outcome_of (reference), name, reference_name);
  outcome_free (outcome);
}

/* ---- Tests ---- */

/* A key that has one value holds one of them: there is no file with both. */
static gboolean
is_one_key (RnStrategyId a, RnStrategyId b)
{
  const char *key = rn_strategy_get (a)->key;
  return g_str_equal (key, rn_strategy_get (b)->key) && !g_str_equal (key, "memory.recompute");
}

static void
check_refused (guint64 set, const char *reason)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *name = set_name (set);
  g_autoptr (GPtrArray) changes = changes_of (set);
  RnJob *job = small_detector_job (data, "unused", (const char *const *) changes->pdata, &error);

  if (job != NULL)
    g_error ("%s is not refused", name);
  g_assert_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE);
  if (strstr (error->message, reason) == NULL || strstr (error->message, "; what works: ") == NULL)
    g_error ("%s: the reason should be \"%s\": %s", name, reason, error->message);
}

static void
test_alone (gconstpointer user_data)
{
  RnStrategyId id = (RnStrategyId) GPOINTER_TO_INT (user_data);
  const RnStrategy *strategy = rn_strategy_get (id);
  g_autofree char *plan = g_strdup (outcome_of (0)->plan);

  check_set (BIT (id));
  /* What is planned is another thing, or there would be no sense in it. */
  Outcome *outcome = run_set (BIT (id));
  if (strategy->is_planned && id != RN_STRATEGY_BUDGET)
    g_assert_cmpstr (outcome->plan, !=, plan);
  if (!strategy->is_planned)
    g_assert_cmpstr (outcome->plan, ==, plan);
  outcome_free (outcome);
}

/* Nothing is left to do for bn_relu where with_cp drops what it would. */
static void
check_nothing_left (guint64 set)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *name = set_name (set), *dir = g_dir_make_tmp ("rn-pair-XXXXXX", &error);
  g_autoptr (GPtrArray) changes = changes_of (set);

  g_assert_no_error (error);
  g_assert_null (small_detector_training (data, dir, (const char *const *) changes->pdata, TRUE, &error));
  g_assert_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE);
  if (!g_str_has_prefix (error->message, "--set memory.recompute: bn_relu drops nothing"))
    g_error ("%s: %s", name, error->message);
  remove_tree (dir);
}

static void
check_pair (RnStrategyId a, RnStrategyId b)
{
  guint64 set = BIT (a) | BIT (b);
  const char *reason = rn_strategies_pair_reason (a, b);

  if (reason != NULL)
    check_refused (set, reason);
  else if (HAS (set, RN_STRATEGY_BN_RELU) && has_block_cp (set))
    {
      if (!HAS (set, RN_STRATEGY_WITH_CP_SQRT)) /* which keeps blocks where that pays */
        check_nothing_left (set);
      check_set (set | NOTHING_FROZEN);
    }
  else
    check_set (set);
}

static void
test_pairs_of (gconstpointer user_data)
{
  RnStrategyId a = (RnStrategyId) GPOINTER_TO_INT (user_data);

  for (int b = (int) a + 1; b < RN_STRATEGY_COUNT; b++)
    if (HAS (wanted, b) && !is_one_key (a, (RnStrategyId) b))
      check_pair (a, (RnStrategyId) b);
}

/* With bn_relu and with_cp there is nothing to do for the first, unless all learns. */
static gboolean
goes_with_all (RnStrategyId id, guint64 set)
{
  g_autoptr (GError) error = NULL;
  guint64 both = set | BIT (id);

  for (int other = 0; other < RN_STRATEGY_COUNT; other++)
    if (HAS (set, other)
        && (is_one_key (id, (RnStrategyId) other)
            || rn_strategies_pair_reason (id, (RnStrategyId) other) != NULL))
      return FALSE;
  if (HAS (both, RN_STRATEGY_BN_RELU) && has_block_cp (both))
    return FALSE;
  g_autoptr (GPtrArray) changes = changes_of (both);
  g_autoptr (RnJob) job = small_detector_job (data, "unused", (const char *const *) changes->pdata, &error);
  if (job == NULL)
    g_assert_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE);
  return job != NULL;
}

/* Everything in the order of the list, from @first on, that goes with what is there. */
static guint64
stack_from (int first)
{
  guint64 set = BIT (first);

  for (int i = 1; i < RN_STRATEGY_COUNT; i++)
    {
      RnStrategyId id = (RnStrategyId) ((first + i) % RN_STRATEGY_COUNT);
      if (HAS (wanted, id) && goes_with_all (id, set))
        set |= BIT (id);
    }
  return set;
}

static void
test_stacks (void)
{
  g_autoptr (GHashTable) done = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);

  for (int first = 0; first < RN_STRATEGY_COUNT; first++)
    {
      guint64 set = HAS (wanted, first) ? stack_from (first) : 0;
      if (set != 0 && g_hash_table_add (done, g_memdup2 (&set, sizeof set)))
        check_set (set);
    }
}

static void
drop_message (const char *domain, GLogLevelFlags level, const char *message, gpointer user_data)
{
  if (level & (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL))
    g_log_default_handler (domain, level, message, user_data);
}

static guint64
read_wanted (void)
{
  const char *only = g_getenv ("RN_TEST_ONLY");
  guint64 set = 0;

  if (only == NULL)
    return BIT (RN_STRATEGY_COUNT) - 1;
  g_auto (GStrv) names = g_strsplit (only, ",", -1);
  for (char **name = names; *name != NULL; name++)
    {
      const RnStrategy *strategy = rn_strategy_find (*name);
      if (strategy == NULL)
        g_error ("RN_TEST_ONLY: no strategy %s", *name);
      set |= BIT (strategy->id);
    }
  return set;
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL);
  g_log_set_default_handler (drop_message, NULL);
  rn_hooks_register ();
  g_assert_true (rn_hook_register (&rn_hook_desc_watch, NULL));
  small_detector_register ();
  data = small_detector_data ();
  outcomes = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, outcome_free);
  wanted = read_wanted ();
  is_long = g_strcmp0 (g_getenv ("RN_TEST_LONG"), "1") == 0;
  for (int id = 0; id < RN_STRATEGY_COUNT; id++)
    if (HAS (wanted, id))
      {
        const char *name = rn_strategy_get ((RnStrategyId) id)->name;
        g_autofree char *alone = g_strconcat ("/strategies/alone/", name, NULL),
                        *pairs = g_strconcat ("/strategies/pairs/", name, NULL);
        g_test_add_data_func (alone, GINT_TO_POINTER (id), test_alone);
        g_test_add_data_func (pairs, GINT_TO_POINTER (id), test_pairs_of);
      }
  g_test_add_func ("/strategies/stacks", test_stacks);
  int result = g_test_run ();
  g_hash_table_unref (outcomes);
  remove_tree (data);
  g_free (data);
  return result;
}
