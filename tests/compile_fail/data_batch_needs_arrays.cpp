// expect: batch: elements must be numbers, Tensors, TensorViews, or Examples, tuples or arrays of these: convert
#include <dist/data.hpp>

int main() {
  auto rows = dist::data::tensor_slices(dist::Tensor<float>{dist::Shape{4, 2}});
#ifdef CONTROL
  static_cast<void>(rows | dist::data::map([](auto row) { return row[0]; }) | dist::data::batch(2));
#else
  static_cast<void>(rows | dist::data::map([](auto) { return "text"; }) | dist::data::batch(2));
#endif
}
