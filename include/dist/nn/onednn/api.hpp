/// The door to oneDNN: the only header that includes it. Works with oneDNN 2.6 and, by descriptors.hpp, 3.x.
#pragma once

#if !__has_include(<dnnl.hpp>)
#error "<dnnl.hpp> of oneDNN was not found: install libdnnl-dev, and link dist::onednn (without CMake: -ldnnl -lgomp)"
#endif

#include <dnnl.hpp>

#if __has_include(<omp.h>)
#include <omp.h>
#else
// clang without its OpenMP package lacks the header, but the runtime that oneDNN is linked with has the
// functions.
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int);
}
#endif

#include <string>
#include <string_view>

#include <dist/core/error.hpp>

namespace dist::nn {

/// oneDNN refused to make or to run a primitive.
class OneDnnError : public Error {
 public:
  OneDnnError(std::string_view primitive, std::string_view geometry, dnnl_status_t status, std::string_view message)
      : Error(concat("oneDNN failed in ", primitive),
              concat(geometry, "; status ", static_cast<int>(status), ", ", message),
              status == dnnl_out_of_memory ? "Use a smaller batch, or free memory on this machine"
                                           : "Check that this oneDNN supports it, or use the back end nn::Reference"),
        status_(status) {}

  [[nodiscard]] dnnl_status_t status() const noexcept { return status_; }

 private:
  dnnl_status_t status_;
};

namespace onednn {

/// Names a primitive in errors.
struct Label {
  std::string_view primitive;
  std::string (*geometry)();
};

/// Returns `call()`; what oneDNN throws in it leaves as OneDnnError.
template <class Call>
auto translated(const Label& label, Call&& call) {
  try {
    return call();
  } catch (const dnnl::error& error) {
    throw OneDnnError(label.primitive, label.geometry(), error.status, error.message);
  }
}

}  // namespace onednn
}  // namespace dist::nn
