/* The loss scale: its rules against PyTorch's GradScaler and MMCV's LossScaler, its keys, its state. */
#include "config.h"

#include "hooks/loss-scale-config.h"
#include "runner/config/config.h"
#include "tests/hooks/golden-scalers.h"
#include "tests/hooks/run-length.h"

#include <stdlib.h>

/* A scaler as the keys in @yaml say, a map with `loss_scale`. */
static gboolean
read_scaler (const char *yaml, RnLossScaler *scaler, GError **error)
{
  g_autoptr (RnNode) root = rn_config_load_text (yaml, "test.yaml", NULL, error);
  g_assert_nonnull (root);

  const RnNode *min_scale = rn_node_get (root, "min_scale"), *max_scale = rn_node_get (root, "max_scale");
  RnLossScaleConfig keys = {
    .loss_scale = rn_node_get (root, "loss_scale"),
    .min_scale = min_scale != NULL ? rn_node_as_float (min_scale) : NAN,
    .max_scale = max_scale != NULL ? rn_node_as_float (max_scale) : NAN,
  };
  return rn_loss_scale_read (&keys, root, scaler, error);
}

static RnLossScaler
scaler_of (const char *yaml)
{
  g_autoptr (GError) error = NULL;
  RnLossScaler scaler;
  g_assert_true (read_scaler (yaml, &scaler, &error));
  g_assert_no_error (error);
  return scaler;
}

/* Feeds @overflows, "0x500 1x1" and so on, and compares the scales after each. */
static void
assert_scales (RnLossScaler *scaler, const char *overflows, const char *scales)
{
  g_auto (GStrv) runs = g_strsplit (overflows, " ", -1);
  RunLength seen;

  run_length_init (&seen);
  for (char **run = runs; *run != NULL; run++)
    for (int i = 0; i < atoi (*run + 2); i++)
      {
        rn_loss_scaler_update (scaler, (*run)[0] == '1');
        run_length_add (&seen, scaler->scale);
      }
  run_length_assert (&seen, scales);
}

static void
test_golden (void)
{
  for (gsize i = 0; i < G_N_ELEMENTS (scaler_rows); i++)
    {
      g_autofree char *yaml = g_strdup_printf ("loss_scale: %s", scaler_rows[i].loss_scale);
      RnLossScaler scaler = scaler_of (yaml);
      assert_scales (&scaler, scaler_rows[i].overflows, scaler_rows[i].scales);
    }
}

/* The vectors in words: without overflow the scale doubles at updates 999, 1999 (LossScaler) and after 2000
 * (GradScaler); after one at 500 it halves there, and doubles at 1500, 2500. */
static void
test_vectors (void)
{
  RnLossScaler scaler = scaler_of ("loss_scale: {mode: dynamic}");
  for (int i = 0; i < 2600; i++)
    {
      rn_loss_scaler_update (&scaler, i == 500);
      double expected = i < 500 ? 0x1p32 : i < 1500 ? 0x1p31 : i < 2500 ? 0x1p32 : 0x1p33;
      g_assert_cmpfloat (scaler.scale, ==, expected);
    }
  g_assert_cmpint (scaler.n_skipped, ==, 1);
  scaler = scaler_of ("loss_scale: dynamic");
  for (int i = 0; i < 4100; i++)
    {
      rn_loss_scaler_update (&scaler, FALSE);
      g_assert_cmpfloat (scaler.scale, ==, i < 1999 ? 0x1p16 : i < 3999 ? 0x1p17 : 0x1p18);
    }
}

