/* crc32c.h: the Castagnoli checksum (RFC 3720, appendix B.4), which tells a damaged checkpoint from a whole
 * one. */
#ifndef RUNNER_CRC32C_H
#define RUNNER_CRC32C_H

#include <glib.h>

G_BEGIN_DECLS

/* Checksum of what @crc stands for, followed by @data; begin with 0. */
guint32 rn_crc32c (guint32 crc, gconstpointer data, gsize size);

G_END_DECLS

#endif
