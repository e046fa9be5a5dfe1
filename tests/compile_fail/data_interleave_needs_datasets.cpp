// expect: interleave: the function must be callable as a const object with an element of the dataset, and return
#include <dist/data/interleave.hpp>
#include <dist/data/range.hpp>
#include <dist/data/tensor_slices.hpp>

int main() {
  auto rows = dist::data::tensor_slices(dist::Tensor<float>{dist::Shape{4, 2}});
#ifdef CONTROL
  static_cast<void>(rows | dist::data::interleave([](auto) { return dist::data::range(4); }, 2));
#else
  static_cast<void>(rows | dist::data::interleave([](auto row) { return row; }, 2));
#endif
}
