// expect: <turbojpeg.h> of libjpeg-turbo was not found: install libturbojpeg0-dev, and link dist::jpeg (without CMake: -lturbojpeg)
// flags: -nostdinc
#include <dist/io/jpeg.hpp>

int main() {}
