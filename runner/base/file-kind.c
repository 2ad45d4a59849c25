#include "config.h"

#include "runner/base/file-kind.h"

#include <string.h>

typedef struct
{
  gsize at, n;
  const char *magic;
  RnFileKind kind;
  const char *what;
} Format;

#define MAGIC(at, bytes) (at), sizeof (bytes) - 1, (bytes)

/* Some begin with letters: looked for only in files that are no text. */
static const Format binary_formats[] = {
  { MAGIC (0, "\xff\xd8\xff"), RN_FILE_IMAGE, "a JPEG image" },
  { MAGIC (0, "\x89PNG\r\n\x1a\n"), RN_FILE_IMAGE, "a PNG image" },
  { MAGIC (0, "GIF8"), RN_FILE_IMAGE, "a GIF image" },
  { MAGIC (8, "WEBP"), RN_FILE_IMAGE, "a WebP image" },
  { MAGIC (0, "BM"), RN_FILE_IMAGE, "a BMP image" },
  { MAGIC (0, "II*\0"), RN_FILE_IMAGE, "a TIFF image, or a camera's raw image" },
  { MAGIC (0, "MM\0*"), RN_FILE_IMAGE, "a TIFF image, or a camera's raw image" },
  { MAGIC (4, "ftypavif"), RN_FILE_IMAGE, "an AVIF image" },
  { MAGIC (4, "ftyphei"), RN_FILE_IMAGE, "a HEIC image" },
  { MAGIC (4, "ftypmif1"), RN_FILE_IMAGE, "a HEIC image" },
  { MAGIC (4, "jP  "), RN_FILE_IMAGE, "a JPEG 2000 image" },
  { MAGIC (0, "\xff\x4f\xff\x51"), RN_FILE_IMAGE, "a JPEG 2000 image" },
  { MAGIC (4, "JXL "), RN_FILE_IMAGE, "a JPEG XL image" },
  { MAGIC (0, "\xff\x0a"), RN_FILE_IMAGE, "a JPEG XL image" },
  { MAGIC (0, "8BPS"), RN_FILE_IMAGE, "a Photoshop image" },
  { MAGIC (4, "ftyp"), RN_FILE_OTHER, "a film" },
  { MAGIC (0, "RIFF"), RN_FILE_OTHER, "a RIFF file: sound or a film" },
  { MAGIC (0, "%PDF"), RN_FILE_OTHER, "a PDF document" },
  { MAGIC (0, "PK\3\4"), RN_FILE_OTHER, "a zip archive, such as a PyTorch checkpoint" },
  { MAGIC (0, "\x80\2"), RN_FILE_OTHER, "a Python pickle, such as an old PyTorch checkpoint" },
  { MAGIC (0, "\x80\3"), RN_FILE_OTHER, "a Python pickle" },
  { MAGIC (0, "\x80\4"), RN_FILE_OTHER, "a Python pickle" },
  { MAGIC (0, "\x80\5"), RN_FILE_OTHER, "a Python pickle" },
  { MAGIC (0, "\x1f\x8b"), RN_FILE_OTHER, "a gzip archive; unpack it first" },
  { MAGIC (0, "BZh"), RN_FILE_OTHER, "a bzip2 archive; unpack it first" },
  { MAGIC (0, "\xfd\x37zXZ"), RN_FILE_OTHER, "an xz archive; unpack it first" },
  { MAGIC (0, "7z\xbc\xaf"), RN_FILE_OTHER, "a 7-Zip archive; unpack it first" },
  { MAGIC (0, "\x28\xb5\x2f\xfd"), RN_FILE_OTHER, "a zstd archive; unpack it first" },
  { MAGIC (257, "ustar"), RN_FILE_OTHER, "a tar archive: of PyTorch before 0.1.10, or something else" },
  { MAGIC (0, "\x89HDF"), RN_FILE_OTHER, "an HDF5 file (Keras?)" },
  { MAGIC (0, "\x93NUMPY"), RN_FILE_OTHER, "a NumPy array" },
  { MAGIC (0, "\x7f\x45LF"), RN_FILE_OTHER, "a program" },
  { MAGIC (0, "\xff\xfe"), RN_FILE_OTHER, "text in UTF-16; save it as UTF-8" },
  { MAGIC (0, "\xfe\xff"), RN_FILE_OTHER, "text in UTF-16; save it as UTF-8" },
};

/* Texts, with beginnings that neither YAML nor a list has. */
static const Format text_formats[] = {
  { MAGIC (0, "%PDF"), RN_FILE_OTHER, "a PDF document" },
  { MAGIC (0, "version https://git-lfs"), RN_FILE_OTHER,
    "a Git LFS pointer; fetch the file itself with `git lfs pull`" },
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

static const Format *
find_format (const Format *list, gsize length, const guint8 *head, gsize n)
{
  for (const Format *f = list; f < list + length; f++)
    if (n >= f->at + f->n && memcmp (head + f->at, f->magic, f->n) == 0)
      return f;
  return NULL;
}

/* The header's size, 64-bit little-endian and below 2^32, and the brace of its JSON. */
static gboolean
is_safetensors (const guint8 *head, gsize n)
{
  return n > 8 && head[4] == 0 && head[5] == 0 && head[6] == 0 && head[7] == 0 && head[8] == '{';
}

static RnFileKind
kind_of_text (const guint8 *head, gsize n, const char **what)
{
  g_autofree char *text = g_ascii_strdown ((const char *) head, (gssize) n);
  const char *start = g_strchug (text);

  if (g_str_has_prefix (start, "<!doctype html") || g_str_has_prefix (start, "<html"))
    *what = "a web page: a download that went wrong?";
  else if (g_str_has_prefix (start, "<?xml") || g_str_has_prefix (start, "<annotation"))
    *what = "an XML file, such as an annotation";
  else
    {
      *what = "text";
      return RN_FILE_TEXT;
    }
  return RN_FILE_OTHER;
}

RnFileKind
rn_file_kind (const guint8 *head, gsize n, const char **what)
{
  *what = NULL;
  if (n == 0)
    {
      *what = "empty";
      return RN_FILE_EMPTY;
    }
  n = MIN (n, RN_FILE_KIND_BYTES);
  gboolean text = is_text (head, n);
  const Format *format = text ? find_format (text_formats, G_N_ELEMENTS (text_formats), head, n)
                              : find_format (binary_formats, G_N_ELEMENTS (binary_formats), head, n);
  if (format != NULL)
    {
      *what = format->what;
      return format->kind;
    }
  if (text)
    return kind_of_text (head, n, what);
  if (!is_safetensors (head, n))
    return RN_FILE_UNKNOWN;
  *what = "a safetensors checkpoint";
  return RN_FILE_OTHER;
}
