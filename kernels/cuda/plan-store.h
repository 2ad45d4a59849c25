/*
 * plan-store.h: engines that were chosen by measurement, kept in a file: a resumed run takes the same ones,
 * and another run on the machine need not measure again.
 *
 * The file is text, a JSON object of strings and integers in each line:
 *
 *   {"problem": "forward 2x64x152x256 -> ... f16 nhwc, workspace 67108864", "machine": "cuDNN 9.19.0, ...",
 *    "engine": "engine 41, tensor cores", "workspace": 131, "nanoseconds": 60416, "plan": "...",
 *    "check": "SHA-256 of the values before, a line each"}
 *
 * "plan" is the library's own JSON. Only lines whose check is right reach the library: it is not made to read
 * what somebody damaged.
 */
#ifndef KERNELS_CUDA_PLAN_STORE_H
#define KERNELS_CUDA_PLAN_STORE_H

#include <glib.h>

G_BEGIN_DECLS

typedef struct _RnPlanStore RnPlanStore;

typedef struct
{
  const char *problem; /* with the limit of its workspace */
  const char *machine; /* version of the library and the device */
  const char *engine;  /* in words */
  const char *plan;
  gint64 workspace;   /* bytes */
  gint64 nanoseconds; /* of one execution */
} RnStoredPlan;

/* Bytes of a file, characters of a line and plans of a file that are read. */
#define RN_PLAN_STORE_MAX_BYTES (64 << 20)
#define RN_PLAN_STORE_MAX_LINE (64 << 10)
#define RN_PLAN_STORE_MAX_PLANS 8192

/* What can be read of @path; where there is no such file, nothing. */
RnPlanStore *rn_plan_store_open (const char *path);
/* The same of @size bytes of such a file. It has no path, and cannot be saved. */
RnPlanStore *rn_plan_store_new_from_text (const char *text, gsize size);
void rn_plan_store_free (RnPlanStore *store);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnPlanStore, rn_plan_store_free)

const char *rn_plan_store_path (const RnPlanStore *store);
guint rn_plan_store_size (const RnPlanStore *store);
/* In the order of the file. Lent until the next put. */
const RnStoredPlan *rn_plan_store_get (const RnPlanStore *store, guint i);
/* What could not be read, "2 of 40 lines are damaged", or NULL. Lent. */
const char *rn_plan_store_damage (const RnPlanStore *store);

/* The plan of @problem for @machine, or NULL. Lent until the next put. */
const RnStoredPlan *rn_plan_store_find (const RnPlanStore *store, const char *problem, const char *machine);
/* Is there one for another machine or another version of the library? */
gboolean rn_plan_store_has_other (const RnPlanStore *store, const char *problem, const char *machine);

/* Copies @plan; it takes the place of the one of the same problem and machine. */
void rn_plan_store_put (RnPlanStore *store, const RnStoredPlan *plan);

/* The file as it would be written. (transfer full) */
char *rn_plan_store_text (const RnPlanStore *store);
/*
 * Writes the file, whole or not at all, if something was put since or lines of it are damaged; its folder is
 * made. @merge: plans that the file has by now and the store has not stay in it, for a file of several runs.
 * Of more plans than are read, the oldest are dropped.
 */
gboolean rn_plan_store_save (RnPlanStore *store, gboolean merge, GError **error);

G_END_DECLS

#endif
