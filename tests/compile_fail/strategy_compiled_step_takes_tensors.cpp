// expect: a compiled step takes numbers, tensors, and tuples, pairs, arrays and dist::data::Example of these
#include <dist/tpu.hpp>

int main() {
  dist::Tpu<> strategy;
  auto step = strategy.compile([](auto&, const auto& given) { static_cast<void>(given); });
#ifdef CONTROL
  step(dist::Tensor<float>{{2}, {1, 2}});
#else
  step(std::vector<float>{1, 2});
#endif
}
