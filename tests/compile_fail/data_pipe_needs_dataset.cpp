// expect: the left side of | is not a dataset: begin with a source such as dist::data::tensor_slices(...)
#include <dist/data.hpp>

int main() {
  auto rows = dist::data::tensor_slices(dist::Tensor<float>{dist::Shape{4, 2}});
#ifdef CONTROL
  static_cast<void>(rows | dist::data::batch(2));
#else
  static_cast<void>(4 | dist::data::batch(2));
#endif
}
