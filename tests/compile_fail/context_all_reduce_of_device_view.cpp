// expect: all_reduce changes memory of a device in place: give a span of elements that may change
#include <dist/dist.hpp>

struct Elsewhere {
#ifdef CONTROL
  static constexpr bool host_accessible = true;
#else
  static constexpr bool host_accessible = false;
#endif
};

int main() {
  float number = 1;
  const dist::TensorView<float, Elsewhere> view{&number, dist::Shape{1}};
  dist::Default strategy;
  strategy.run([&](auto& replica) { replica.all_reduce(dist::sum, view); });
}
