// expect: hlo::slice cannot cut an axis that is hlo::batch
#include <dist/hlo/function.hpp>
#include <dist/hlo/operations.hpp>

namespace hlo = dist::hlo;

#ifdef CONTROL
constexpr std::size_t axis = 1;
#else
constexpr std::size_t axis = 0;
#endif

int main() {
  const auto part =
      hlo::trace<hlo::Traced<float, hlo::batch, 4>>(1, 8, [](auto x) { return hlo::slice<axis, 1, 2>(x); });
  return part.module().empty() ? 1 : 0;
}
