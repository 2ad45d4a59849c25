/* resize.h: bilinear resizing of 8-bit RGB images with the bits of OpenCV. */
#ifndef RUNNER_DATASETS_RESIZE_H
#define RUNNER_DATASETS_RESIZE_H

#include <glib.h>

G_BEGIN_DECLS

/*
 * Resizes @src [src_height, src_width, 3] into @dst [dst_height, dst_width, 3]; sizes are at least 1. Every
 * bit is that of cv2.resize with INTER_LINEAR on x86 (no antialiasing, replicated border).
 */
void rn_resize_bilinear (const guint8 *src, int src_width, int src_height, guint8 *dst, int dst_width,
                         int dst_height);

G_END_DECLS

#endif
