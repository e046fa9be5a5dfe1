// expect: no result has the type of an hlo::Donated argument, or other arguments use this result
#include <dist/hlo/function.hpp>
#include <dist/hlo/operations.hpp>

namespace hlo = dist::hlo;

int main() {
  const auto doubled = hlo::trace<hlo::Donated<hlo::Traced<float, 4>>>(1, [](auto x) {
#ifdef CONTROL
    return x + x;
#else
    return hlo::slice<0, 0, 2>(x);
#endif
  });
  return doubled.module().empty() ? 1 : 0;
}
