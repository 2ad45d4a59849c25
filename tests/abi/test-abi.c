/*
 * The binary form of ABI 1.0, which plugins that were compiled years ago rely on: sizes, places and numbers.
 *
 * A row may be added. A row that has to change is another major number of RN_HOOK_ABI, with a query function
 * of another name.
 */
#include "config.h"

#include <runner/hook.h>

#include "tests/cli/program.h"
#include "tests/plugins/build.h"

#include <string.h>
#include <unistd.h>

#define SIZE(type, n)      \
  {                        \
    #type, sizeof(type), n \
  }
#define PLACE(type, member, n)                          \
  {                                                     \
    #type "." #member, G_STRUCT_OFFSET(type, member), n \
  }
#define NUMBER(name, n)      \
  {                          \
    #name, (gsize) (name), n \
  }

/* With pointers of 8 bytes; the numbers were written down, not computed. */
static const struct
{
  const char *what;
  gsize is, was;
} rows[] = {
  SIZE (RnHook, 40),
  PLACE (RnHook, desc, 0),
  PLACE (RnHook, priority, 8),
  PLACE (RnHook, config, 16),
  PLACE (RnHook, reserved, 24),
  SIZE (RnHookDesc, 288),
  PLACE (RnHookDesc, abi, 0),
  PLACE (RnHookDesc, struct_size, 4),
  PLACE (RnHookDesc, instance_size, 8),
  PLACE (RnHookDesc, name, 16),
  PLACE (RnHookDesc, version, 24),
  PLACE (RnHookDesc, license, 32),
  PLACE (RnHookDesc, summary, 40),
  PLACE (RnHookDesc, priority, 48),
  PLACE (RnHookDesc, needs, 52),
  PLACE (RnHookDesc, keys, 56),
  PLACE (RnHookDesc, prepare, 64),
  PLACE (RnHookDesc, init, 72),
  PLACE (RnHookDesc, clear, 80),
  PLACE (RnHookDesc, save_state, 88),
  PLACE (RnHookDesc, load_state, 96),
  PLACE (RnHookDesc, before_run, 104),
  PLACE (RnHookDesc, before_train_epoch, 112),
  PLACE (RnHookDesc, before_train_iter, 120),
  PLACE (RnHookDesc, before_step, 128),
  PLACE (RnHookDesc, after_train_iter, 136),
  PLACE (RnHookDesc, after_train_epoch, 144),
  PLACE (RnHookDesc, before_val_epoch, 152),
  PLACE (RnHookDesc, before_val_iter, 160),
  PLACE (RnHookDesc, after_val_iter, 168),
  PLACE (RnHookDesc, after_val_epoch, 176),
  PLACE (RnHookDesc, after_run, 184),
  PLACE (RnHookDesc, before_epoch, 192),
  PLACE (RnHookDesc, before_iter, 200),
  PLACE (RnHookDesc, after_iter, 208),
  PLACE (RnHookDesc, after_epoch, 216),
  PLACE (RnHookDesc, reserved, 224),
  SIZE (RnKeySpec, 88),
  PLACE (RnKeySpec, name, 0),
  PLACE (RnKeySpec, type, 8),
  PLACE (RnKeySpec, offset, 16),
  PLACE (RnKeySpec, deflt, 24),
  PLACE (RnKeySpec, help, 32),
  PLACE (RnKeySpec, min, 40),
  PLACE (RnKeySpec, max, 48),
  PLACE (RnKeySpec, names, 56),
  PLACE (RnKeySpec, keys, 64),
  PLACE (RnKeySpec, present, 72),
  PLACE (RnKeySpec, flags, 80),
  SIZE (RnTensorDesc, 48),
  PLACE (RnTensorDesc, dtype, 0),
  PLACE (RnTensorDesc, rank, 4),
  PLACE (RnTensorDesc, dims, 8),
  PLACE (RnBatch, n, 0),
  PLACE (RnBatch, height, 4),
  PLACE (RnBatch, width, 8),
  PLACE (RnBatch, pixels, 16),
  PLACE (RnBatch, sizes, 24),
  PLACE (RnBatch, table, 32),
  PLACE (RnBatch, n_anchors, 40),
  PLACE (RnBatch, labels, 48),
  PLACE (RnBatch, positives, 56),
  PLACE (RnBatch, n_positives, 64),
  PLACE (RnBatch, avg_factor, 72),
  PLACE (RnBatch, metas, 80),
  SIZE (RnSampleMeta, 88),
  PLACE (RnSampleMeta, index, 0),
  PLACE (RnSampleMeta, id, 8),
  PLACE (RnSampleMeta, path, 16),
  PLACE (RnSampleMeta, ori_width, 24),
  PLACE (RnSampleMeta, ori_height, 28),
  PLACE (RnSampleMeta, img_width, 32),
  PLACE (RnSampleMeta, img_height, 36),
  PLACE (RnSampleMeta, pad_width, 40),
  PLACE (RnSampleMeta, pad_height, 44),
  PLACE (RnSampleMeta, scale_w, 48),
  PLACE (RnSampleMeta, scale_h, 52),
  PLACE (RnSampleMeta, flip, 56),
  PLACE (RnSampleMeta, n_gt, 60),
  PLACE (RnSampleMeta, gt_boxes, 64),
  PLACE (RnSampleMeta, gt_labels, 72),
  PLACE (RnSampleMeta, n_positives, 80),
  SIZE (RnPositive, 24),
  PLACE (RnPositive, image, 0),
  PLACE (RnPositive, anchor, 4),
  PLACE (RnPositive, target, 8),
  NUMBER (RN_FLIP_HORIZONTAL, 1),
  NUMBER (RN_FLIP_VERTICAL, 2),
  NUMBER (RN_STAGE_BEFORE_RUN, 0),
  NUMBER (RN_STAGE_BEFORE_TRAIN_EPOCH, 1),
  NUMBER (RN_STAGE_BEFORE_TRAIN_ITER, 2),
  NUMBER (RN_STAGE_BEFORE_STEP, 3),
  NUMBER (RN_STAGE_AFTER_TRAIN_ITER, 4),
  NUMBER (RN_STAGE_AFTER_TRAIN_EPOCH, 5),
  NUMBER (RN_STAGE_BEFORE_VAL_EPOCH, 6),
  NUMBER (RN_STAGE_BEFORE_VAL_ITER, 7),
  NUMBER (RN_STAGE_AFTER_VAL_ITER, 8),
  NUMBER (RN_STAGE_AFTER_VAL_EPOCH, 9),
  NUMBER (RN_STAGE_AFTER_RUN, 10),
  NUMBER (RN_KEY_BOOL, 0),
  NUMBER (RN_KEY_INT, 1),
  NUMBER (RN_KEY_FLOAT, 2),
  NUMBER (RN_KEY_STRING, 3),
  NUMBER (RN_KEY_ENUM, 4),
  NUMBER (RN_KEY_INT_LIST, 5),
  NUMBER (RN_KEY_FLOAT_LIST, 6),
  NUMBER (RN_KEY_STRING_LIST, 7),
  NUMBER (RN_KEY_MAP, 8),
  NUMBER (RN_KEY_NODE, 9),
  NUMBER (RN_KEY_UNUSED, 10),
  NUMBER (RN_NODE_NULL, 0),
  NUMBER (RN_NODE_BOOL, 1),
  NUMBER (RN_NODE_INT, 2),
  NUMBER (RN_NODE_FLOAT, 3),
  NUMBER (RN_NODE_STRING, 4),
  NUMBER (RN_NODE_LIST, 5),
  NUMBER (RN_NODE_MAP, 6),
  NUMBER (RN_PRIORITY_HIGHEST, 0),
  NUMBER (RN_PRIORITY_VERY_HIGH, 10),
  NUMBER (RN_PRIORITY_HIGH, 30),
  NUMBER (RN_PRIORITY_ABOVE_NORMAL, 40),
  NUMBER (RN_PRIORITY_NORMAL, 50),
  NUMBER (RN_PRIORITY_BELOW_NORMAL, 60),
  NUMBER (RN_PRIORITY_LOW, 70),
  NUMBER (RN_PRIORITY_VERY_LOW, 90),
  NUMBER (RN_PRIORITY_LOWEST, 100),
  NUMBER (RN_NEEDS_LOSS, 1),
  NUMBER (RN_NEEDS_ACTIVATIONS, 2),
  NUMBER (RN_NEEDS_GRADIENTS, 4),
  NUMBER (RN_NEEDS_EMA, 8),
  NUMBER (RN_KEY_REQUIRED, 1),
  NUMBER (RN_KEY_NULLABLE, 2),
  NUMBER (RN_HOOK_ABI_MAJOR, 1),
};

