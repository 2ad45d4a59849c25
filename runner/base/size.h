/* size.h: byte sizes as people write them. */
#ifndef RUNNER_BASE_SIZE_H
#define RUNNER_BASE_SIZE_H

#include <glib.h>

G_BEGIN_DECLS

/**
 * rn_size_parse:
 * @text: a number without sign and a unit: "4096", "700MiB", "1.5 GiB", "2GB"
 * @bytes: (out): rounded down to whole bytes
 *
 * Units: none or B; KiB MiB GiB TiB (powers of 1024; also K M G T); kB KB MB GB TB (powers of 1000).
 *
 * Returns: FALSE with RN_CONFIG_ERROR_VALUE when it is no size or 2^63 bytes or more
 */
gboolean rn_size_parse (const char *text, guint64 *bytes, GError **error);
/* "812 B", "693.4 MiB": one decimal, powers of 1024. (transfer full) */
char *rn_size_format (guint64 bytes);

G_END_DECLS

#endif
