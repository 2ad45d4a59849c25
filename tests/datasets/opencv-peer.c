/*
 * opencv-peer: our half of compare-opencv.py.
 *
 *   opencv-peer decode FILE                  raw RGB to standard output
 *   opencv-peer resize FILE WIDTH HEIGHT     the same, resized
 *   opencv-peer bench DIR SECONDS            loads the VOC folder DIR again and again, in this thread; prints
 *                                            images a second
 */
#include "config.h"

#include "datasets/image.h"
#include "datasets/resize.h"
#include "tests/datasets/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The training pipeline of the VOC configurations at 500 x 375 to 800 x 600. */
static const char bench_set[] =
    "{type: VOCDataset, ann_file: Annotations, img_prefix: ., classes: [a], pipeline: [{type: "
    "LoadImageFromFile}, {type: LoadAnnotations}, {type: Resize, img_scale: [1000, 600]}, {type: RandomFlip, "
    "flip_ratio: 0.5}, {type: Normalize, mean: [123.675, 116.28, 103.53], std: [58.395, 57.12, 57.375]}, "
    "{type: Pad, size_divisor: 32}, {type: DefaultFormatBundle}, {type: Collect, keys: [img, gt_bboxes, "
    "gt_labels]}]}";

/* Does not return if there was an error. */
static void
check (GError *error)
{
  if (error == NULL)
    return;
  fprintf (stderr, "opencv-peer: %s\n", error->message);
  exit (1);
}

static void
write_pixels (const char *path, int to_width, int to_height)
{
  g_autofree guint8 *pixels = NULL;
  g_autofree guint8 *resized = NULL;
  GError *error = NULL;
  int width, height;

  rn_image_probe_path (path, &width, &height, &error);
  check (error);
  pixels = g_malloc ((gsize) width * height * 3);
  rn_image_decode_path (path, pixels, width, height, &error);
  check (error);
  if (to_width > 0 && to_height > 0)
    {
      resized = g_malloc ((gsize) to_width * to_height * 3);
      rn_resize_bilinear (pixels, width, height, resized, to_width, to_height);
      fwrite (resized, 3, (gsize) to_width * to_height, stdout);
    }
  else
    fwrite (pixels, 3, (gsize) width * height, stdout);
}

static void
bench (const char *dir, double seconds)
{
  GError *error = NULL;
  RnDatasetOptions options = { .n_threads = 1 };
  RnLoaderOptions loading = { .n_workers = 0, .seed = 1 };
  g_autoptr (RnDataset) dataset = test_dataset (dir, bench_set, &options, &error);
  g_autoptr (RnSampler) sampler = NULL;
  g_autoptr (RnLoader) loader = NULL;
  int64_t n = 0;
  gint64 start = 0, now = 0;

  check (error);
  sampler = rn_sampler_new (RN_SAMPLER_SEQUENTIAL, dataset, 1, 1);
  loader = rn_loader_new (dataset, sampler, &loading, &error);
  check (error);
  for (guint64 epoch = 0; epoch <= 1 || (double) (now - start) < seconds * 1e6; epoch++)
    {
      const RnBatch *batch;

      if (epoch == 1) /* files and memory are warm now */
        start = g_get_monotonic_time (), n = 0;
      rn_loader_start (loader, epoch, 0);
      while ((batch = rn_loader_next (loader, &error)) != NULL)
        {
          n += batch->n;
          rn_loader_release (loader, batch);
        }
      check (error);
      now = g_get_monotonic_time ();
    }
  printf ("%.2f\n", (double) n * 1e6 / (double) (now - start));
}

int
main (int argc, char **argv)
{
  if (argc == 3 && strcmp (argv[1], "decode") == 0)
    write_pixels (argv[2], 0, 0);
  else if (argc == 5 && strcmp (argv[1], "resize") == 0)
    write_pixels (argv[2], atoi (argv[3]), atoi (argv[4]));
  else if (argc == 4 && strcmp (argv[1], "bench") == 0)
    bench (argv[2], atof (argv[3]));
  else
    {
      fprintf (stderr, "usage: opencv-peer decode FILE | resize FILE WIDTH HEIGHT | bench DIR SECONDS\n");
      return 2;
    }
  return 0;
}
