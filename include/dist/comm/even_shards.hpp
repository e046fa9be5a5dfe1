#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/element_update.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

namespace detail {
template <class Ops>
struct NeighborExchange;
}  // namespace detail

/// Collectives `Ops` of groups of groups (Hierarchical) with the shards of `shard_of`: in units of a cache line and in
/// rank order, like collectives on device memory. All members reduce all elements, which is acceptable for the few
/// elements in host memory. Each member has its own mirror.
template <class Ops>
class EvenShards : public Ops {
 public:
  /// Adapts the collectives `ops` of one member.
  EvenShards(Ops ops) : Ops(std::move(ops)) {}

  [[nodiscard]] EvenShards with_timeout(std::chrono::nanoseconds timeout) const {
    return EvenShards{Ops::with_timeout(timeout)};
  }

  template <class T, ReduceOp<T> Op, ElementUpdate<T> Update>
  void reduce_and_apply(Op op, std::span<const T> gradient, std::span<T> mirror, const Update& update) const {
    this->agree(
        {.operation = "reduce_and_apply", .reduction = Op::name, .elements = mirror.size(), .dtype = dtype_name<T>});
    const AlignedBuffer<T> all = reduced<T>(op, gradient);
    apply(std::span<const T>{all.data(), all.size()}, mirror, update);
  }
  template <class T, ReduceOp<T> Op, class Use>
  void reduce_scatter(Op op, std::span<const T> values, Use&& use) const {
    this->agree(
        {.operation = "reduce_scatter", .reduction = Op::name, .elements = values.size(), .dtype = dtype_name<T>});
    const AlignedBuffer<T> all = reduced<T>(op, values);
    const IndexRange mine = shard<T>(values.size(), this->communicator().rank());
    if (mine.size() != 0) use(mine.begin, std::span<const T>{all.data() + mine.begin, mine.size()});
  }
  template <class T, ElementUpdate<T> Update>
  void update_shards(std::span<const T> gradients, std::span<T> mirror, const Update& update) const {
    DIST_EXPECT(gradients.size() == mirror.size());
    this->agree({.operation = "update_shards", .elements = mirror.size(), .dtype = dtype_name<T>});
    apply(gradients, mirror, update);
  }

 private:
  template <class T, class Update>
  void apply(std::span<const T> gradients, std::span<T> mirror, const Update& update) const {
    std::vector<std::size_t> counts(this->communicator().size());
    for (std::size_t rank = 0; rank < counts.size(); ++rank) counts[rank] = shard<T>(mirror.size(), rank).size();
    const IndexRange mine = shard<T>(mirror.size(), this->communicator().rank());
    AlignedBuffer<T> updated(mine.size());
    for (std::size_t i = mine.begin; i < mine.end; ++i)
      updated.data()[i - mine.begin] = update(i, mirror[i], gradients[i]);
    this->all_gather(std::span<const T>{updated.data(), updated.size()}, std::span<const std::size_t>{counts}, mirror);
  }
  template <class T>
  [[nodiscard]] IndexRange shard(std::size_t elements, std::size_t rank) const noexcept {
    return shard_of(elements, rank, this->communicator().size(), cache_line / sizeof(T));
  }
  template <class T, class Op>
  [[nodiscard]] AlignedBuffer<T> reduced(Op op, std::span<const T> values) const {
    AlignedBuffer<T> all(values.size());
    std::copy(values.begin(), values.end(), all.data());
    this->all_reduce(op, std::span<T>{all.data(), all.size()});
    return all;
  }
};

namespace detail {
template <class Ops>
struct NeighborExchange<EvenShards<Ops>> : NeighborExchange<Ops> {};
}  // namespace detail

}  // namespace dist