static void
test_forms (void)
{
  static const struct
  {
    const char *yaml;
    RnScalerForm form;
    double scale, growth, backoff, min_scale;
    gint64 interval;
  } cases[] = {
    { "loss_scale: 512", RN_SCALER_STATIC, 512, 0, 0, 512, 0 },
    { "loss_scale: 512.", RN_SCALER_STATIC, 512, 0, 0, 512, 0 },
    { "loss_scale: dynamic", RN_SCALER_GRAD, 65536, 2, 0.5, 0x1p-16, 2000 },
    { "loss_scale: {}", RN_SCALER_GRAD, 65536, 2, 0.5, 0x1p-16, 2000 },
    { "loss_scale: {init_scale: 512.}", RN_SCALER_GRAD, 512, 2, 0.5, 0x1p-16, 2000 },
    { "loss_scale: {growth_interval: 5, backoff_factor: 0.25}", RN_SCALER_GRAD, 65536, 2, 0.25, 0x1p-16, 5 },
    { "loss_scale: {mode: dynamic}", RN_SCALER_LOSS, 0x1p32, 2, 0.5, 1, 1000 },
    { "loss_scale: {init_scale: 8, scale_factor: 4, scale_window: 7}", RN_SCALER_LOSS, 8, 4, 0.25, 1, 7 },
    { "loss_scale: {mode: static, init_scale: 8}", RN_SCALER_STATIC, 8, 2, 0.5, 8, 1000 },
    { "{loss_scale: dynamic, min_scale: 4, max_scale: 65536}", RN_SCALER_GRAD, 65536, 2, 0.5, 4, 2000 },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      RnLossScaler scaler = scaler_of (cases[i].yaml);
      g_assert_cmpint (scaler.form, ==, cases[i].form);
      g_assert_cmpfloat (scaler.scale, ==, cases[i].scale);
      g_assert_cmpfloat (scaler.growth, ==, cases[i].growth);
      g_assert_cmpfloat (scaler.backoff, ==, cases[i].backoff);
      g_assert_cmpfloat (scaler.min_scale, ==, cases[i].min_scale);
      g_assert_cmpint (scaler.interval, ==, cases[i].interval);
    }
}

