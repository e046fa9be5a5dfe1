#pragma once

#include <vector>

#include <dist/context/contexts.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/variable/given_value.hpp>

namespace dist {

/// A context in which reads of a shared variable return its value at the first read (spec B17, G43):
///
///   CachedReads cached{replica};
///   const auto before = weights.read(cached);
///   weights.assign(replica, ...);                 // writes to the store
///   const auto same_as_before = weights.read(cached);
///
/// Caches shared and remote variables; for others it returns the local copy. The values live as long as this object,
/// and the variables must outlive it.
template <class C>
class CachedReads {
 public:
  /// Caches reads in `context`, which must outlive it.
  explicit CachedReads(const C& context) : context_(context) {}
  /// Error message for copies.
  CachedReads(const CachedReads& other) : context_(other.context_) {
    static_assert(detail::always_false<C>,
                  "CachedReads cannot be nested or copied, because it would be unclear which first value counts: read "
                  "with the existing CachedReads");
  }
  CachedReads& operator=(const CachedReads&) = delete;

  /// Implements `variable.read(cached)`.
  template <class Variable>
  [[nodiscard]] auto read(const Variable& variable) const {
    if constexpr (StoreOf<C>::shared || RemoteStore<StoreOf<C>>) {
      using T = typename Variable::Element;
      for (const auto& [key, tensor] : entries_)
        if (key == &variable) return static_cast<const Tensor<T>*>(tensor.get())->view();
      const auto read_now = variable.read(context_);  // a view, or a tensor if the variable is remote
      const TensorView<const T> stored = read_now;
      const auto copy = std::make_shared<Tensor<T>>(stored.shape());
      std::copy_n(stored.data(), stored.size(), copy->data());
      entries_.push_back({&variable, copy});
      return TensorView<const T>{*copy};
    } else {
      return variable.read(context_);
    }
  }
  /// Implements `variable.value(cached)`.
  template <class Variable>
  [[nodiscard]] auto value(const Variable& variable) const {
    if constexpr (StoreOf<C>::shared || RemoteStore<StoreOf<C>>) {
      detail::require_one_element(variable);
      return read(variable)[0];
    } else {
      return variable.value(context_);
    }
  }

 private:
  struct Entry {
    const void* variable;
    std::shared_ptr<const void> tensor;
  };

  C context_;
  mutable std::vector<Entry> entries_;
};

template <class C>
  requires(!InReplica<C> && !InCrossReplica<C>)
struct CachedReads<C> : detail::Refused {
  using Refused::Refused;
  static_assert(detail::always_false<C>,
                "CachedReads are made from the context of a replica function or from strategy.scope()");
};

namespace detail {
template <class C>
inline constexpr bool is_cached_reads = is_specialization<C, CachedReads>;
}  // namespace detail

}  // namespace dist
