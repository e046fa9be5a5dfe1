// expect: reduce returns a new plain struct, whose members must own their values: give it a Tensor instead of a TensorView
#include <dist/strategy/default.hpp>

#ifdef CONTROL
struct Sums {
  dist::Tensor<float> values;
};
#else
struct Sums {
  dist::TensorView<const float> values;
};
#endif

int main() {
  dist::Default strategy;
  const dist::PerReplica<Sums> sums(2);
  static_cast<void>(strategy.reduce(dist::sum, sums));
}
