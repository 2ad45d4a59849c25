/* A plugin that RN_ODD makes wrong in one way, for the checks of the loader. */
#include <runner/hook.h>
#include <stdlib.h>
#include <string.h>

typedef struct
{
  RnHook hook;
  gint64 number;
  int choice;
} Odd;

typedef struct
{
  gint64 inner;
} Inner;

static RnKeySpec inner_keys[] = {
  RN_KEY (Inner, inner, RN_KEY_INT, "1", "a number"),
  RN_KEY_END,
};

static RnKeySpec keys[] = {
  RN_KEY (Odd, number, RN_KEY_INT, "1", "a number"),
  RN_KEY_END,
};

static void
save_state (RnHook *hook, RnRecord *state)
{
}

static const RnHookDesc good = {
  .abi = RN_HOOK_ABI,
  .struct_size = sizeof (RnHookDesc),
  .instance_size = sizeof (Odd),
  .name = "OddHook",
  .version = "2.5",
  .summary = "for tests",
  .keys = keys,
};

static RnHookDesc desc, second;
static const RnHookDesc *list[300];

static void
spoil (const char *how)
{
  if (strcmp (how, "major") == 0)
    desc.abi = (RN_HOOK_ABI_MAJOR + 1) << 16;
  else if (strcmp (how, "minor") == 0)
    desc.abi++;
  else if (strcmp (how, "short") == 0)
    desc.struct_size = sizeof desc - 8;
  else if (strcmp (how, "long") == 0)
    desc.struct_size = sizeof desc + 8;
  else if (strcmp (how, "nameless") == 0)
    desc.name = NULL;
  else if (strcmp (how, "name") == 0)
    desc.name = "Odd Hook";
  else if (strcmp (how, "taken") == 0)
    desc.name = "EvalHook";
  else if (strcmp (how, "version") == 0)
    desc.version = "1\t2";
  else if (strcmp (how, "summary") == 0)
    desc.summary = NULL;
  else if (strcmp (how, "small") == 0)
    desc.instance_size = sizeof (RnHook) - 1;
  else if (strcmp (how, "huge") == 0)
    desc.instance_size = (gsize) 1 << 40;
  else if (strcmp (how, "priority") == 0)
    desc.priority = 101;
  else if (strcmp (how, "state") == 0)
    desc.save_state = save_state;
  else if (strcmp (how, "outside") == 0)
    keys[0].offset = sizeof (Odd) - 4;
  else if (strcmp (how, "head") == 0)
    keys[0].offset = 0;
  else if (strcmp (how, "align") == 0)
    keys[0].offset += 4;
  else if (strcmp (how, "type") == 0)
    keys[0].type = (RnKeyType) 99;
  else if (strcmp (how, "reserved") == 0)
    keys[0].name = "priority";
  else if (strcmp (how, "help") == 0)
    keys[0].help = NULL;
  else if (strcmp (how, "enum") == 0)
    keys[0].type = RN_KEY_ENUM;
  else if (strcmp (how, "map") == 0)
    {
      keys[0].type = RN_KEY_MAP;
      keys[0].offset = sizeof (Odd) - 4;
      keys[0].keys = inner_keys;
    }
  else if (strcmp (how, "present") == 0)
    {
      keys[0].type = RN_KEY_MAP;
      keys[0].keys = inner_keys;
      keys[0].present = sizeof (Odd) - 3;
    }
  else if (strcmp (how, "cycle") == 0)
    {
      keys[0].type = RN_KEY_MAP;
      keys[0].offset = 0;
      keys[0].keys = keys;
    }
  else if (strcmp (how, "endless") == 0)
    for (gsize i = 0; i < G_N_ELEMENTS (list); i++)
      list[i] = &desc;
  else if (strcmp (how, "twice") == 0)
    list[1] = &desc;
  else if (strcmp (how, "second") == 0)
    {
      second.name = "9Hook";
      list[1] = &second;
    }
  else
    abort ();
}

RN_API const RnHookDesc *const *rn_plugin_query_1 (void);

const RnHookDesc *const *
rn_plugin_query_1 (void)
{
  const char *how = getenv ("RN_ODD");

  desc = second = good;
  list[0] = &desc;
  if (strcmp (how, "null") == 0)
    return NULL;
  if (strcmp (how, "good") != 0)
    spoil (how);
  return list;
}
