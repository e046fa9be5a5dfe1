#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>

#include <dist/core/config.hpp>

namespace dist::detail {

/// The number that `digits` writes: decimal digits only, without sign or space, at most `most`.
[[nodiscard]] std::optional<std::size_t> whole_number(
    std::string_view digits, std::size_t most = std::numeric_limits<std::size_t>::max()) noexcept;

}  // namespace dist::detail

#ifndef DIST_COMPILED
#include <dist/cluster/whole_number.ipp>
#endif
