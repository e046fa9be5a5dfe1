// expect: this is memory of a device, which the host cannot touch: give the work to replica.for_each
// only error
#include <dist/dist.hpp>

#ifdef CONTROL
using Elsewhere = dist::HostMemory;
#else
struct Elsewhere {
  static constexpr bool host_accessible = false;
};
#endif

int main() {
  float number = 1;
  const dist::TensorView<float, Elsewhere> view{&number, dist::Shape{1}};
  dist::Mirrored<dist::ThreadAllReduce> strategy{1};
  const auto views = dist::PerReplica<dist::TensorView<float, Elsewhere>>::of(view);
  static_cast<void>(strategy.reduce(dist::sum, std::tuple{views, 1.F}));
}
