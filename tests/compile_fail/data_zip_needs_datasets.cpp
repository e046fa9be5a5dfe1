// expect: zip: every argument must be a dataset, and at least one is needed
#include <dist/data/tensor_slices.hpp>
#include <dist/data/zip.hpp>

int main() {
  auto rows = dist::data::tensor_slices(dist::Tensor<float>{dist::Shape{4, 2}});
#ifdef CONTROL
  static_cast<void>(dist::data::zip(rows, rows));
#else
  static_cast<void>(dist::data::zip(rows, 4));
#endif
}
