#pragma once

#include <dist/coordinator/error.hpp>
#include <dist/core/text.hpp>

namespace dist {

DIST_INLINE RemoteError::RemoteError(std::size_t worker, std::string_view address, std::string_view function,
                                     std::string_view thrown, std::string_view why)
    : Error(concat("A scheduled function failed on worker ", worker, " at ", address),
            concat(function, " threw ", thrown.empty() ? "an error" : thrown), concat("It said: ", why)),
      worker_(worker),
      thrown_(thrown),
      why_(why) {}

}  // namespace dist
