#include "config.h"

#include "tests/draw/drawn.h"

#include <glib/gstdio.h>

cairo_surface_t *
drawn (gboolean (*write) (const char *path, GError **error))
{
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("runner-drawn-XXXXXX", &error);
  g_assert_no_error (error);
  g_autofree char *path = g_build_filename (dir, "picture.png", NULL);

  gboolean is_ok = write (path, &error);
  g_assert_no_error (error);
  g_assert_true (is_ok);
  cairo_surface_t *surface = cairo_image_surface_create_from_png (path);
  g_assert_cmpint (cairo_surface_status (surface), ==, CAIRO_STATUS_SUCCESS);
  g_assert_cmpint (g_remove (path), ==, 0);
  g_assert_cmpint (g_rmdir (dir), ==, 0);
  return surface;
}
