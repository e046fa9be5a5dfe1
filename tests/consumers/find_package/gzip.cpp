#include <zlib.h>
#include <dist/io/gzip.hpp>

int main() { return zlibVersion()[0] == ZLIB_VERSION[0] ? 0 : 1; }
