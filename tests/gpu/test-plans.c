/*
 * test-plans.c: every convolution of RetinaNet on ResNet-18, 50 and 101 put to the real cuDNN, for devices
 * that are not there: does it take the graphs that we make, by engines that pass the filter, within the
 * limit of the workspace?
 *
 * RN_TEST_LONG=1: other image sizes for every device and math, not for two of them.
 */
#include "config.h"

#include "kernels/cuda/conv-graph.h"
#include "kernels/cuda/cudnn.h"
#include "tests/gpu/conv-problems.h"
#include "tests/gpu/profile-library.h"

#include <string.h>

#define LIMIT ((gsize) 64 << 20)

/* How the device computes. */
typedef struct
{
  const char *name;
  RnDType dtype;
  gboolean nhwc, tf32;
  gboolean is_complete; /* every convolution has an engine of its own within the limit */
} Math;

#define N_MATHS 5
static const Math maths[N_MATHS] = {
  { "f16", RN_F16, TRUE, FALSE, TRUE },       { "bf16", RN_BF16, TRUE, FALSE, TRUE },
  { "f32 nchw", RN_F32, FALSE, FALSE, TRUE }, { "tf32", RN_F32, TRUE, TRUE, FALSE },
  { "f32 nhwc", RN_F32, TRUE, FALSE, FALSE },
};

/* What was found for a device and a math. */
typedef struct
{
  gsize workspace;    /* the largest, bytes */
  guint n_exceptions; /* convolutions that only the generic engine takes within the limit */
} Found;

/* What cuDNN TABLE_VERSION answers at 608x1024, by maths[]; BF16 begins with capability 8.0. Other versions
 * may choose other engines; that all stay within the limit is asked of every one. */
#define TABLE_VERSION 91900
typedef struct
{
  const char *profile;
  gboolean has_bf16;
  Found found[N_MATHS];
} Device;

static const Device devices[] = {
  { "gtx1660", FALSE, { { 23529519, 0 }, { 0, 0 }, { 29164560, 0 }, { 59768848, 1 }, { 59768848, 1 } } },
  { "t4", FALSE, { { 23529519, 0 }, { 0, 0 }, { 29164560, 0 }, { 59768848, 1 }, { 59768848, 1 } } },
  { "a100", TRUE, { { 27933599, 0 }, { 27933599, 0 }, { 26216448, 0 }, { 61866128, 1 }, { 59768848, 4 } } },
  { "rtx3060",
    TRUE,
    { { 14790800, 0 }, { 24332531, 0 }, { 26216448, 0 }, { 63963280, 1 }, { 59829520, 4 } } },
  { "rtx4090",
    TRUE,
    { { 22955939, 0 }, { 22955939, 0 }, { 26216448, 0 }, { 62914704, 1 }, { 59829520, 4 } } },
  { "rtx5090", TRUE, { { 21478544, 0 }, { 21478544, 0 }, { 36864, 0 }, { 64487568, 1 }, { 59770896, 4 } } },
  { "h200", TRUE, { { 22381712, 0 }, { 22381712, 0 }, { 59768848, 0 }, { 50069520, 0 }, { 59768848, 4 } } },
  { "b200", TRUE, { { 27931344, 0 }, { 27931344, 0 }, { 36864, 0 }, { 34078912, 0 }, { 59770896, 4 } } },
};

/* Of all depths; different ones once. */
static GArray *
problems_at (const char *shape)
{
  static const int depths[] = { 18, 50, 101 };
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  GArray *all = g_array_new (FALSE, FALSE, sizeof (RnConvProblem));

  for (gsize d = 0; d < G_N_ELEMENTS (depths); d++)
    {
      guint n_ops;
      g_autoptr (GArray) some = conv_problems_of_retinanet (depths[d], shape, &n_ops);
      for (guint i = 0; i < some->len; i++)
        {
          const RnConvProblem *problem = &g_array_index (some, RnConvProblem, i);
          if (g_hash_table_add (seen, rn_conv_problem_text (problem)))
            g_array_append_vals (all, problem, 1);
        }
      g_test_message ("ResNet-%d at %s: %u convolutions, %u different", depths[d], shape, n_ops, some->len);
    }
  return all;
}

/* Plans it as @math says. Frees with rn_conv_plan_free; NULL with *@reason. */
static RnConvPlan *
plan_one (RnConvLibrary *library, const Math *math, RnConvProblem *problem, const char **reason)
{
  RnConvPlan *plan = NULL;

  problem->dtype = math->dtype;
  problem->nhwc = math->nhwc;
  problem->tf32 = math->tf32;
  RnStatus status = rn_conv_plan_new (library, problem, LIMIT, &plan, reason);
  if (status == RN_STATUS_DEVICE)
    g_error ("%s", rn_conv_library_fault (library));
  return plan;
}

/* Only convolutions of one tap, in layer1 and into it, may be left to the generic engine, and only backward.
 */
