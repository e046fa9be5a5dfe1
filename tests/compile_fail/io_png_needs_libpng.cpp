// expect: <png.h> of libpng was not found: install libpng-dev, and link dist::png (without CMake: -lpng)
// flags: -nostdinc
#include <dist/io/png.hpp>

int main() {}
