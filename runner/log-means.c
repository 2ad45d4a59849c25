#include "config.h"

#include "runner/log-means.h"

#include <math.h>
#include <string.h>

typedef struct
{
  char *name;
  double sum, weight;
} Mean;

struct _RnLogMeans
{
  GArray *means; /* of Mean */
  guint next;    /* where the next name is looked for first: they come in the same order in each iteration */
};

static void
mean_clear (gpointer data)
{
  g_free (((Mean *) data)->name);
}

RnLogMeans *
rn_log_means_new (void)
{
  RnLogMeans *means = g_new0 (RnLogMeans, 1);
  means->means = g_array_new (FALSE, FALSE, sizeof (Mean));
  g_array_set_clear_func (means->means, mean_clear);
  return means;
}

void
rn_log_means_free (RnLogMeans *means)
{
  if (means == NULL)
    return;
  g_array_unref (means->means);
  g_free (means);
}

/* NULL if there is none; looks from @first on, all around. */
static Mean *
find (const RnLogMeans *means, const char *name, guint first)
{
  guint n = means->means->len;

  for (guint k = 0; k < n; k++)
    {
      Mean *mean = &g_array_index (means->means, Mean, (first + k) % n);
      if (strcmp (mean->name, name) == 0)
        return mean;
    }
  return NULL;
}

void
rn_log_means_add (RnLogMeans *means, const char *name, double value, double weight)
{
  Mean *mean = find (means, name, means->next);

  if (mean == NULL)
    {
      Mean fresh = { .name = g_strdup (name) };
      g_array_append_val (means->means, fresh);
      mean = &g_array_index (means->means, Mean, means->means->len - 1);
    }
  mean->sum += value * weight;
  mean->weight += weight;
  means->next = (guint) (mean - (Mean *) (gpointer) means->means->data) + 1;
}

void
rn_log_means_reset (RnLogMeans *means)
{
  for (guint i = 0; i < means->means->len; i++)
    {
      Mean *mean = &g_array_index (means->means, Mean, i);
      mean->sum = mean->weight = 0;
    }
  means->next = 0;
}

void
rn_log_means_foreach (const RnLogMeans *means, RnLogFunc func, gpointer user_data)
{
  for (guint i = 0; i < means->means->len; i++)
    {
      const Mean *mean = &g_array_index (means->means, Mean, i);
      if (mean->weight > 0)
        func (mean->name, mean->sum / mean->weight, user_data);
    }
}

double
rn_log_means_get (const RnLogMeans *means, const char *name)
{
  const Mean *mean = find (means, name, 0);
  return mean != NULL && mean->weight > 0 ? mean->sum / mean->weight : NAN;
}
