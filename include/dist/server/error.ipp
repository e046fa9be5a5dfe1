#pragma once

#include <dist/core/text.hpp>
#include <dist/server/error.hpp>

namespace dist {

DIST_INLINE StoreError::StoreError(server::Problem problem, std::string_view what, std::string_view why,
                                   std::string_view suggestion)
    : Error(what, why, suggestion), problem_(problem), what_(what), why_(why), suggestion_(suggestion) {}

DIST_INLINE ServerUnavailable::ServerUnavailable(std::size_t index, std::string_view address, std::string_view happened,
                                                 std::string_view why, std::string_view suggestion)
    : Unavailable(text("Parameter server ", index, " at ", address, " ", happened), index, address, why, suggestion) {}

}  // namespace dist
