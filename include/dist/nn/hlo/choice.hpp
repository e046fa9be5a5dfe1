#pragma once

#include <cstddef>

#include <dist/hlo/traced.hpp>

namespace dist::hlo {

// What functors call to choose between numbers, for traced arrays: found by their namespace. For numbers of the host, see
// nn/choice.hpp.

template <class T, std::size_t... Extents>
[[nodiscard]] Traced<T, Extents...> chosen(Traced<bool, Extents...> condition, Traced<T, Extents...> yes,
                                           Traced<T, Extents...> no) {
  return select(condition, yes, no);
}
template <class T, std::size_t... Extents>
[[nodiscard]] Traced<T, Extents...> greater(Traced<T, Extents...> a, Traced<T, Extents...> b) {
  return max(a, b);
}

}  // namespace dist::hlo
