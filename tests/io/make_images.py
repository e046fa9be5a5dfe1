"""Makes tests/io/image_bytes.hpp: images that Pillow encodes, and the pixels that it decodes of the JPEG ones.

    python tests/io/make_images.py > tests/io/image_bytes.hpp"""
import io
import PIL
from PIL import Image


def encoded(image, form, **options):
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


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
photo = Image.new("RGB", (9, 8))
photo.putdata([(20 * x + 5 * y, 200 - 15 * x, 100 + 10 * y) for y in range(8) for x in range(9)])
data = encoded(photo, "JPEG", quality=90, subsampling=0)
array("jpeg_rgb", data, "8 x 9 pixels.")
array("jpeg_rgb_pixels", Image.open(io.BytesIO(data)).tobytes(), "What Pillow decodes of jpeg_rgb.")
data = encoded(photo.convert("L"), "JPEG", quality=90, progressive=True)
array("jpeg_gray", data, "8 x 9 pixels, progressive.")
array("jpeg_gray_pixels", Image.open(io.BytesIO(data)).tobytes(), "What Pillow decodes of jpeg_gray.")
array("jpeg_cmyk", encoded(Image.new("CMYK", (1, 1)), "JPEG"), "1 x 1 pixels in colours of print.")
print("\n}  // namespace dist_test")
