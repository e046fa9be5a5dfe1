/// The only header that includes oneDNN's C++ interface. Works with oneDNN 2.6, and through descriptors.hpp with 3.x.
#pragma once

#include <dist/nn/onednn/error.hpp>  // first: reports a missing oneDNN

#include <dnnl.hpp>

#if __has_include(<omp.h>)
#include <omp.h>
#else
// clang without its OpenMP package lacks this header, but the runtime that oneDNN links has the functions.
extern "C" {
/// The function of OpenMP.
int omp_get_max_threads();
/// The function of OpenMP.
void omp_set_num_threads(int);
}
#endif

namespace dist::nn::onednn {

/// Returns `call()`, and translates errors of oneDNN to OneDnnError.
template <class Call>
auto translated(const Label& label, Call&& call) {
  try {
    return call();
  } catch (const dnnl::error& error) {
    throw OneDnnError(label.primitive, label.geometry(), error.status, error.message);
  }
}

}  // namespace dist::nn::onednn
