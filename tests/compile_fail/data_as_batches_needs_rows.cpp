// expect: as_batches: elements must be Tensors, TensorViews, or Examples, tuples or arrays of these
#include <dist/data/batch.hpp>
#include <dist/data/range.hpp>
#include <dist/data/tensor_slices.hpp>

int main() {
#ifdef CONTROL
  static_cast<void>(dist::data::tensor_slices(dist::Tensor<float>{dist::Shape{4, 2}}) | dist::data::as_batches());
#else
  static_cast<void>(dist::data::range(4) | dist::data::as_batches());
#endif
}
