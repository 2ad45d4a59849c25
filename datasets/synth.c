#include "config.h"

#include "datasets/synth.h"

#include "datasets/canvas.h"
#include "datasets/image.h"
#include "datasets/voc.h"
#include "runner/base/error.h"
#include "runner/base/folder.h"

#include <math.h>
#include <string.h>

#define MAX_OBJECTS 5
#define JPEG_QUALITY 90
#define MIN_VISIBLE 0.35 /* part of an object; below it is difficult */
#define TINY 15          /* pixels of the longer side; up to here an object is difficult */

typedef struct
{
  int label, box[4]; /* x2 and y2 exclusive, 0-based */
  gboolean difficult;
} Object;

/* One folder with Annotations, JPEGImages and ImageSets. */
typedef struct
{
  const RnSynthOptions *options;
  char *root;
  const char *id_prefix;
  const char *const *classes;
  int n_classes;
  guint32 folder; /* number, part of the key of random numbers */
  int n_done;     /* images so far */
} Folder;

static const char *const plain_classes[] = { "circle", "square", "triangle", NULL };

/* ---- One image ---- */

static double
brightness (const guint8 color[3])
{
  return 0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2];
}

/* A random colour that stands out from brightness @from; black or white if chance does not find one. */
static void
choose_color (RnRng *rng, double from, guint8 color[3])
{
  for (int attempt = 0; attempt < 32; attempt++)
    {
      for (int c = 0; c < 3; c++)
        color[c] = (guint8) rn_rng_below (rng, 256);
      if (fabs (brightness (color) - from) >= 60)
        return;
    }
  memset (color, from < 128 ? 255 : 0, 3);
}

/* Plain sets tell classes by form alone; VOC's twenty are every form in every texture. */
static RnShape
choose_shape (const Folder *folder, int label, RnRng *rng, const RnCanvas *canvas, double background)
{
  double side = MIN (canvas->width, canvas->height), scale = side / 128;
  double diameter = scale * (24 + 76 * rn_rng_uniform (rng));
  RnShape shape = { .form = label % RN_N_FORMS, .texture = label / RN_N_FORMS };

  if (rn_rng_uniform (rng) < 0.04)
    diameter = 8 + 6 * rn_rng_uniform (rng);
  shape.radius = MIN (diameter, 0.75 * side) / 2;
  shape.x = shape.radius * 0.8 + (canvas->width - shape.radius * 1.6) * rn_rng_uniform (rng);
  shape.y = shape.radius * 0.8 + (canvas->height - shape.radius * 1.6) * rn_rng_uniform (rng);
  shape.angle = 0.7 * (rn_rng_uniform (rng) - 0.5);
  choose_color (rng, background, shape.colors[0]);
  choose_color (rng, brightness (shape.colors[0]), shape.colors[1]);
  return shape;
}

/* Whether the new shape would hide much of an earlier one, or stand in it. */
static gboolean
is_crowded (const RnShape *shapes, int n, const RnShape *shape)
{
  for (int i = 0; i < n; i++)
    if (hypot (shapes[i].x - shape->x, shapes[i].y - shape->y) < 0.8 * (shapes[i].radius + shape->radius))
      return TRUE;
  return FALSE;
}

