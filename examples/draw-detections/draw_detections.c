/* draw_detections.c: what the model finds in one image of the validation set, as a picture an epoch. */
#include <glib/gstdio.h>
#include <runner/hook.h>

typedef struct
{
  RnHook hook;
  gint64 image, interval; /* keys */
  double score_thr;
  char *dir; /* made in init */
} DrawDetections;

static const RnKeySpec keys[] = {
  RN_KEY (DrawDetections, image, RN_KEY_INT, "0", "number of the image in the validation set, from 0",
          .min = 0, .max = 1e9),
  RN_KEY (DrawDetections, interval, RN_KEY_INT, "1", "epochs between two pictures", .min = 1, .max = 1e6),
  RN_KEY (DrawDetections, score_thr, RN_KEY_FLOAT, "0.3", "detections above this score are drawn", .min = 0,
          .max = 1),
  RN_KEY_END,
};

static gboolean
init (RnHook *hook, RnRunner *runner, GError **error)
{
  DrawDetections *self = (DrawDetections *) hook;

  self->dir = g_build_filename (rn_runner_work_dir (runner), "drawn", NULL);
  if (g_mkdir_with_parents (self->dir, 0777) != 0)
    return rn_hook_error (error, "%s cannot be made", self->dir);
  return TRUE;
}

static void
clear (RnHook *hook)
{
  g_free (((DrawDetections *) hook)->dir);
}

static gboolean
after_train_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  DrawDetections *self = (DrawDetections *) hook;

  if (!rn_runner_every_n_epochs (runner, self->interval))
    return TRUE;
  g_autofree char *name = g_strdup_printf ("epoch_%d.png", (int) rn_runner_epoch (runner) + 1);
  g_autofree char *path = g_build_filename (self->dir, name, NULL);
  if (!rn_runner_draw_detections (runner, self->image, self->score_thr, path, error))
    return FALSE;
  g_message ("drawn: %s", path);
  return TRUE;
}

RN_HOOK_DEFINE (draw_detections, DrawDetections, .name = "DrawDetectionsHook", .version = "1.0",
                .license = "MIT", .summary = "draws what the model finds in one validation image",
                .keys = keys, .init = init, .clear = clear, .after_train_epoch = after_train_epoch);
