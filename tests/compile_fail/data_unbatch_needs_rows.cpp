// expect: unbatch: elements must be Tensors, TensorViews, or Examples, tuples or arrays of these
#include <dist/data/batch.hpp>
#include <dist/data/range.hpp>
#include <dist/data/tensor_slices.hpp>

int main() {
  auto rows = dist::data::tensor_slices(dist::Tensor<float>{dist::Shape{4, 2}});
#ifdef CONTROL
  static_cast<void>(rows | dist::data::unbatch());
#else
  static_cast<void>(dist::data::range(4) | dist::data::unbatch());
#endif
}