static void
test_layout (void)
{
  if (sizeof (gpointer) != 8)
    {
      g_test_skip ("the table is of 64 bits");
      return;
    }
  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++)
    if (rows[i].is != rows[i].was)
      g_error ("%s is %" G_GSIZE_FORMAT " and was %" G_GSIZE_FORMAT, rows[i].what, rows[i].is, rows[i].was);
}

/* A plugin as the first headers made it, without today's. */
static void
test_old_plugin (void)
{
  g_autofree char *tmp = g_dir_make_tmp ("rn-abi-XXXXXX", NULL);
  g_autofree char *source = g_test_build_filename (G_TEST_DIST, "tests", "abi", "plugin-1.0.c", NULL);
  g_autofree char *so = g_build_filename (tmp, "old.so", NULL);

  if (sizeof (gpointer) != 8)
    {
      g_test_skip ("the plugin is of 64 bits");
      return;
    }
  build_plugin (source, so, "");
  g_auto (Result) result = run_program ("hooks", so, NULL);
  if (result.code != 0)
    g_error ("%s", result.err);
  assert_contains (result.out, "OldHook (hook): made with ABI 1.0\n");
  assert_contains (result.out, "stages: before_run, after_train_iter; priority 30\n");
  assert_contains (result.out, "every                        int, 1 to 9, default 3: iterations\n");
  remove_tree (tmp);
}

/* What pkg-config says to authors is what the header has. */
static void
test_pkg_config (void)
{
  g_autofree char *expected = g_strdup_printf ("%u.%u\n", RN_HOOK_ABI_MAJOR, RN_HOOK_ABI_MINOR);
  int code;
  g_autofree char *abi = run_shell (&code, "pkg-config --variable=hook_abi runner-1");

  g_assert_cmpint (code, ==, 0);
  g_assert_cmpstr (abi, ==, expected);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  build_init ();
  g_test_add_func ("/abi/layout", test_layout);
  g_test_add_func ("/abi/old-plugin", test_old_plugin);
  g_test_add_func ("/abi/pkg-config", test_pkg_config);
  return g_test_run ();
}
