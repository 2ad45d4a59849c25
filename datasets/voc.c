#define G_LOG_DOMAIN "rn-data"
#include "config.h"

#include "datasets/voc.h"

#include "boxes/box.h"
#include "datasets/image.h"
#include "datasets/scan.h"
#include "datasets/split.h"
#include "datasets/voc-cache.h"
#include "datasets/voc-find.h"
#include "datasets/voc-xml.h"
#include "runner/base/error.h"

#include <string.h>

#define MAX_NAMED 10 /* findings of one kind that get a line of their own */

const char *const rn_voc_class_names[] = {
  "aeroplane", "bicycle",     "bird",  "boat",        "bottle", "bus",       "car",
  "cat",       "chair",       "cow",   "diningtable", "dog",    "horse",     "motorbike",
  "person",    "pottedplant", "sheep", "sofa",        "train",  "tvmonitor", NULL,
};

typedef enum
{
  FOUND_BAD_BOX,  /* dropped */
  FOUND_REVERSED, /* put right */
  FOUND_SIZE,     /* XML and image disagree */
  FOUND_REPEATED, /* kept */
  FOUND_UNREADABLE,
} Finding;

G_STATIC_ASSERT (FOUND_UNREADABLE + 1 == RN_VOC_N_FINDINGS);

typedef struct
{
  const char *prefix;
  const RnSplit *split;
  RnOnError on_error;
  RnVocStamps *stamps; /* [ids] each written by the thread that reads its files */

  GMutex lock; /* guards the rest */
  RnIndex *index;
  GHashTable *names; /* char *, lent by the index -> index in its names + 1 */
  int64_t found[RN_VOC_N_FINDINGS];
} Voc;

/* With the lock held. */
G_GNUC_PRINTF (3, 4) static void note (Voc *voc, Finding finding, const char *format, ...)
{
  g_autofree char *text = NULL;
  va_list args;

  if (voc->found[finding]++ >= MAX_NAMED)
    return;
  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  g_warning ("%s", text);
}

/* With the lock held. -1 if there are too many names. */
static int16_t
name_index (Voc *voc, const char *name)
{
  guint i = GPOINTER_TO_UINT (g_hash_table_lookup (voc->names, name));

  if (i == 0)
    {
      char *copy = g_strdup (name);

      if (voc->index->names->len >= G_MAXINT16)
        {
          g_free (copy);
          return -1;
        }
      g_ptr_array_add (voc->index->names, copy);
      i = voc->index->names->len;
      g_hash_table_insert (voc->names, copy, GUINT_TO_POINTER (i));
    }
  return (int16_t) (i - 1);
}

/* Some tools write the corner where the mouse began as the first, wherever that was. */
static RnBox
put_corners_right (Voc *voc, const char *id, const RnVocObject *object)
{
  const float *b = object->box;
  RnBox box = { MIN (b[0], b[2]), MIN (b[1], b[3]), MAX (b[0], b[2]), MAX (b[1], b[3]) };

  if (b[0] > b[2] || b[1] > b[3])
    note (voc, FOUND_REVERSED, "%s/Annotations/%s.xml: corners of the %s box (%g %g %g %g) exchanged",
          voc->prefix, id, object->name, b[0] + 1, b[1] + 1, b[2] + 1, b[3] + 1);
  return box;
}

/* The numbers between 0 and 1 of other formats, cut to integers and less 1. */
static gboolean
looks_like_fractions (const RnBox *box)
{
  return box->x1 >= -1 && box->y1 >= -1 && box->x2 <= 0 && box->y2 <= 0;
}

