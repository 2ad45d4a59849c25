#include "config.h"

#include "runner/hook-wants.h"

#include <string.h>

static void
clear_activation (gpointer data)
{
  g_free (((RnWantedActivation *) data)->module);
}

RnWants *
rn_wants_new (void)
{
  RnWants *wants = g_new0 (RnWants, 1);
  wants->activations = g_array_new (FALSE, FALSE, sizeof (RnWantedActivation));
  g_array_set_clear_func (wants->activations, clear_activation);
  return wants;
}

void
rn_wants_free (RnWants *wants)
{
  if (wants == NULL)
    return;
  g_array_unref (wants->activations);
  g_free (wants->fault);
  g_free (wants);
}

void
rn_wants_activation (RnWants *wants, const char *name)
{
  g_return_if_fail (wants->hook != NULL && name != NULL);

  /* The bit is what says to others, before anything is built, that memory is kept. */
  if ((wants->hook->needs & RN_NEEDS_ACTIVATIONS) == 0)
    {
      if (wants->fault == NULL)
        wants->fault = g_strdup_printf (
            "asks for the output of %s, but its descriptor has no RN_NEEDS_ACTIVATIONS in .needs", name);
      return;
    }
  for (guint i = 0; i < wants->activations->len; i++)
    if (strcmp (g_array_index (wants->activations, RnWantedActivation, i).module, name) == 0)
      return;
  RnWantedActivation wanted = { g_strdup (name), wants->hook->name };
  g_array_append_val (wants->activations, wanted);
}

const char **
rn_wants_modules (const RnWants *wants)
{
  const char **modules = g_new0 (const char *, wants->activations->len + 1);
  for (guint i = 0; i < wants->activations->len; i++)
    modules[i] = g_array_index (wants->activations, RnWantedActivation, i).module;
  return modules;
}
