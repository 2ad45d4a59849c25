/* canvas.h: draws textured shapes on a noisy background, for the synthetic data set. */
#ifndef RUNNER_DATASETS_CANVAS_H
#define RUNNER_DATASETS_CANVAS_H

#include <glib.h>
#include "runner/base/rng.h"

G_BEGIN_DECLS

typedef enum
{
  RN_FORM_CIRCLE,
  RN_FORM_SQUARE,
  RN_FORM_TRIANGLE,
  RN_FORM_STAR,
  RN_FORM_RING,
  RN_N_FORMS,
} RnForm;

typedef enum
{
  RN_TEXTURE_PLAIN,
  RN_TEXTURE_STRIPES,
  RN_TEXTURE_CHECKS,
  RN_TEXTURE_DOTS,
  RN_N_TEXTURES,
} RnTexture;

typedef struct
{
  RnForm form;
  RnTexture texture;
  double x, y, radius; /* centre and half the side of the square around the upright form, in pixels */
  double angle;        /* radians */
  guint8 colors[2][3]; /* RGB of the form and of its texture */
} RnShape;

typedef struct
{
  int width, height;
  guint8 *pixels; /* [height, width, 3] RGB */
  gint8 *owners;  /* [height, width]: the topmost shape of each pixel, -1: background */
} RnCanvas;

/* Room for @width x @height pixels. */
void rn_canvas_init (RnCanvas *canvas, int width, int height);
void rn_canvas_clear (RnCanvas *canvas);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (RnCanvas, rn_canvas_clear)

/* Fills @canvas with a gradient between two muted colours; gives its mean brightness, 0 to 255. */
double rn_canvas_fill_background (RnCanvas *canvas, RnRng *rng);
/*
 * Draws @shape over what is there, as owner @id. @box receives the pixels that it covers, hidden later or
 * not: x1 y1 x2 y2 with x2 and y2 exclusive. Gives their number; 0 leaves @box alone.
 */
int rn_canvas_draw (RnCanvas *canvas, const RnShape *shape, int id, int box[4]);
/* Pixels on which shape @id is topmost. */
int rn_canvas_count (const RnCanvas *canvas, int id);
/* Adds sensor noise of up to 8 steps in either direction. */
void rn_canvas_add_noise (RnCanvas *canvas, RnRng *rng);

G_END_DECLS

#endif
