// expect: concatenate: the argument must be a dataset with the same element type
#include <dist/data/range.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/data/zip.hpp>

int main() {
  auto rows = dist::data::tensor_slices(dist::Tensor<float>{dist::Shape{4, 2}});
#ifdef CONTROL
  static_cast<void>(rows | dist::data::concatenate(rows));
#else
  static_cast<void>(rows | dist::data::concatenate(dist::data::range(4)));
#endif
}
