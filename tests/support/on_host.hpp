// Host access to elements of a strategy's memory, for tests on any device.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include <dist/context/contexts.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/tensor.hpp>

namespace support {

/// Elements in host memory: the given ones, or a copy of device elements. Valid during the lifetime of both.
template <class T>
class HostElements {
 public:
  explicit HostElements(std::span<const T> here) : elements_(here) {}
  template <class Queue, class Elsewhere>
  HostElements(const Queue& queue, Elsewhere elements)
      : copied_(elements.size()), elements_(copied_.data(), elements.size()) {
    queue.copy(elements, std::span<T>{copied_.data(), copied_.size()});
    queue.wait();
  }
  HostElements(const HostElements&) = delete;
  HostElements& operator=(const HostElements&) = delete;

  [[nodiscard]] const T* data() const { return elements_.data(); }
  [[nodiscard]] std::size_t size() const { return elements_.size(); }
  [[nodiscard]] const T* begin() const { return data(); }
  [[nodiscard]] const T* end() const { return data() + size(); }
  [[nodiscard]] const T& operator[](std::size_t i) const { return elements_[i]; }

 private:
  dist::AlignedBuffer<T> copied_;
  std::span<const T> elements_;
};

/// Returns the elements of a span or a view after all work of `queue`, the queue of their device.
template <class Queue, class Elements>
[[nodiscard]] auto on_host(const Queue& queue, const Elements& elements) {
  if constexpr (requires { elements.elements(); }) {
    return on_host(queue, elements.elements());
  } else {
    using T = std::remove_const_t<typename Elements::element_type>;
    if constexpr (std::is_convertible_v<const Elements&, std::span<const T>>)
      return HostElements<T>{elements};
    else
      return HostElements<T>{queue, elements};
  }
}

/// Returns the elements of a variable's copy, in a replica function or a function of `strategy.update`.
template <class Variable, class Context>
[[nodiscard]] auto component_on_host(const Variable& variable, const Context& context) {
  return on_host(variable.queue(context), variable.component(context));
}
/// Returns the elements of the copy of one replica of this process, outside replica functions.
template <class Variable, class Strategy>
[[nodiscard]] auto component_on_host(const Variable& variable, const dist::CrossReplicaContext<Strategy>& scope,
                                     std::size_t local_replica) {
  return on_host(variable.queue(scope, Strategy::Store::copy_of(local_replica)),
                 variable.component(scope, local_replica));
}
/// Returns the elements of `variable.read(context)`, in a replica function or a function of `strategy.update`.
template <class Variable, class Context>
[[nodiscard]] auto read_on_host(const Variable& variable, const Context& context) {
  return on_host(variable.queue(context), variable.read(context));
}

}  // namespace support