static gboolean
add_object (Voc *voc, const char *id, const RnVocObject *object, const RnIndexImage *image, GError **error)
{
  RnBox box = put_corners_right (voc, id, object);
  RnBox clipped = rn_box_clip (box, (float) image->width, (float) image->height);
  int16_t name;

  if (!(clipped.x2 > clipped.x1 && clipped.y2 > clipped.y1))
    {
      note (
          voc, FOUND_BAD_BOX,
          "%s/Annotations/%s.xml: %s box (%g %g %g %g) dropped, it has no area inside the image of %d x %d%s",
          voc->prefix, id, object->name, box.x1 + 1, box.y1 + 1, box.x2 + 1, box.y2 + 1, image->width,
          image->height, looks_like_fractions (&box) ? "; coordinates are pixels, not fractions" : "");
      return TRUE;
    }
  name = name_index (voc, object->name);
  if (name < 0)
    {
      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "%s: more than %d class names", voc->prefix,
                   G_MAXINT16);
      return FALSE;
    }
  rn_index_add_object (voc->index, (float[4]){ clipped.x1, clipped.y1, clipped.x2, clipped.y2 }, name,
                       object->difficult);
  return TRUE;
}

static gboolean
add_image (Voc *voc, int64_t item, const char *id, const char *path, int width, int height,
           const RnVocAnnotation *annotation, GError **error)
{
  RnIndexImage *image = rn_index_image (voc->index, item);

  if (voc->index->strings->len > G_MAXUINT32 / 2) /* offsets in it are 32 bits */
    {
      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "%s: too many images", voc->prefix);
      return FALSE;
    }
  if (annotation->width > 0 && annotation->height > 0
      && (annotation->width != width || annotation->height != height))
    note (voc, FOUND_SIZE, "%s: the XML says %d x %d, the image is %d x %d; the image's size counts%s", path,
          annotation->width, annotation->height, width, height,
          annotation->width == height && annotation->height == width
              ? "; were the boxes drawn before it was turned (EXIF)?"
              : "");
  image->width = width;
  image->height = height;
  image->id = rn_index_add_string (voc->index, id);
  image->path = rn_index_add_string (voc->index, path);
  image->first = voc->index->labels->len;
  for (guint i = 0; i < annotation->objects->len; i++)
    if (!add_object (voc, id, &g_array_index (annotation->objects, RnVocObject, i), image, error))
      return FALSE;
  image->n = voc->index->labels->len - image->first;
  return TRUE;
}

static gboolean
read_image (Voc *voc, int64_t item, GError **error)
{
  const gboolean exact = voc->split->lines->len == 0;
  g_auto (RnVocAnnotation) annotation;
  g_autofree char *path = NULL;
  g_autofree char *id = NULL;
  g_autofree char *xml = NULL;
  int width, height;
  gboolean ok;

  rn_voc_annotation_init (&annotation);
  path = rn_voc_find_image (voc->prefix, rn_split_name (voc->split, item), exact, &id, error);
  if (path == NULL)
    return FALSE;
  xml = rn_voc_annotation_path (voc->prefix, id);
  voc->stamps[item].annotation = rn_file_stamp (xml);
  voc->stamps[item].image = rn_file_stamp (path);
  if (!rn_image_check_path (path, &width, &height, error) || !rn_voc_xml_parse_path (xml, &annotation, error))
    return FALSE;
  g_mutex_lock (&voc->lock);
  ok = add_image (voc, item, id, path, width, height, &annotation, error);
  g_mutex_unlock (&voc->lock);
  return ok;
}

/* What is missing is wanted by a line of the list. */
static void
name_line (const Voc *voc, int64_t item, GError **error)
{
  g_autofree char *where = rn_split_where (voc->split, item);

  if (g_error_matches (*error, RN_DATA_ERROR, RN_DATA_ERROR_MISSING))
    g_prefix_error (error, "%s: ", where);
}

/* An image that is left out keeps width 0. */
static gboolean
visit (gpointer data, int64_t item, GError **error)
{
  Voc *voc = data;
  g_autoptr (GError) local = NULL;

  if (read_image (voc, item, &local))
    return TRUE;
  name_line (voc, item, &local);
  if (voc->on_error == RN_ON_ERROR_FAIL)
    {
      g_set_error (error, local->domain, local->code, "%s; data.on_error: skip would leave it out",
                   local->message);
      return FALSE;
    }
  g_mutex_lock (&voc->lock);
  rn_index_image (voc->index, item)->width = 0;
  note (voc, FOUND_UNREADABLE, "%s; left out (on_error: skip)", local->message);
  g_mutex_unlock (&voc->lock);
  return TRUE;
}