static gboolean
may_be_generic (const Math *math, const RnConvProblem *problem)
{
  return !math->is_complete && problem->kind == RN_CONV_BACKWARD_DATA && problem->kernel[0] == 1
         && problem->kernel[1] == 1;
}

static Found
plan_all (RnConvLibrary *library, const char *profile, const Math *math, const GArray *problems)
{
  Found found = { 0 };

  for (guint i = 0; i < problems->len; i++)
    {
      RnConvProblem problem = g_array_index (problems, RnConvProblem, i);
      const char *reason = NULL;
      g_autoptr (RnConvPlan) plan = plan_one (library, math, &problem, &reason);
      g_autofree char *text = rn_conv_problem_text (&problem);
      if (plan == NULL)
        g_error ("%s: %s: %s", profile, text, reason);
      const char *detail = rn_conv_plan_detail (plan);
      g_assert_cmpuint (rn_conv_plan_workspace (plan), <=, LIMIT);
      if (math->dtype == RN_F32 && !math->tf32)
        g_assert_null (strstr (detail, "tensor cores"));
      found.workspace = MAX (found.workspace, rn_conv_plan_workspace (plan));
      if (strstr (detail, "generic") == NULL)
        continue;
      if (!may_be_generic (math, &problem))
        g_error ("%s: no engine but the generic one: %s", profile, text);
      g_test_message ("%s: only the generic engine: %s", profile, text);
      found.n_exceptions++;
    }
  g_test_message ("%s, %s: %u convolutions, at most %" G_GSIZE_FORMAT " bytes of workspace, %u exceptions",
                  profile, math->name, problems->len, found.workspace, found.n_exceptions);
  return found;
}

/* BF16 where the device has no such arithmetic: refused, with a reason. */
static void
check_refused (RnConvLibrary *library, const Math *math, const GArray *problems)
{
  for (guint i = 0; i < problems->len; i++)
    {
      RnConvProblem problem = g_array_index (problems, RnConvProblem, i);
      const char *reason = NULL;
      g_assert_null (plan_one (library, math, &problem, &reason));
      g_assert_nonnull (reason);
    }
}

static GArray *table_problems;

static void
test_device (gconstpointer data)
{
  const Device *device = data;

  if (strcmp (device->profile, "b200") == 0 && cudnnGetVersion () < RN_CUDNN_PROFILES_10)
    {
      g_test_skip ("this version of cuDNN ends the process over it");
      return;
    }
  g_autoptr (RnConvLibrary) library = profile_library (device->profile, TRUE);

  for (gsize m = 0; m < N_MATHS; m++)
    {
      if (maths[m].dtype == RN_BF16 && !device->has_bf16)
        {
          check_refused (library, &maths[m], table_problems);
          continue;
        }
      Found found = plan_all (library, device->profile, &maths[m], table_problems);
      if (cudnnGetVersion () != TABLE_VERSION)
        continue;
      g_assert_cmpuint (found.workspace, ==, device->found[m].workspace);
      g_assert_cmpuint (found.n_exceptions, ==, device->found[m].n_exceptions);
    }
  if (cudnnGetVersion () != TABLE_VERSION)
    g_test_message ("the table is of another version of cuDNN and was not compared");
}

/* Other sizes, odd maps among them, where the limit must hold as well. */
static void
test_other_shape (gconstpointer data)
{
  const char *shape = data;
  gboolean all = g_getenv ("RN_TEST_LONG") != NULL && *g_getenv ("RN_TEST_LONG") != '\0';
  g_autoptr (GArray) problems = problems_at (shape);

  for (gsize d = 0; d < G_N_ELEMENTS (devices); d++)
    {
      if (strcmp (devices[d].profile, "b200") == 0 && cudnnGetVersion () < RN_CUDNN_PROFILES_10)
        continue;
      if (!all && strcmp (devices[d].profile, "t4") != 0 && strcmp (devices[d].profile, "h200") != 0)
        continue;
      g_autoptr (RnConvLibrary) library = profile_library (devices[d].profile, TRUE);
      for (gsize m = 0; m < N_MATHS; m++)
        if (maths[m].is_complete && (maths[m].dtype != RN_BF16 || (all && devices[d].has_bf16)))
          plan_all (library, devices[d].profile, &maths[m], problems);
    }
}

int
main (int argc, char **argv)
{
  static const char *const shapes[] = { "480x640", "800x800" };

  g_test_init (&argc, &argv, NULL);
  table_problems = problems_at ("608x1024");
  for (gsize i = 0; i < G_N_ELEMENTS (devices); i++)
    {
      g_autofree char *name = g_strconcat ("/plans/608x1024/", devices[i].profile, NULL);
      g_test_add_data_func (name, &devices[i], test_device);
    }
  for (gsize i = 0; i < G_N_ELEMENTS (shapes); i++)
    {
      g_autofree char *name = g_strconcat ("/plans/", shapes[i], NULL);
      g_test_add_data_func (name, shapes[i], test_other_shape);
    }
  int status = g_test_run ();
  g_array_unref (table_problems);
  return status;
}
