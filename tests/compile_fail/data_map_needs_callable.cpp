// expect: map: the function must be callable as a const object with an element of the dataset
#include <dist/data.hpp>

int main() {
  auto rows = dist::data::tensor_slices(dist::Tensor<float>{dist::Shape{4, 2}});
#ifdef CONTROL
  static_cast<void>(rows | dist::data::map([](auto row) { return row[0]; }));
#else
  static_cast<void>(rows | dist::data::map([](int, int) { return 1; }));
#endif
}
