// expect: <pjrt_c_api.h> of PJRT was not found: install PyPI's xla-cpu-pjrt, and link dist::pjrt
// flags: -nostdinc
#include <dist/device/pjrt/api.hpp>

int main() {}
