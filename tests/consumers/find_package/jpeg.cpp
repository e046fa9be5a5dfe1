#include <turbojpeg.h>
#include <dist/io/jpeg.hpp>

int main() {
  const tjhandle decoder = tjInitDecompress();
  return decoder != nullptr && tjDestroy(decoder) == 0 ? 0 : 1;
}
