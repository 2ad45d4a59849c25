/* drawn.h: a picture that a function of the program writes, read again. */
#ifndef TESTS_DRAW_DRAWN_H
#define TESTS_DRAW_DRAWN_H

#include <cairo.h>
#include <glib.h>

/* @write: writes a PNG to @path. A failure ends the test. (transfer full) */
cairo_surface_t *drawn (gboolean (*write) (const char *path, GError **error));

#endif
