#include "config.h"

#include "kernels/cuda/plan-store.h"

#include "runner/base/atomic-file.h"
#include "runner/base/folder.h"
#include "runner/base/json.h"
#include "runner/base/open-file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define TOO_LARGE "it is too large"

struct _RnPlanStore
{
  char *path;        /* NULL: only in memory */
  GHashTable *plans; /* key (problem, machine) -> RnStoredPlan, whose texts are owned */
  GPtrArray *order;  /* of RnStoredPlan, lent: as in the file */
  char *damage;      /* NULL: none */
  gboolean is_changed;
};

static void
plan_free (gpointer data)
{
  RnStoredPlan *plan = data;

  g_free ((char *) plan->problem);
  g_free ((char *) plan->machine);
  g_free ((char *) plan->engine);
  g_free ((char *) plan->plan);
  g_free (plan);
}

/* (transfer full) */
static RnStoredPlan *
plan_copy (const RnStoredPlan *plan)
{
  RnStoredPlan *copy = g_memdup2 (plan, sizeof *plan);

  copy->problem = g_strdup (plan->problem);
  copy->machine = g_strdup (plan->machine);
  copy->engine = g_strdup (plan->engine);
  copy->plan = g_strdup (plan->plan);
  return copy;
}

static char *
key_of (const char *problem, const char *machine)
{
  return g_strconcat (problem, "\n", machine, NULL);
}

static char *
check_of (const RnStoredPlan *plan)
{
  g_autofree char *text =
      g_strdup_printf ("%s\n%s\n%s\n%" G_GINT64_FORMAT "\n%" G_GINT64_FORMAT "\n%s\n", plan->problem,
                       plan->machine, plan->engine, plan->workspace, plan->nanoseconds, plan->plan);
  return g_compute_checksum_for_string (G_CHECKSUM_SHA256, text, -1);
}

static void
put (RnPlanStore *store, const RnStoredPlan *plan)
{
  g_autofree char *key = key_of (plan->problem, plan->machine);
  RnStoredPlan *copy = plan_copy (plan), *old = g_hash_table_lookup (store->plans, key);

  if (old == NULL)
    {
      g_hash_table_insert (store->plans, g_steal_pointer (&key), copy);
      g_ptr_array_add (store->order, copy);
      return;
    }
  const RnStoredPlan replaced = *old;
  *old = *copy; /* its place in the order stays */
  *copy = replaced;
  plan_free (copy);
}

/* ---- reading ---- */

static gboolean
read_count (GHashTable *members, const char *name, gint64 *value)
{
  const char *text = g_hash_table_lookup (members, name);
  return text != NULL && g_ascii_string_to_signed (text, 10, 0, G_MAXINT64, value, NULL);
}

static gboolean
read_line (RnPlanStore *store, const char *line, gsize length)
{
  if (length > RN_PLAN_STORE_MAX_LINE || store->order->len >= RN_PLAN_STORE_MAX_PLANS)
    return FALSE;
  g_autoptr (GHashTable) members = rn_json_read_flat (line, length, NULL);
  if (members == NULL)
    return FALSE;
  RnStoredPlan plan = { .problem = g_hash_table_lookup (members, "problem"),
                        .machine = g_hash_table_lookup (members, "machine"),
                        .engine = g_hash_table_lookup (members, "engine"),
                        .plan = g_hash_table_lookup (members, "plan") };
  const char *check = g_hash_table_lookup (members, "check");
  if (plan.problem == NULL || plan.machine == NULL || plan.engine == NULL || plan.plan == NULL
      || check == NULL || !read_count (members, "workspace", &plan.workspace)
      || !read_count (members, "nanoseconds", &plan.nanoseconds))
    return FALSE;
  g_autofree char *right = check_of (&plan);
  if (strcmp (check, right) != 0)
    return FALSE;
  put (store, &plan);
  return TRUE;
}

static void
read_lines (RnPlanStore *store, const char *text, gsize size)
{
  guint n_lines = 0, n_damaged = 0;

  for (gsize at = 0; at < size;)
    {
      const char *end = memchr (text + at, '\n', size - at);
      gsize length = end != NULL ? (gsize) (end - text) - at : size - at;
      n_lines++;
      n_damaged += !read_line (store, text + at, length);
      at += length + 1;
    }
  if (n_damaged > 0)
    store->damage = g_strdup_printf ("%u of %u lines are damaged", n_damaged, n_lines);
  store->is_changed = n_damaged > 0; /* they go when it is saved, and are told once */
}

/* The whole file; NULL with errno. */
static char *
read_file (const char *path, gsize *size)
{
  guint64 file_size = 0;
  int fd = rn_open_regular (path, &file_size);

  if (fd < 0)
    return NULL;
  if (file_size > RN_PLAN_STORE_MAX_BYTES)
    {
      close (fd);
      errno = EFBIG;
      return NULL;
    }
  char *text = rn_read_all (fd, (gsize) file_size, size);
  int code = errno;
  close (fd);
  errno = code;
  return text;
}

