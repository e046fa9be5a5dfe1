// expect: <zlib.h> of zlib was not found: install zlib1g-dev, and link dist::gzip
// flags: -nostdinc
#include <dist/io/gzip.hpp>

int main() {}
