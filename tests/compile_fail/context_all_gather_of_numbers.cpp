// expect: all_gather takes a tensor; a number has no axis: give a tensor of shape [1]
#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  strategy.run([](auto& replica) {
#ifdef CONTROL
    static_cast<void>(replica.all_gather(dist::Tensor<float>{{1}}, 0));
#else
    static_cast<void>(replica.all_gather(1.0f, 0));
#endif
  });
}
