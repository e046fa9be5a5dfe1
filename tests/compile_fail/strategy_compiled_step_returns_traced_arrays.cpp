// expect: a compiled step returns traced arrays, with hlo::batch as the first extent only, tuples, pairs and arrays of these, or nothing
#include <dist/tpu.hpp>

int main() {
  dist::Tpu<> strategy;
#ifdef CONTROL
  auto step = strategy.compile([](auto&) { return dist::hlo::Traced<int>{4}; });
  static_cast<void>(step());
#else
  auto step = strategy.compile([](auto&) { return 4; });
  static_cast<void>(step());
#endif
}
