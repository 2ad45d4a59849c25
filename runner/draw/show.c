#include "config.h"

#include "runner/draw/show.h"

#include "datasets/image.h"
#include "runner/base/error.h"
#include "runner/base/folder.h"
#include "runner/draw/picture.h"

#include <glib/gstdio.h>
#include <string.h>

#define MAX_NAME 200 /* bytes; file systems allow 255, and a temporary file has a longer name */

static const char *
name_of (const RnShowImage *image, int label)
{
  return label >= 0 && label < (int) g_strv_length ((char **) image->names) ? image->names[label] : "?";
}

/* The worst first, so that the best lie on top. Gives how many were drawn. */
static guint
draw_detections (const RnShowImage *image, RnPicture *picture)
{
  guint n = 0;

  for (guint i = image->detections->len; i > 0; i--)
    {
      const RnDetection *d = &g_array_index (image->detections, RnDetection, i - 1);
      if (!((double) d->score > image->score_thr))
        continue;
      const float box[4] = { d->box.x1, d->box.y1, d->box.x2, d->box.y2 };
      g_autofree char *label = g_strdup_printf ("%s %.2f", name_of (image, d->label), (double) d->score);
      rn_picture_box (picture, box, d->label, RN_BOX_SOLID, label);
      n++;
    }
  return n;
}

static void
draw_truth (const RnGroundTruth *truth, RnPicture *picture)
{
  for (int i = 0; i < truth->n; i++)
    rn_picture_box (picture, truth->boxes[i], truth->labels[i],
                    truth->difficult[i] ? RN_BOX_THIN : RN_BOX_DASHED, NULL);
}

static RnPicture *
decode (const RnShowImage *image, GError **error)
{
  g_autofree guint8 *pixels = g_try_malloc_n ((gsize) image->width * (gsize) image->height, 3);

  if (pixels == NULL)
    {
      g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY, "%s: no memory for %d x %d pixels",
                   image->path, image->width, image->height);
      return NULL;
    }
  if (!rn_image_decode_path (image->path, pixels, image->width, image->height, error))
    return NULL;
  return rn_picture_new (pixels, image->width, image->height);
}

gboolean
rn_show_write (const RnShowImage *image, const char *png_path, GError **error)
{
  g_autoptr (RnPicture) picture = decode (image, error);

  if (picture == NULL)
    return FALSE;
  guint n = draw_detections (image, picture);
  if (image->truth != NULL)
    {
      draw_truth (image->truth, picture);
      g_autofree char *caption = g_strdup_printf ("%u detections above %g; %d objects, dashed", n,
                                                  image->score_thr, image->truth->n);
      rn_picture_caption (picture, caption);
    }
  return rn_picture_write_png (picture, png_path, error);
}

char *
rn_show_file_name (GHashTable *taken, const char *id)
{
  g_autofree char *stem = g_strndup (id, MAX_NAME);
  g_autofree char *plain = g_strconcat (g_strdelimit (stem, "/", '_'), ".png", NULL);
  char *name = g_strdup (plain);
  guint number = GPOINTER_TO_UINT (g_hash_table_lookup (taken, plain)); /* the last one given to it */

  while (g_hash_table_contains (taken, name))
    {
      g_free (name);
      number = MAX (number + 1, 2);
      name = g_strdup_printf ("%s-%u.png", stem, number);
    }
  g_hash_table_insert (taken, g_strdup (plain), GUINT_TO_POINTER (number));
  if (strcmp (name, plain) != 0)
    g_hash_table_insert (taken, g_strdup (name), GUINT_TO_POINTER (0));
  return name;
}

/* ---- The first images of a data set ---- */

struct _RnShow
{
  char *dir;
  const RnDataset *dataset;
  int64_t n_left;
  double score_thr;
  GHashTable *taken; /* file names */
};

/* Pictures are named like the images, and must never take their place. */
static gboolean
check_dir (const char *dir, const RnDataset *dataset, GError **error)
{
  GStatBuf ours, theirs;

  for (guint b = 0; b < rn_dataset_n_bases (dataset); b++)
    {
      const RnDataset *base = rn_dataset_base (dataset, b);
      if (rn_dataset_size (base) == 0)
        continue;
      g_autofree char *folder = g_path_get_dirname (rn_dataset_path (base, 0));
      if (g_stat (dir, &ours) != 0 || g_stat (folder, &theirs) != 0 || ours.st_dev != theirs.st_dev
          || ours.st_ino != theirs.st_ino)
        continue;
      g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_EXIST,
                   "%s: that is the folder of the photographs; the pictures need another one", dir);
      return FALSE;
    }
  return TRUE;
}

RnShow *
rn_show_new (const char *dir, const RnDataset *dataset, int64_t n_images, double score_thr, GError **error)
{
  if (!rn_folder_make (dir, error) || !check_dir (dir, dataset, error))
    return NULL;
  RnShow *show = g_new0 (RnShow, 1);
  show->dir = g_strdup (dir);
  show->dataset = dataset;
  show->n_left = n_images;
  show->score_thr = score_thr;
  show->taken = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  return show;
}

void
rn_show_free (RnShow *show)
{
  if (show == NULL)
    return;
  g_hash_table_unref (show->taken);
  g_free (show->dir);
  g_free (show);
}

gboolean
rn_show_add (RnShow *show, const RnSampleMeta *meta, const GArray *detections, GError **error)
{
  RnGroundTruth truth;

  if (show->n_left <= 0)
    return TRUE;
  show->n_left--;
  rn_dataset_ground_truth (show->dataset, meta->index, &truth);
  RnShowImage image = {
    .path = meta->path,
    .width = meta->ori_width,
    .height = meta->ori_height,
    .detections = detections,
    .score_thr = show->score_thr,
    .truth = &truth,
    .names = rn_dataset_class_names (show->dataset),
  };
  g_autofree char *name = rn_show_file_name (show->taken, meta->id);
  g_autofree char *path = g_build_filename (show->dir, name, NULL);
  return rn_show_write (&image, path, error);
}
