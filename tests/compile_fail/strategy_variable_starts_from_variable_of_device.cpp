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
  dist::Default strategy;
  auto first = strategy.variable<float, dist::OnWrite, dist::Mean>({1});
  strategy.run([&](auto& replica) {
    const dist::TensorView<const float, Elsewhere> view{first.read(replica).data(), dist::Shape{1}};
    static_cast<void>(strategy.variable<float, dist::OnWrite, dist::Mean>(replica, {1}, view, "second"));
  });
}
