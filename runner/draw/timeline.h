/* timeline.h: memory over the ops of a program as a PNG file: stacked areas, with what is largest at the
 * peak. */
#ifndef RUNNER_DRAW_TIMELINE_H
#define RUNNER_DRAW_TIMELINE_H

#include <glib.h>

G_BEGIN_DECLS

#define RN_TIMELINE_MAX_ENTRIES 22

typedef struct
{
  double size;
  const char *name;
} RnTimelineEntry;

/* Everything is lent. Sizes are MiB. */
typedef struct
{
  const char *title, *subtitle;
  guint n; /* ops, at least 1 */
  guint n_kinds;
  const char *const *kinds; /* [kinds], the lowest first */
  const double *sizes;      /* [kinds][ops] */
  guint n_phases;
  const char *const *phases; /* [phases] */
  const int *phase_of;       /* [ops] */
  guint turn;                /* the first op of the backward program; n: there is none */
  double reserved, needed;   /* lines: what is taken in all, and what no placement could do without */
  guint peak;                /* the op */
  const char *peak_title;
  const RnTimelineEntry *largest; /* what is alive there, beside the plot */
  guint n_largest;                /* at most RN_TIMELINE_MAX_ENTRIES */
} RnTimeline;

/* Through a temporary file. G_FILE_ERROR with the path. */
gboolean rn_timeline_write_png (const RnTimeline *timeline, const char *path, GError **error);
/* Where op @op at @size MiB lies in the picture, in pixels: the middle of the op. For tests. */
void rn_timeline_place (const RnTimeline *timeline, guint op, double size, double *x, double *y);
/* Colour of a kind or of a phase, each component 0 to 1. */
void rn_timeline_kind_color (guint kind, double rgb[3]);
void rn_timeline_phase_color (guint phase, double rgb[3]);

G_END_DECLS

#endif
