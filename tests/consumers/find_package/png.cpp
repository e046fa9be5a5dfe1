#include <png.h>
#include <dist/io/png.hpp>

int main() { return png_access_version_number() == PNG_LIBPNG_VER ? 0 : 1; }
