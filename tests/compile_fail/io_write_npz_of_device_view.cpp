// expect: this is memory of a device, which the host cannot touch: give the work to replica.for_each
// only error
#include <dist/io/npz_writer.hpp>

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
  dist::io::NpzWriter file{"x.npz"};
  file.add("x", view);
}
