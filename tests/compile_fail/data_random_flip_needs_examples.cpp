// expect: random_map: put random_map, random_flip and random_crop before batch, so that each example has its
#include <dist/data.hpp>

int main() {
  auto images = dist::data::tensor_slices(dist::Tensor<float>{dist::Shape{4, 2, 2, 1}});
#ifdef CONTROL
  static_cast<void>(images | dist::data::random_flip() | dist::data::batch(2));
#else
  static_cast<void>(images | dist::data::batch(2) | dist::data::random_flip());
#endif
}
