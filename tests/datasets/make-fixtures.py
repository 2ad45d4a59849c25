"""Writes the decoder fixtures (fixtures/NAME.jpg|png with NAME.rgb, what OpenCV decodes) and resize-golden.h.

Needs numpy, opencv-python-headless (goldens: 4.14; 5.0 gives the same) and pillow. Run it in this folder.
"""
import io
import struct
import zlib
import cv2
import numpy as np
from PIL import Image

HEIGHT, WIDTH = 19, 26


def picture():
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    rgb = np.stack([x * 9, y * 13, 255 - (x + y) * 5], -1).astype(np.uint8)
    rgb[4:12, 5:14] = (230, 40, 60)
    return Image.fromarray(rgb)


def with_exif(jpeg, orientation, order):
    e = ">" if order == b"MM" else "<"
    tiff = order + struct.pack(e + "HIH", 42, 8, 2)
    tiff += struct.pack(e + "HHII", 0x0100, 4, 1, WIDTH)
    tiff += struct.pack(e + "HHIHH", 0x0112, 3, 1, orientation, 0) + struct.pack(e + "I", 0)
    body = b"Exif\0\0" + tiff
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + jpeg[2:]


def encode(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def files():
    rgb = picture()
    plain = encode(rgb, "JPEG", quality=85)
    yield "baseline.jpg", plain
    yield "progressive.jpg", encode(rgb, "JPEG", quality=85, progressive=True)
    yield "grey.jpg", encode(rgb.convert("L"), "JPEG", quality=85)
    yield "cmyk.jpg", encode(rgb.convert("CMYK"), "JPEG", quality=90)
    for i in range(1, 9):
        yield f"orientation-{i}.jpg", with_exif(plain, i, b"MM" if i % 2 else b"II")
    yield "rgb.png", encode(rgb, "PNG")
    yield "palette.png", encode(rgb.quantize(16), "PNG")
    yield "grey-1.png", encode(rgb.convert("1"), "PNG")
    alpha = rgb.convert("RGBA")
    alpha.putalpha(Image.fromarray(np.tile(np.arange(WIDTH, dtype=np.uint8) * 9, (HEIGHT, 1))))
    yield "alpha.png", encode(alpha, "PNG")
    wide = np.asarray(rgb)[..., ::-1].astype(np.uint16) * 257 + 100
    yield "rgb-16.png", cv2.imencode(".png", wide)[1].tobytes()


def chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(depth, color, rows, before=b""):
    """@rows: bytes of each row; @before: chunks in front of the pixels."""
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, depth, color, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + before + chunk(b"IDAT", body) + chunk(b"IEND", b""))


def pack(values, bits):
    """Samples of a row into bytes, the first in the high bits."""
    per_byte = 8 // bits
    values = list(values) + [0] * (-len(values) % per_byte)
    return bytes(sum(int(v) << (8 - bits * (k + 1)) for k, v in enumerate(values[i:i + per_byte]))
                 for i in range(0, len(values), per_byte))


def by_hand():
    """PNG kinds and chunks that neither library writes."""
    rgb = np.asarray(picture())
    grey = np.asarray(picture().convert("L"))
    for bits in 2, 4:
        yield f"grey-{bits}.png", png(bits, 0, [pack(row >> (8 - bits), bits) for row in grey])
    yield "grey-16.png", png(16, 0, [np.stack([row, 255 - row], -1).tobytes() for row in grey])
    plain = [row.tobytes() for row in rgb]
    key = struct.pack(">HHH", *[int(v) for v in rgb[5, 6]])
    yield "key.png", png(8, 2, plain, chunk(b"tRNS", key))
    palette = bytes(range(48))
    yield "palette-2.png", png(2, 3, [pack(row >> 6, 2) for row in grey],
                               chunk(b"PLTE", palette[:12]) + chunk(b"tRNS", b"\0\x80"))
    yield "palette-short.png", png(4, 3, [pack(row >> 4, 4) for row in grey], chunk(b"PLTE", palette[:12]))
    yield "gamma.png", png(8, 2, plain, chunk(b"gAMA", struct.pack(">I", 100000)) + chunk(b"sRGB", b"\0"))
    yield "text-bomb.png", png(8, 2, plain, chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(40 << 20), 9)))


def interlaced():
    """Adam7 by hand: neither library writes it. Greyscale, filter 0."""
    grey = np.asarray(picture().convert("L"))
    raw = b""
    steps = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    for y0, x0, dy, dx in steps:
        for row in grey[y0::dy, x0::dx]:
            raw += b"\0" + row.tobytes()
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 0, 0, 0, 1)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def hash_image(width, height):
    """The input of both sides: byte i is the top byte of a Weyl sequence's hash."""
    i = np.arange(width * height * 3, dtype=np.uint32)
    h = (i + np.uint32(1)) * np.uint32(2654435761)
    h ^= h >> np.uint32(15)
    h *= np.uint32(2246822519)
    return (h >> np.uint32(24)).astype(np.uint8).reshape(height, width, 3)


def fnv(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


def resize_golden():
    sizes = [(500, 375, 800, 600), (64, 48, 32, 24), (64, 48, 32, 48), (63, 47, 126, 94), (90, 60, 30, 20),
             (1, 1, 7, 5), (5, 1, 3, 9), (40, 30, 40, 30), (100, 50, 10, 5), (33, 77, 91, 13), (2, 2, 1, 1),
             (160, 128, 96, 77)]
    rows = []
    for sw, sh, dw, dh in sizes:
        out = cv2.resize(hash_image(sw, sh), (dw, dh))
        rows.append(f"  {{ {sw}, {sh}, {dw}, {dh}, G_GUINT64_CONSTANT (0x{fnv(out.tobytes()):016x}) }},\n")
    head = ("/* Written by make-fixtures.py: FNV-1a of what cv2.resize makes of the hash image. */\n"
            "static const struct\n{\n  int from_width, from_height, to_width, to_height;\n"
            "  guint64 hash;\n} resize_golden[] = {\n")
    return head + "".join(rows) + "};\n"


def main():
    everything = list(files()) + [("interlaced.png", interlaced())] + list(by_hand())
    for name, data in everything:
        bgr = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
        open("fixtures/" + name, "wb").write(data)
        open("fixtures/" + name[:-4] + ".rgb", "wb").write(bgr[..., ::-1].tobytes())
        print(name, bgr.shape)
    open("resize-golden.h", "w").write(resize_golden())


main()
