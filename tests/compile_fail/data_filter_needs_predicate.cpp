// expect: filter: the predicate must be callable as a const object with an element of the dataset, and return a bool
#include <dist/data/map.hpp>
#include <dist/data/tensor_slices.hpp>

int main() {
  auto rows = dist::data::tensor_slices(dist::Tensor<float>{dist::Shape{4, 2}});
#ifdef CONTROL
  static_cast<void>(rows | dist::data::filter([](auto row) { return row[0] > 0; }));
#else
  static_cast<void>(rows | dist::data::filter([](int, int) { return true; }));
#endif
}
