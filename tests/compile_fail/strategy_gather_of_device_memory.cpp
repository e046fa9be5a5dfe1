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
  dist::Mirrored<dist::ThreadAllReduce> strategy{1};
  static_cast<void>(
      strategy.gather(dist::PerReplica<dist::TensorView<float, Elsewhere>>(1, [&](std::size_t) { return view; }), 0));
}
