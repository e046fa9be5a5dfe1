/// Templates for twins, for the host compiler only.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "bound_kernel.hpp"
#include "twin.hpp"

namespace fake_cuda {

template <class... Parameters>
struct TwinWith {
  template <void (*kernel)(Parameters...), std::size_t... i>
  static BoundKernel bind(void** arguments, std::index_sequence<i...>) {
    return BoundKernel::of(kernel, *static_cast<const std::decay_t<Parameters>*>(arguments[i])...);
  }
};

/// The twin that calls `kernel`, whose parameters have the same layout as in the kernel compiled by nvcc.
template <auto kernel>
inline constexpr Twin twin_of = []<class... Parameters>(void (*)(Parameters...)) -> Twin {
  return [](void** arguments) {
    return TwinWith<Parameters...>::template bind<kernel>(arguments, std::index_sequence_for<Parameters...>{});
  };
}(kernel);

}  // namespace fake_cuda
