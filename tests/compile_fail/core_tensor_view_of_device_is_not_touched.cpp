// expect: this is memory of a device, which the host cannot touch: give the work to replica.for_each
#include <dist/core/tensor.hpp>

struct Elsewhere {
#ifdef CONTROL
  static constexpr bool host_accessible = true;
#else
  static constexpr bool host_accessible = false;
#endif
};

int main() {
  int number = 0;
  const dist::TensorView<int, Elsewhere> view{&number, dist::Shape{1, 1}};
  return view(0, 0);
}
