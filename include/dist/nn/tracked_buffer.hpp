#pragma once

#include <concepts>
#include <cstddef>
#include <span>

#include <dist/context/contexts.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/queue_of.hpp>

namespace dist::nn {

/// A buffer as a leaf of a walk: with OnlyFirstReplica one of numbers that all replicas have alike, with Sum one of
/// which only the sum over the replicas counts. Refers to the buffer.
template <class Buffer, class Aggregation>
class TrackedBuffer {
 public:
  using Element = typename Buffer::Element;

  explicit TrackedBuffer(const Buffer& buffer) : buffer_(&buffer) {}

  [[nodiscard]] const Shape& shape() const noexcept { return buffer_->shape(); }

  /// See DistributedVariable::whole.
  [[nodiscard]] Tensor<Element> whole(const InCrossReplica auto& scope) const {
    auto& strategy = scope.strategy();
    Tensor<Element> all{buffer_->shape()}, mine{buffer_->shape()};
    for (std::size_t local = 0; local < (sums ? strategy.num_local_replicas() : 1); ++local) {
      dist::detail::copy_and_wait(buffer_->queue(scope, local), buffer_->component(scope, local), mine.elements());
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = local == 0 ? mine[i] : sum(all[i], mine[i]);
    }
    if constexpr (sums)
      dist::detail::run_collectively(strategy, [&] { strategy.workers().all_reduce(sum, all.elements()); });
    return all;
  }
  void restore(const InCrossReplica auto& scope, TensorView<const Element> values) const {
    auto& strategy = scope.strategy();
    for (std::size_t local = 0; local < strategy.num_local_replicas(); ++local) {
      const bool has_values = !sums || strategy.first_local_replica() + local == 0;
      const auto queue = buffer_->queue(scope, local);
      if (has_values)
        queue.copy(values.elements(), buffer_->component(scope, local));
      else
        queue.fill(buffer_->component(scope, local), Element{});
      queue.wait();
    }
  }

 private:
  static constexpr bool sums = std::same_as<Aggregation, Sum>;

  const Buffer* buffer_;
};

}  // namespace dist::nn
