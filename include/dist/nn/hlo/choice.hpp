#pragma once

#include <cstddef>

#include <dist/hlo/dynamic.hpp>
#include <dist/hlo/traced.hpp>

namespace dist::hlo {

// What functors call to choose between numbers, beside hlo::select, for traced arrays: found by their namespace. For numbers
// of the host, see nn/choice.hpp.

template <class T, std::size_t... Extents>
[[nodiscard]] Traced<T, Extents...> greater(Traced<T, Extents...> a, Traced<T, Extents...> b) {
  return max(a, b);
}
template <class T>
[[nodiscard]] Dynamic<T> greater(Dynamic<T> a, Dynamic<T> b) {
  return max(a, b);
}

}  // namespace dist::hlo