/* An image that is listed twice counts twice, in training and in the evaluation: that may be meant. */
static void
note_repeated (Voc *voc)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);

  for (guint i = 0; i < voc->index->images->len; i++)
    {
      const RnIndexImage *image = rn_index_image (voc->index, i);
      const char *id = rn_index_string (voc->index, image->id);

      if (image->width == 0 || g_hash_table_add (seen, (gpointer) id))
        continue;
      g_autofree char *where = rn_split_where (voc->split, i);
      note (voc, FOUND_REPEATED, "%s: %s is listed above already; it counts again", where, id);
    }
}

static void
drop_unread_images (RnIndex *index)
{
  guint kept = 0;

  for (guint i = 0; i < index->images->len; i++)
    if (rn_index_image (index, i)->width > 0)
      *rn_index_image (index, kept++) = *rn_index_image (index, i);
  g_array_set_size (index->images, kept);
}

static void
report_findings (const char *prefix, const int64_t *found)
{
  static const char *const texts[RN_VOC_N_FINDINGS] = {
    [FOUND_BAD_BOX] = "boxes without area inside their image dropped",
    [FOUND_REVERSED] = "boxes with exchanged corners put right",
    [FOUND_SIZE] = "images of another size than their XML says",
    [FOUND_REPEATED] = "images listed more than once",
    [FOUND_UNREADABLE] = "unreadable images left out",
  };

  for (int i = 0; i < RN_VOC_N_FINDINGS; i++)
    if (found[i] > 0)
      g_warning ("%s: %" G_GINT64_FORMAT " %s", prefix, (gint64) found[i], texts[i]);
}

/* Reads all files of @source, and fills its stamps and findings. */
static RnIndex *
scan_folder (RnVocSource *source, const RnDatasetOptions *options, GError **error)
{
  g_autoptr (RnIndex) index = rn_index_new ();
  g_autoptr (GHashTable) names = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (RnSplit) split = NULL;
  Voc voc = { .prefix = source->prefix, .on_error = options->on_error, .index = index, .names = names };
  gboolean ok;

  source->list = rn_file_stamp (source->ann_file);
  voc.split = split = rn_split_read (source->ann_file, error);
  if (split == NULL)
    return NULL;
  if (split->names->len > G_MAXINT32 / sizeof (RnIndexImage))
    {
      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "%s: too many lines", source->ann_file);
      return NULL;
    }
  g_array_set_size (index->images, split->names->len);
  voc.stamps = source->stamps = g_new0 (RnVocStamps, index->images->len);
  g_mutex_init (&voc.lock);
  ok = rn_scan (index->images->len, visit, &voc, source->prefix, options, error);
  g_mutex_clear (&voc.lock);
  if (!ok)
    return NULL;
  note_repeated (&voc);
  memcpy (source->findings, voc.found, sizeof voc.found);
  drop_unread_images (index);
  return g_steal_pointer (&index);
}

/* An index that leaves images out is not kept: they may be repaired, and nothing would tell. */
RnIndex *
rn_voc_index (const char *ann_file, const char *prefix, const RnDatasetOptions *options, GError **error)
{
  int64_t findings[RN_VOC_N_FINDINGS] = { 0 };
  RnVocSource source = { .ann_file = ann_file, .prefix = prefix, .findings = findings };
  RnIndex *index = options->cache_dir != NULL ? rn_voc_cache_load (options->cache_dir, &source) : NULL;

  if (index == NULL)
    {
      index = scan_folder (&source, options, error);
      if (index != NULL && options->cache_dir != NULL && findings[FOUND_UNREADABLE] == 0)
        rn_voc_cache_save (options->cache_dir, &source, index);
      g_free (source.stamps);
    }
  if (index != NULL)
    report_findings (prefix, findings);
  return index;
}
