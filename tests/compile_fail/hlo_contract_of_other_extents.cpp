// expect: hlo::contract: the two axes have different extents
#include <dist/hlo/function.hpp>
#include <dist/hlo/operations.hpp>

namespace hlo = dist::hlo;

#ifdef CONTROL
constexpr std::size_t rows = 3;
#else
constexpr std::size_t rows = 2;
#endif

int main() {
  const auto product = hlo::trace<hlo::Traced<float, 2, 3>, hlo::Traced<float, rows, 4>>(
      1, [](auto a, auto b) { return hlo::contract<1, 0>(a, b); });
  return product.module().empty() ? 1 : 0;
}
