#pragma once

namespace dist::detail {

/// False, for a static_assert that fails only when the template around it is instantiated with these arguments.
template <class...>
inline constexpr bool never = false;

}  // namespace dist::detail
