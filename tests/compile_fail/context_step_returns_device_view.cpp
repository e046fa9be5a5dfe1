// expect: a replica function returns a view, whose elements may not outlive the function
#include <dist/dist.hpp>

struct Elsewhere {
  static constexpr bool host_accessible = false;
};

int main() {
  dist::Default strategy;
  float number = 1;
  const dist::TensorView<float, Elsewhere> view{&number, dist::Shape{1}};
  static_cast<void>(strategy.run([&](auto&) {
#ifdef CONTROL
    return dist::lasting(view);
#else
    return view;
#endif
  }));
}
