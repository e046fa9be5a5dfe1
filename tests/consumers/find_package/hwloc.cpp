#include <hwloc.h>
#include <dist/device/hwloc.hpp>

int main() {
  return hwloc_get_api_version() >> 16 == HWLOC_API_VERSION >> 16 && dist::hwloc_devices(1).size() == 1 ? 0 : 1;
}
