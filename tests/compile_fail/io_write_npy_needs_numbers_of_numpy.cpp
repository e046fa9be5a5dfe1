// expect: NPY supports bool, Float16, float, double and the integers of up to 64 bits
#include <dist/io/npz_writer.hpp>

int main() {
#ifdef CONTROL
  dist::io::write_npy("x.npy", dist::Tensor<dist::Float16>{});
#else
  dist::io::write_npy("x.npy", dist::Tensor<dist::BFloat16>{});
#endif
}
