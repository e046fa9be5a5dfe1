// Elements of a strategy's memory as a test of any device reads them.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include <dist/context/contexts.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/tensor.hpp>

namespace support {

/// Elements that the host may read: those that were named, or what a copy of them held. As long as those live.
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

/// A span or a view after all that was put into `queue`, which works where its elements are.
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

/// The copy of a replica function, or of a function of `strategy.update`.
template <class Variable, class Context>
[[nodiscard]] auto component_on_host(const Variable& variable, const Context& context) {
  return on_host(variable.queue(context), variable.component(context));
}
/// That of one replica of this process, outside.
template <class Variable, class Strategy>
[[nodiscard]] auto component_on_host(const Variable& variable, const dist::CrossReplicaContext<Strategy>& scope,
                                     std::size_t local_replica) {
  return on_host(variable.queue(scope, Strategy::Store::copy_of(local_replica)),
                 variable.component(scope, local_replica));
}
/// What `variable.read(context)` shows, of a replica function or of a function of `strategy.update`.
template <class Variable, class Context>
[[nodiscard]] auto read_on_host(const Variable& variable, const Context& context) {
  return on_host(variable.queue(context), variable.read(context));
}

}  // namespace support