/* Draws 1 to MAX_OBJECTS objects (none on every twentieth image) into @canvas; gives their number. */
static int
draw_image (Folder *folder, RnRng *rng, RnCanvas *canvas, Object *objects)
{
  double background = rn_canvas_fill_background (canvas, rng);
  int wanted = folder->n_done % 20 == 19 ? 0 : 1 + (int) rn_rng_below (rng, MAX_OBJECTS);
  RnShape shapes[MAX_OBJECTS];
  int covered[MAX_OBJECTS];
  int n = 0;

  for (int attempt = 0; attempt < 20 && n < wanted; attempt++)
    {
      int label = (int) rn_rng_below (rng, folder->n_classes);
      gboolean occlude = rn_rng_uniform (rng) < 0.1;

      shapes[n] = choose_shape (folder, label, rng, canvas, background);
      if (is_crowded (shapes, n, &shapes[n]) && !occlude)
        continue;
      objects[n].label = label;
      covered[n] = rn_canvas_draw (canvas, &shapes[n], n, objects[n].box);
      if (covered[n] > 0)
        n++;
    }
  for (int i = 0; i < n; i++)
    {
      const int *box = objects[i].box;

      objects[i].difficult = MAX (box[2] - box[0], box[3] - box[1]) <= TINY
                             || rn_canvas_count (canvas, i) < MIN_VISIBLE * covered[i];
    }
  rn_canvas_add_noise (canvas, rng);
  return n;
}

/* Every fifth annotation writes decimals and every eleventh has no size, as the tools that people use do. */
static char *
format_xml (const Folder *folder, const char *id, const RnCanvas *canvas, const Object *objects, int n)
{
  GString *xml = g_string_new ("<annotation>\n");
  const char *ending = folder->n_done % 5 == 4 ? ".0" : "";

  g_string_append_printf (xml, "  <filename>%s.jpg</filename>\n", id);
  if (folder->n_done % 11 != 10)
    g_string_append_printf (xml, "  <size><width>%d</width><height>%d</height><depth>3</depth></size>\n",
                            canvas->width, canvas->height);
  for (int i = 0; i < n; i++)
    {
      const int *box = objects[i].box;

      g_string_append_printf (xml, "  <object>\n    <name>%s</name>\n    <difficult>%d</difficult>\n",
                              folder->classes[objects[i].label], objects[i].difficult);
      /* VOC counts from 1 and includes the last pixel. */
      g_string_append_printf (
          xml,
          "    <bndbox><xmin>%d%s</xmin><ymin>%d%s</ymin><xmax>%d%s</xmax><ymax>%d%s</ymax></bndbox>\n  "
          "</object>\n",
          box[0] + 1, ending, box[1] + 1, ending, box[2], ending, box[3], ending);
    }
  g_string_append (xml, "</annotation>\n");
  return g_string_free (xml, FALSE);
}

/* Plain sets have one size. VOC's are of every shape: landscape, portrait, square. */
static void
choose_size (const Folder *folder, int *width, int *height)
{
  const RnSynthOptions *options = folder->options;
  int kind = options->layout == RN_SYNTH_PLAIN ? 0 : folder->n_done % 4;

  *width = kind < 2 ? options->width : options->height;
  *height = kind == 2 ? options->width : options->height;
}

static gboolean
write_image (Folder *folder, const char *id, GError **error)
{
  g_autofree char *image = g_strdup_printf ("%s/JPEGImages/%s.jpg", folder->root, id);
  g_autofree char *annotation = g_strdup_printf ("%s/Annotations/%s.xml", folder->root, id);
  g_autofree char *xml = NULL;
  g_auto (RnCanvas) canvas = { 0 };
  Object objects[MAX_OBJECTS];
  int width, height, n;
  RnRng rng;

  choose_size (folder, &width, &height);
  rn_canvas_init (&canvas, width, height);
  rn_rng_init (&rng, folder->options->seed, RN_STREAM_SYNTH, (guint32) folder->n_done, folder->folder);
  n = draw_image (folder, &rng, &canvas, objects);
  xml = format_xml (folder, id, &canvas, objects, n);
  folder->n_done++;
  return rn_image_write_jpeg (image, canvas.pixels, width, height, JPEG_QUALITY, error)
         && g_file_set_contents (annotation, xml, -1, error);
}

/* ---- Splits and folders ---- */

static gboolean
write_list (const Folder *folder, const char *split, const char *ids, GError **error)
{
  g_autofree char *path = g_strdup_printf ("%s/ImageSets/Main/%s.txt", folder->root, split);

  return g_file_set_contents (path, ids, -1, error);
}

