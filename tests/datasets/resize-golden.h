/* Written by make-fixtures.py: FNV-1a of what cv2.resize makes of the hash image. */
static const struct
{
  int from_width, from_height, to_width, to_height;
  guint64 hash;
} resize_golden[] = {
  { 500, 375, 800, 600, G_GUINT64_CONSTANT (0xfeb2fbda7e7c35e4) },
  { 64, 48, 32, 24, G_GUINT64_CONSTANT (0x62d5de9c21e2a997) },
  { 64, 48, 32, 48, G_GUINT64_CONSTANT (0xb3e56819f7e214cb) },
  { 63, 47, 126, 94, G_GUINT64_CONSTANT (0x32802bce9c870508) },
  { 90, 60, 30, 20, G_GUINT64_CONSTANT (0xbf285ea64733b2ee) },
  { 1, 1, 7, 5, G_GUINT64_CONSTANT (0xb6bf70b48217f344) },
  { 5, 1, 3, 9, G_GUINT64_CONSTANT (0xd141c707f32587b6) },
  { 40, 30, 40, 30, G_GUINT64_CONSTANT (0x1def124875f52e79) },
  { 100, 50, 10, 5, G_GUINT64_CONSTANT (0xbd81daf970015d65) },
  { 33, 77, 91, 13, G_GUINT64_CONSTANT (0xd49112cc884af993) },
  { 2, 2, 1, 1, G_GUINT64_CONSTANT (0x4a296f19ce528524) },
  { 160, 128, 96, 77, G_GUINT64_CONSTANT (0x7c5b2df909f491ce) },
};
