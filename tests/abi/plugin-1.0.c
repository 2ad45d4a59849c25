/* A plugin in the binary form of hook ABI 1.0, with its structs written out: what a compiler made of the
 * first headers. It must load for as long as the major number is 1. */
#include <stddef.h>
#include <stdint.h>

struct key
{
  const char *name;
  int type; /* 1: a whole number */
  uint64_t offset;
  const char *deflt, *help;
  double min, max;
  const void *names, *keys;
  uint64_t present;
  uint32_t flags;
};

struct hook
{
  const void *desc;
  int priority;
  const void *config;
  void *reserved[2];
};

struct old
{
  struct hook hook;
  int64_t every;
};

typedef int (*func) (void *hook, void *runner, void **error);

struct desc
{
  uint32_t abi, struct_size;
  uint64_t instance_size;
  const char *name, *version, *license, *summary;
  int priority;
  uint32_t needs;
  const struct key *keys;
  void *prepare, *init, *clear, *save_state, *load_state;
  func before_run;
  func before_train_epoch, before_train_iter, before_step, after_train_iter, after_train_epoch;
  func before_val_epoch, before_val_iter, after_val_iter, after_val_epoch;
  func after_run;
  func before_epoch, before_iter, after_iter, after_epoch;
  void *reserved[8];
};

static int
nothing (void *hook, void *runner, void **error)
{
  return 1;
}

static const struct key keys[] = {
  { "every", 1, offsetof (struct old, every), "3", "iterations", 1, 9, NULL, NULL, 0, 0 },
  { NULL, 0, 0, NULL, NULL, 0, 0, NULL, NULL, 0, 0 },
};

static const struct desc desc = {
  .abi = 1 << 16,
  .struct_size = 288,
  .instance_size = sizeof (struct old),
  .name = "OldHook",
  .version = "1.0",
  .summary = "made with ABI 1.0",
  .priority = 30,
  .keys = keys,
  .before_run = nothing,
  .after_train_iter = nothing,
};

__attribute__ ((visibility ("default"))) const struct desc *const *rn_plugin_query_1 (void);

const struct desc *const *
rn_plugin_query_1 (void)
{
  static const struct desc *const list[] = { &desc, NULL };
  return list;
}