static RnPlanStore *
store_new (const char *path)
{
  RnPlanStore *store = g_new0 (RnPlanStore, 1);

  store->path = g_strdup (path);
  store->plans = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, plan_free);
  store->order = g_ptr_array_new ();
  return store;
}

RnPlanStore *
rn_plan_store_open (const char *path)
{
  RnPlanStore *store = store_new (path);
  gsize size = 0;
  g_autofree char *text = read_file (path, &size);

  if (text != NULL)
    read_lines (store, text, size);
  else if (errno != ENOENT)
    store->damage = g_strdup (errno == EFBIG ? TOO_LARGE : rn_open_problem (errno));
  return store;
}

RnPlanStore *
rn_plan_store_new_from_text (const char *text, gsize size)
{
  RnPlanStore *store = store_new (NULL);

  if (size <= RN_PLAN_STORE_MAX_BYTES)
    read_lines (store, text, size);
  else
    store->damage = g_strdup (TOO_LARGE);
  return store;
}

void
rn_plan_store_free (RnPlanStore *store)
{
  if (store == NULL)
    return;
  g_ptr_array_unref (store->order);
  g_hash_table_unref (store->plans);
  g_free (store->damage);
  g_free (store->path);
  g_free (store);
}

const char *
rn_plan_store_path (const RnPlanStore *store)
{
  return store->path;
}

guint
rn_plan_store_size (const RnPlanStore *store)
{
  return store->order->len;
}

const RnStoredPlan *
rn_plan_store_get (const RnPlanStore *store, guint i)
{
  return g_ptr_array_index (store->order, i);
}

const char *
rn_plan_store_damage (const RnPlanStore *store)
{
  return store->damage;
}

const RnStoredPlan *
rn_plan_store_find (const RnPlanStore *store, const char *problem, const char *machine)
{
  g_autofree char *key = key_of (problem, machine);

  return g_hash_table_lookup (store->plans, key);
}

gboolean
rn_plan_store_has_other (const RnPlanStore *store, const char *problem, const char *machine)
{
  for (guint i = 0; i < store->order->len; i++)
    {
      const RnStoredPlan *plan = g_ptr_array_index (store->order, i);
      if (strcmp (plan->problem, problem) == 0 && strcmp (plan->machine, machine) != 0)
        return TRUE;
    }
  return FALSE;
}

/* ---- writing ---- */

void
rn_plan_store_put (RnPlanStore *store, const RnStoredPlan *plan)
{
  put (store, plan);
  store->is_changed = TRUE;
}

static void
append_member (GString *line, const char *name, const char *text)
{
  g_string_append_printf (line, "\"%s\": ", name);
  rn_json_append_string (line, text);
  g_string_append (line, ", ");
}

static void
append_line (GString *text, const RnStoredPlan *plan)
{
  g_autofree char *check = check_of (plan);

  g_string_append_c (text, '{');
  append_member (text, "problem", plan->problem);
  append_member (text, "machine", plan->machine);
  append_member (text, "engine", plan->engine);
  g_string_append_printf (text,
                          "\"workspace\": %" G_GINT64_FORMAT ", \"nanoseconds\": %" G_GINT64_FORMAT ", ",
                          plan->workspace, plan->nanoseconds);
  append_member (text, "plan", plan->plan);
  g_string_append_printf (text, "\"check\": \"%s\"}\n", check);
}

char *
rn_plan_store_text (const RnPlanStore *store)
{
  GString *text = g_string_new (NULL);
  guint n = store->order->len;

  for (guint i = n > RN_PLAN_STORE_MAX_PLANS ? n - RN_PLAN_STORE_MAX_PLANS : 0; i < n; i++)
    append_line (text, g_ptr_array_index (store->order, i));
  return g_string_free (text, FALSE);
}

gboolean
rn_plan_store_save (RnPlanStore *store, gboolean merge, GError **error)
{
  if (!store->is_changed)
    return TRUE;
  g_autofree char *folder = g_path_get_dirname (store->path);
  if (merge)
    {
      g_autoptr (RnPlanStore) now = rn_plan_store_open (store->path);
      for (guint i = 0; i < now->order->len; i++)
        {
          const RnStoredPlan *plan = g_ptr_array_index (now->order, i);
          if (rn_plan_store_find (store, plan->problem, plan->machine) == NULL)
            put (store, plan);
        }
    }
  g_autofree char *text = rn_plan_store_text (store);
  if (!rn_folder_make (folder, error) || !rn_atomic_file_save (store->path, text, strlen (text), error))
    return FALSE;
  store->is_changed = FALSE;
  return TRUE;
}
