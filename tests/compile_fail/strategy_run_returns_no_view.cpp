// expect: a replica function returns a view, whose elements may not outlive the function
#include <dist/core/tensor.hpp>
#include <dist/strategy/mirrored.hpp>

int main() {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  strategy.run([](auto&) {
    dist::Tensor<float> local{{3}};
#ifdef CONTROL
    return local;
#else
    return local.view();
#endif
  });
}
