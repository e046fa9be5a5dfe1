// expect: random_flip, random_crop and resize_images: elements must be Tensors or TensorViews, or Examples whose x is
#include <dist/data.hpp>

int main() {
#ifdef CONTROL
  auto images = dist::data::tensor_slices(dist::Tensor<float>{dist::Shape{4, 2, 2, 1}});
#else
  auto images = dist::data::range(4);
#endif
  static_cast<void>(images | dist::data::random_crop(1));
}
