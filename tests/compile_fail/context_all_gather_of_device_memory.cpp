// expect: this is memory of a device, which the host cannot touch: give the work to replica.for_each
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
  strategy.run([&](auto& replica) { static_cast<void>(replica.all_gather(view, 0)); });
}
