// expect: complex numbers are reduced by sum or mean
#include <complex>

#include <dist/strategy/default.hpp>

int main() {
  dist::Default strategy;
  strategy.run([&](auto& replica) {
#ifdef CONTROL
    static_cast<void>(replica.all_reduce(dist::sum, std::complex<float>{1, 2}));
#else
    static_cast<void>(replica.all_reduce(dist::prod, std::complex<float>{1, 2}));
#endif
  });
}
