#pragma once

#if !__has_include(<dnnl.hpp>)
#error "<dnnl.hpp> of oneDNN was not found: install libdnnl-dev, and link dist::onednn (without CMake: -ldnnl -lgomp)"
#endif

#include <oneapi/dnnl/dnnl_types.h>

#include <string>
#include <string_view>

#include <dist/core/error.hpp>

namespace dist::nn {

/// Thrown if oneDNN cannot create or execute a primitive.
class OneDnnError : public Error {
 public:
  /// `primitive` and `geometry` describe the operation; `status` and `message` come from oneDNN.
  OneDnnError(std::string_view primitive, std::string_view geometry, dnnl_status_t status, std::string_view message)
      : Error(concat("oneDNN failed in ", primitive),
              concat(geometry, "; status ", static_cast<int>(status), ", ", message),
              status == dnnl_out_of_memory ? "Use a smaller batch, or free memory on this machine"
                                           : "Check that this oneDNN supports it, or use the back end nn::Reference"),
        status_(status) {}

  /// The status that oneDNN returned.
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

}  // namespace onednn
}  // namespace dist::nn
