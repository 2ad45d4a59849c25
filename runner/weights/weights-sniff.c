/* Names for the files that people point at by mistake. */
#include "config.h"

#include "runner/weights/weights-private.h"

#include <string.h>

static const struct
{
  gsize offset;
  const char *bytes;
  gsize n;
  const char *what;
} kinds[] = {
  { 0, "\xff\xd8\xff", 3, "a JPEG image" },
  { 0, "\x89PNG", 4, "a PNG image" },
  { 0, "GIF8", 4, "a GIF image" },
  { 0, "RIFF", 4, "a WebP image or other RIFF file" },
  { 0, "%PDF", 4, "a PDF document" },
  { 0, "\x1f\x8b", 2, "a gzip archive; unpack it first" },
  { 0, "BZh", 3, "a bzip2 archive; unpack it first" },
  { 0,
    "\xfd"
    "7zXZ",
    5, "an xz archive; unpack it first" },
  { 0, "7z\xbc\xaf", 4, "a 7-Zip archive; unpack it first" },
  { 0, "\x28\xb5\x2f\xfd", 4, "a zstd archive; unpack it first" },
  { 0, "\x89HDF", 4, "an HDF5 file (Keras?)" },
  { 0, "\x93NUMPY", 6, "a NumPy array" },
  { 0,
    "\x7f"
    "ELF",
    4, "a program" },
  { 0, "version https://git-lfs", 23, "a Git LFS pointer; fetch the file itself with `git lfs pull`" },
  { 257, "ustar", 5,
    "a tar archive: PyTorch's format before 0.1.10 or something else; load and save it with PyTorch" },
};

static gboolean
is_text (const guint8 *head, gsize n)
{
  const char *end;

  for (gsize i = 0; i < n; i++)
    if (head[i] == 0 || (head[i] < 32 && strchr ("\t\n\r\f", head[i]) == NULL))
      return FALSE;
  if (g_utf8_validate ((const char *) head, (gssize) n, &end))
    return TRUE;
  gssize rest = (gssize) n - (end - (const char *) head);
  return g_utf8_get_char_validated (end, rest) == (gunichar) -2; /* the last character is cut */
}

const char *
rn_weights_sniff (const guint8 *head, gsize n)
{
  if (n == 0)
    return "empty";
  for (gsize i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (n >= kinds[i].offset + kinds[i].n && memcmp (head + kinds[i].offset, kinds[i].bytes, kinds[i].n) == 0)
      return kinds[i].what;
  if (n >= 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5)
    return "a Python pickle that torch.save did not write";
  if (!is_text (head, n))
    return NULL;

  g_autofree char *text = g_ascii_strdown ((const char *) head, (gssize) n);
  const char *start = g_strchug (text);
  if (g_str_has_prefix (start, "<!doctype html") || g_str_has_prefix (start, "<html"))
    return "a web page: a download that went wrong?";
  return g_str_has_prefix (start, "<?xml") || g_str_has_prefix (start, "<annotation") ? "an XML file"
                                                                                      : "text";
}
