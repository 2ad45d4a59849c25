/* surface.h: what drawing of any kind needs around cairo: text that may be anything, and the PNG file. */
#ifndef RUNNER_DRAW_SURFACE_H
#define RUNNER_DRAW_SURFACE_H

#include <cairo.h>
#include <glib.h>

G_BEGIN_DECLS

G_DEFINE_AUTOPTR_CLEANUP_FUNC (cairo_t, cairo_destroy)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (cairo_surface_t, cairo_surface_destroy)

/* One line of valid UTF-8: control characters become spaces; cut after 1000 characters. (transfer full) */
char *rn_text_clean (const char *text);
double rn_text_width (cairo_t *cr, const char *text);
/* @text, cut until it is no wider than @room, with an ellipsis at the end; "" if nothing fits.
 * (transfer full) */
char *rn_text_fit (cairo_t *cr, const char *text, double room);

void rn_set_grey (cairo_t *cr, double grey); /* 0 black, 1 white */
/* @anchor: 0 the text begins at @x, 0.5 it is centred, 1 it ends there. */
void rn_draw_text (cairo_t *cr, double x, double y, double anchor, const char *text);
void rn_draw_line (cairo_t *cr, double x1, double y1, double x2, double y2);

/* Through a temporary file, so never half a picture. G_FILE_ERROR with the path, also when drawing failed. */
gboolean rn_surface_write_png (cairo_t *cr, const char *path, GError **error);

G_END_DECLS

#endif
