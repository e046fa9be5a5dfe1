// Collectives on device memory, for comparison with host memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/strategy/mirrored.hpp>

namespace testing {

/// Values whose sums depend on the order of additions.
template <class T>
struct Number {
  T* to;
  float rank;
  DIST_HD void operator()(std::size_t i) const {
    to[i] = static_cast<T>((rank + 0.1F) * static_cast<float>(i % 31) - 1.0F);
  }
};
/// Momentum, whose slots belong to the replica that updates their elements.
template <class T>
struct Momentum {
  float* velocity;
  DIST_HD T operator()(std::size_t i, T weight, T gradient) const {
    velocity[i] = 0.5F * velocity[i] + static_cast<float>(gradient);
    return static_cast<T>(static_cast<float>(weight) - 0.25F * velocity[i]);
  }
};

/// The results of `reduce` per replica, in order.
template <class T>
using Reduced = std::vector<std::vector<T>>;

/// Stores the mean of this replica's shard at its original position.
template <class T, class To>
void reduce_into(const auto& replica, std::span<T> values, const To& kept) {
  replica.reduce_scatter(dist::mean, values, [&](std::size_t first, std::span<const T> reduced) {
    std::copy(reduced.begin(), reduced.end(), kept.begin() + static_cast<std::ptrdiff_t>(first));
  });
}
template <class T, class Place>
void reduce_into(const auto& replica, dist::DeviceSpan<T, Place> values, dist::DeviceSpan<T, Place> kept) {
  static_cast<void>(replica.reduce_scatter(dist::mean, values, kept));
}

/// Consecutive steps without waits of the host, on device memory: fused updates, updates in two halves, all-reduces of
/// several tensors, with larger ones first and last, and a broadcast.
template <class T, class Ops, class Device>
std::vector<Reduced<T>> reduce(std::size_t replicas, std::size_t count) {
  dist::Mirrored<Ops, Device> strategy{replicas};
  const dist::Shape shape{count};
  auto gradient = strategy.template buffer<T>(shape);
  auto kept = strategy.template buffer<T>(shape);
  auto weights = strategy.template buffer<T>(shape);
  auto velocity = strategy.template buffer<float>(shape);
  const auto all = strategy.run([&](auto& replica) {
    Reduced<T> outcome;
    const auto read = [&](const auto& values) {
      outcome.emplace_back(values.size());
      using Element = const T;
      replica.queue().copy(typename Device::template Span<Element>{values}, std::span<T>{outcome.back()});
      replica.queue().wait();
    };
    const auto mine = gradient.component(replica);
    const auto rank = static_cast<float>(replica.replica_id().index());
    const Momentum<T> momentum{velocity.component(replica).data()};
    replica.queue().fill(weights.component(replica), static_cast<T>(1.0F));
    for (int step = 0; step < 3; ++step) {
      replica.for_each(count, Number<T>{mine.data(), rank + static_cast<float>(step)});
      if (step != 1) {
        replica.reduce_and_apply(dist::mean, mine, weights.component(replica), momentum);
      } else {
        reduce_into(replica, mine, kept.component(replica));
        replica.update_shards(kept.component(replica), weights.component(replica), momentum);
      }
    }
    read(weights.component(replica));
    for (const std::size_t part : {count / 2, count / 3, count}) {
      replica.for_each(count, Number<T>{mine.data(), rank});
      replica.all_reduce(dist::sum, mine.first(part));
      replica.all_reduce(dist::max, mine);
    }
    read(mine);
    replica.for_each(count, Number<T>{mine.data(), rank});
    replica.broadcast(mine, replica.num_replicas_in_sync() - 1);
    read(mine);
    return outcome;
  });
  const auto of_replicas = strategy.local_results(all);
  return {of_replicas.begin(), of_replicas.end()};
}

}  // namespace testing
