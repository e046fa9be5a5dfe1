// expect: nn::LeakyRelu keeps a share above 0
#include <dist/nn.hpp>

int main() {
#ifdef CONTROL
  static_cast<void>(dist::nn::LeakyRelu<20>::apply(1.0F));
#else
  static_cast<void>(dist::nn::LeakyRelu<0>::apply(1.0F));
#endif
}
