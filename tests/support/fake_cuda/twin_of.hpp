/// What only the host's compiler reads of twins.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "bound_kernel.hpp"
#include "twin.hpp"

namespace fake_cuda {

template <class... Parameters>
struct TwinWith {
  template <void (*kernel)(Parameters...), std::size_t... i>
  static BoundTwin bind(void** arguments, std::index_sequence<i...>) {
    auto call = std::make_unique<const BoundKernel<Parameters...>>(
        kernel, *static_cast<const std::decay_t<Parameters>*>(arguments[i])...);
    auto words = call->words();
    return {std::move(call), std::move(words)};
  }
};

/// The twin that calls `kernel`, whose parameters have the layout of those of the kernel that nvcc has compiled.
template <auto kernel>
inline constexpr Twin twin_of = []<class... Parameters>(void (*)(Parameters...)) -> Twin {
  return [](void** arguments) {
    return TwinWith<Parameters...>::template bind<kernel>(arguments, std::index_sequence_for<Parameters...>{});
  };
}(kernel);

}  // namespace fake_cuda
