// expect: NPY supports bool, Float16, float, double and the integers of up to 64 bits
#include <dist/io/npy.hpp>

int main() {
#ifdef CONTROL
  static_cast<void>(dist::io::read_npy<dist::Float16>("x.npy"));
#else
  static_cast<void>(dist::io::read_npy<dist::BFloat16>("x.npy"));
#endif
}
