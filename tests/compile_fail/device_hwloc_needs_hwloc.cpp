// expect: <hwloc.h> of hwloc was not found: install libhwloc-dev, and link dist::hwloc
// flags: -nostdinc
#include <dist/device/hwloc.hpp>

int main() {}
