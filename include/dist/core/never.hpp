#pragma once

namespace dist::detail {

/// False, for a static_assert that is to fail once the template around it is used with these arguments.
template <class...>
inline constexpr bool never = false;

}  // namespace dist::detail
