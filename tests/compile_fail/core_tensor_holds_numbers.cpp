// expect: AlignedBuffer holds plain numbers: its element type must be trivially copyable
#include <dist/core/tensor.hpp>

#include <string>

int main() {
#ifdef CONTROL
  const dist::Tensor<double> tensor(dist::Shape{2, 3});
#else
  const dist::Tensor<std::string> tensor(dist::Shape{2, 3});
#endif
  return tensor.size() == 6 ? 0 : 1;
}