static void
test_refused (void)
{
  static const struct
  {
    const char *yaml, *pattern;
  } cases[] = {
    { "loss_scale: 0", "test.yaml:1:*between 1e-09*" },
    { "loss_scale: -3", "test.yaml:1:*between 1e-09*" },
    { "loss_scale: .inf", "test.yaml:1:*between 1e-09*" },
    { "loss_scale: .nan", "test.yaml:1:*between 1e-09*" },
    { "loss_scale: dynamik", "test.yaml:1:*dynamic*" },
    { "loss_scale: [512]", "test.yaml:1:*dynamic*" },
    { "loss_scale: true", "test.yaml:1:*dynamic*" },
    { "loss_scale: {growth_factor: 2, scale_window: 4}", "test.yaml:1:*scale_window*growth_factor*" },
    { "loss_scale: {init_scal: 2}", "test.yaml:1:*init_scale*" },
    { "loss_scale: {init_scale: 0}", "test.yaml:1:*init_scale*" },
    { "loss_scale: {mode: fixed}", "test.yaml:1:*mode*" },
    { "{loss_scale: dynamic, max_scale: 4}", "test.yaml:1:*65536*max_scale 4*" },
    { "{loss_scale: {init_scale: 8}, min_scale: 16}", "test.yaml:1:*8*min_scale 16*" },
    { "{loss_scale: 512, min_scale: 16}", "test.yaml:1:*min_scale*loss_scale: dynamic*" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;
      RnLossScaler scaler;
      g_assert_false (read_scaler (cases[i].yaml, &scaler, &error));
      if (!g_pattern_match_simple (cases[i].pattern, error->message))
        g_error ("\"%s\" does not match \"%s\"", error->message, cases[i].pattern);
    }
}

/* At a bound the scale stays, and the overflows that change nothing are counted. */
static void
test_bounds (void)
{
  RnLossScaler scaler =
      scaler_of ("{loss_scale: {init_scale: 16, growth_interval: 2}, min_scale: 4, max_scale: 32}");

  assert_scales (&scaler, "0x6 1x5", "16x1 32x5 16x1 8x1 4x3");
  g_assert_cmpint (scaler.n_stuck, ==, 2);
  g_assert_cmpint (scaler.n_skipped, ==, 5);
  rn_loss_scaler_update (&scaler, FALSE);
  g_assert_cmpint (scaler.n_stuck, ==, 0);
  scaler = scaler_of ("loss_scale: 512");
  assert_scales (&scaler, "1x3 0x1 1x2", "512x6");
  g_assert_cmpint (scaler.n_stuck, ==, 2);
  g_assert_cmpint (scaler.n_skipped, ==, 5);
}

static void
assert_same (const RnLossScaler *a, const RnLossScaler *b)
{
  g_assert_cmpfloat (a->scale, ==, b->scale);
  g_assert_cmpint (a->n_good, ==, b->n_good);
  g_assert_cmpint (a->n_updates, ==, b->n_updates);
  g_assert_cmpint (a->last_overflow, ==, b->last_overflow);
  g_assert_cmpint (a->n_skipped, ==, b->n_skipped);
  g_assert_cmpint (a->n_stuck, ==, b->n_stuck);
}

/* Stopped and taken up after every update of a golden row. */
static void
test_state (void)
{
  for (gsize i = 0; i < G_N_ELEMENTS (scaler_rows); i++)
    {
      g_autofree char *yaml = g_strdup_printf ("loss_scale: %s", scaler_rows[i].loss_scale);
      RnLossScaler straight = scaler_of (yaml), other = straight;
      for (int k = 0; k < 150; k++)
        {
          g_autoptr (RnRecord) state = rn_record_new ();
          g_autoptr (GError) error = NULL;
          gboolean is_overflow = k * k % 11 == 3;
          rn_loss_scale_save (&other, state);
          other = scaler_of (yaml);
          g_assert_true (rn_loss_scale_load (&other, FALSE, state, &error));
          rn_loss_scaler_update (&straight, is_overflow);
          rn_loss_scaler_update (&other, is_overflow);
          assert_same (&straight, &other);
        }
    }
}

/* Takes up the state of @was with the keys @now. */
static RnLossScaler
switched (RnLossScaler was, const char *now, gboolean reset_scale)
{
  g_autoptr (RnRecord) state = rn_record_new ();
  g_autoptr (GError) error = NULL;
  RnLossScaler scaler = scaler_of (now);
  rn_loss_scale_save (&was, state);
  g_assert_true (rn_loss_scale_load (&scaler, reset_scale, state, &error));
  return scaler;
}

/* With other keys than the checkpoint's. */
static void
test_changed (void)
{
  RnLossScaler was = scaler_of ("loss_scale: {init_scale: 64, growth_interval: 10}");
  rn_loss_scaler_update (&was, TRUE);
  rn_loss_scaler_update (&was, FALSE);

  RnLossScaler now = switched (was, "loss_scale: {init_scale: 1024, growth_interval: 5}", FALSE);
  g_assert_cmpfloat (now.scale, ==, 32); /* that of the checkpoint */
  g_assert_cmpint (now.n_good, ==, 1);
  g_assert_cmpint (now.interval, ==, 5);
  now = switched (was, "loss_scale: {init_scale: 1024, growth_interval: 5}", TRUE);
  g_assert_cmpfloat (now.scale, ==, 1024);
  g_assert_cmpint (now.n_good, ==, 0);
  g_assert_cmpint (now.n_skipped, ==, 1);
  now = switched (was, "loss_scale: {mode: dynamic}", FALSE);
  g_assert_cmpfloat (now.scale, ==, 32);
  g_assert_cmpint (now.n_updates, ==, 0);
  now = switched (was, "{loss_scale: dynamic, min_scale: 48}", FALSE);
  g_assert_cmpfloat (now.scale, ==, 48);
  now = switched (was, "loss_scale: 512", FALSE);
  g_assert_cmpfloat (now.scale, ==, 512); /* a number in the configuration is what the user says */
  now = switched (now, "loss_scale: dynamic", FALSE);
  g_assert_cmpfloat (now.scale, ==, 65536);
}

static void
test_damaged (void)
{
  static const struct
  {
    const char *name;
    double value;
  } cases[] = {
    { "scale", 0 },         { "scale", -1 },   { "scale", INFINITY },
    { "good_updates", -1 }, { "updates", -1 }, { "last_overflow", -2 },
    { "last_overflow", 7 }, { "skipped", -1 }, { "stuck", 2 },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      RnLossScaler scaler = scaler_of ("loss_scale: dynamic");
      g_autoptr (RnRecord) state = rn_record_new ();
      g_autoptr (GError) error = NULL;
      rn_loss_scale_save (&scaler, state);
      if (g_str_equal (cases[i].name, "scale"))
        rn_record_set_float (state, cases[i].name, cases[i].value);
      else
        rn_record_set_int (state, cases[i].name, (gint64) cases[i].value);
      g_assert_false (rn_loss_scale_load (&scaler, FALSE, state, &error));
      g_assert_nonnull (strstr (error->message, "damaged"));
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/hooks/loss-scaler/golden", test_golden);
  g_test_add_func ("/hooks/loss-scaler/vectors", test_vectors);
  g_test_add_func ("/hooks/loss-scaler/forms", test_forms);
  g_test_add_func ("/hooks/loss-scaler/refused", test_refused);
  g_test_add_func ("/hooks/loss-scaler/bounds", test_bounds);
  g_test_add_func ("/hooks/loss-scaler/state", test_state);
  g_test_add_func ("/hooks/loss-scaler/changed", test_changed);
  g_test_add_func ("/hooks/loss-scaler/damaged", test_damaged);
  return g_test_run ();
}