/* Writes @n images and appends their ids to @ids. */
static gboolean
write_split (Folder *folder, int n, GString *ids, GError **error)
{
  for (int i = 0; i < n; i++)
    {
      g_autofree char *number = g_strdup_printf ("%06d", folder->n_done + 1);
      g_autofree char *id = g_strconcat (folder->id_prefix, number, NULL);

      if (!write_image (folder, id, error))
        return FALSE;
      g_string_append_printf (ids, "%s\n", id);
    }
  return TRUE;
}

static gboolean
make_folders (const char *root, GError **error)
{
  static const char *const names[] = { "Annotations", "JPEGImages", "ImageSets/Main" };

  for (gsize i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree char *path = g_build_filename (root, names[i], NULL);

      if (!rn_folder_make (path, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
write_folder (Folder *folder, gboolean has_test, GError **error)
{
  const RnSynthOptions *options = folder->options;
  g_autoptr (GString) train = g_string_new (NULL);
  g_autoptr (GString) val = g_string_new (NULL);
  g_autoptr (GString) test = g_string_new (NULL);
  g_autofree char *trainval = NULL;

  if (!make_folders (folder->root, error) || !write_split (folder, options->n_train, train, error)
      || !write_split (folder, options->n_val, val, error)
      || (has_test && !write_split (folder, options->n_test, test, error)))
    return FALSE;
  trainval = g_strconcat (train->str, val->str, NULL);
  return write_list (folder, "train", train->str, error) && write_list (folder, "val", val->str, error)
         && write_list (folder, "trainval", trainval, error)
         && (!has_test || write_list (folder, "test", test->str, error));
}

static gboolean
write_plain (const char *dir, const RnSynthOptions *options, GError **error)
{
  g_autofree char *root = g_strdup (dir);
  g_autofree char *classes = g_build_filename (dir, "classes.txt", NULL);
  g_autofree char *names = g_strjoinv ("\n", (char **) plain_classes);
  g_autofree char *text = g_strconcat (names, "\n", NULL);
  Folder folder = { options, root, "", plain_classes, 3, 0, 0 };

  return write_folder (&folder, TRUE, error) && g_file_set_contents (classes, text, -1, error);
}

static gboolean
write_voc0712 (const char *dir, const RnSynthOptions *options, GError **error)
{
  g_autofree char *root_2007 = g_build_filename (dir, "VOC2007", NULL);
  g_autofree char *root_2012 = g_build_filename (dir, "VOC2012", NULL);
  Folder y2007 = { options, root_2007, "", rn_voc_class_names, 20, 2007, 0 };
  Folder y2012 = { options, root_2012, "2008_", rn_voc_class_names, 20, 2012, 0 };

  return write_folder (&y2007, TRUE, error) && write_folder (&y2012, FALSE, error);
}

static gboolean
check_options (const char *dir, const RnSynthOptions *options, GError **error)
{
  g_autoptr (GDir) existing = NULL;

  if (MIN (options->width, options->height) < 64 || MAX (options->width, options->height) > 2048
      || options->n_train < 1 || options->n_val < 0 || options->n_test < 0
      || MAX (MAX (options->n_train, options->n_val), options->n_test) > 100000)
    {
      g_set_error_literal (
          error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE,
          "a synthetic set has sides of 64 to 2048 pixels, and up to 100000 images a split, one "
          "at least to train on");
      return FALSE;
    }
  existing = g_dir_open (dir, 0, NULL);
  if (existing != NULL && g_dir_read_name (existing) != NULL && !options->force)
    {
      g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_EXIST,
                   "%s: the folder is not empty; --force writes into it", dir);
      return FALSE;
    }
  return TRUE;
}

gboolean
rn_synth_write (const char *dir, const RnSynthOptions *options, GError **error)
{
  if (!check_options (dir, options, error))
    return FALSE;
  return options->layout == RN_SYNTH_PLAIN ? write_plain (dir, options, error)
                                           : write_voc0712 (dir, options, error);
}
