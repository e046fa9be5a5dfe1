// expect: only all_reduce of dist::sum and dist::mean has a gradient here
#include <dist/nn/collective_gradients.hpp>
#include <dist/strategy/default.hpp>

#ifdef CONTROL
constexpr dist::Mean op;
#else
constexpr dist::Max op;
#endif

int main() {
  dist::Default strategy;
  strategy.run([](auto& replica) { return dist::nn::all_reduce_gradient(replica, op, 1.0); });
}
