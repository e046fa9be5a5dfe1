// expect: this StaticShape has no such axis
#include <dist/core/static_shape.hpp>

int main() {
  using Image = dist::StaticShape<28, 28, 1>;
#ifdef CONTROL
  return Image::extent<2> == 1 ? 0 : 1;
#else
  return Image::extent<3> == 1 ? 0 : 1;
#endif
}
