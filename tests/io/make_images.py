"""Makes tests/io/image_bytes.hpp: images that Pillow encodes, and the pixels that it decodes of the JPEG ones.

    python tests/io/make_images.py > tests/io/image_bytes.hpp"""
import io
import struct
import zlib

import PIL
from PIL import Image


def encoded(image, form, **options):
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def png(width, height, bits, colours, rows, *chunks):
    """A PNG file whose chunks are written here: `rows` are the bytes of each row, with other chunks before them."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", width, height, bits, colours, 0, 0, rows is None)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows or interlaced(width, height)))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(chunk(*each) for each in chunks) +
            chunk(b"IDAT", pixels) + chunk(b"IEND", b""))


def interlaced(width, height):
    """Rows of the passes of Adam7, of gray pixels that are counted from 0."""
    for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)):
        for y in range(y0, height, dy):
            if x0 < width:
                yield bytes(y * width + x for x in range(x0, width, dx))


def array(name, data, comment):
    print(f"/// {comment}")
    print(f"inline const Bytes {name} = bytes({{{', '.join(str(b) for b in data)}}});")


print(f"/// Image files that Pillow {PIL.__version__} has encoded, by make_images.py.")
print("#pragma once\n\n#include <io/bytes.hpp>\n\nnamespace dist_test {\n")
rgb = Image.new("RGB", (2, 3))
rgb.putdata([(255, 0, 0), (0, 255, 0), (0, 0, 255), (1, 2, 3), (250, 251, 252), (7, 7, 7)])
array("png_rgb", encoded(rgb, "PNG"), "3 x 2 pixels: red, green; blue, (1, 2, 3); (250, 251, 252), (7, 7, 7).")
gray = Image.new("L", (3, 1))
gray.putdata([0, 128, 255])
array("png_gray", encoded(gray, "PNG"), "1 x 3 pixels: 0, 128, 255.")
rgba = Image.new("RGBA", (3, 1))
rgba.putdata([(10, 20, 30, 255), (40, 50, 60, 0), (255, 255, 255, 255)])
array("png_rgba", encoded(rgba, "PNG"), "1 x 3 pixels: (10, 20, 30), opaque; (40, 50, 60), transparent; white, opaque.")
palette = rgb.convert("P", palette=Image.Palette.ADAPTIVE)
array("png_palette", encoded(palette, "PNG"), "The pixels of png_rgb, by a palette.")
array("png_16_bits", png(2, 1, 16, 2, [bytes([128, 1, 128, 255, 0, 255, 255, 255, 127, 128, 1, 0])]),
      "1 x 2 pixels of 16 bits, whose high bytes are (128, 128, 0) and (255, 127, 1).")
array("png_gamma", png(2, 1, 8, 0, [bytes([100, 200])], (b"gAMA", struct.pack(">I", 100000))),
      "1 x 2 pixels, 100 and 200, with a gamma of 1.")
array("png_transparent", png(2, 1, 8, 3, [bytes([1, 0])], (b"PLTE", bytes([10, 20, 30, 40, 50, 60])), (b"tRNS", bytes([0]))),
      "1 x 2 pixels by a palette: (40, 50, 60), opaque; (10, 20, 30), transparent.")
array("png_interlaced", png(9, 6, 8, 0, None), "6 x 9 pixels, interlaced: 0, 1, 2, ...")
photo = Image.new("RGB", (9, 8))
photo.putdata([(20 * x + 5 * y, 200 - 15 * x, 100 + 10 * y) for y in range(8) for x in range(9)])
data = encoded(photo, "JPEG", quality=90, subsampling=0)
array("jpeg_rgb", data, "8 x 9 pixels.")
array("jpeg_rgb_pixels", Image.open(io.BytesIO(data)).tobytes(), "What Pillow decodes of jpeg_rgb.")
data = encoded(photo.convert("L"), "JPEG", quality=90, progressive=True)
array("jpeg_gray", data, "8 x 9 pixels, progressive.")
array("jpeg_gray_pixels", Image.open(io.BytesIO(data)).tobytes(), "What Pillow decodes of jpeg_gray.")
array("jpeg_cmyk", encoded(Image.new("CMYK", (1, 1)), "JPEG"), "1 x 1 pixels in colours of print.")
inks = Image.new("CMYK", (16, 8), (0, 200, 100, 40))
inks.paste((255, 0, 0, 0), (8, 0, 16, 8))
array("jpeg_inks", encoded(inks, "JPEG", quality=95, subsampling=0), "8 x 16 pixels in colours of print, two halves.")
print("\n}  // namespace dist_test")
