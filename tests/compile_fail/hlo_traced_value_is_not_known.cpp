// expect: a traced value is known only when the program runs: use hlo::select instead of if
#include <dist/hlo/function.hpp>

namespace hlo = dist::hlo;

int main() {
  const auto positive = hlo::trace<hlo::Traced<float>>(1, [](auto x) {
#ifdef CONTROL
    return hlo::select(x > 0, x, -x);
#else
    if (x > 0) return x;
    return -x;
#endif
  });
  return positive.module().empty() ? 1 : 0;
}
