#pragma once

#include <cstddef>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/memory_space.hpp>

namespace dist::nn::detail {

template <class Backend, class T>
struct LayerMemoryOf {
  using Type = typename Backend::template Memory<T>;
};
template <class Backend, class T>
  requires(Backend::Device::Space::host_accessible)
struct LayerMemoryOf<Backend, T> {
  using Type = AlignedBuffer<T>;
};

/// Elements where a back end computes: the memory between layers, and what these keep. Null until it is made.
template <class Backend, class T>
using LayerMemory = typename LayerMemoryOf<Backend, T>::Type;

/// The queue of a back end's state; on the host, any is as good.
template <class Backend>
[[nodiscard]] typename Backend::Device::Queue queue_of([[maybe_unused]] const typename Backend::State& state) {
  if constexpr (Backend::Device::Space::host_accessible) {
    return {};
  } else {
    return state.queue();
  }
}

/// For the work of one queue.
template <class Backend, class T>
[[nodiscard]] LayerMemory<Backend, T> make_layer_memory([[maybe_unused]] const typename Backend::Device::Queue& queue,
                                                        std::size_t count) {
  if constexpr (Backend::Device::Space::host_accessible) {
    return AlignedBuffer<T>(count);
  } else {
    return typename Backend::template Memory<T>{queue, count};
  }
}

}  // namespace dist::nn::detail
