#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <dist/context/contexts.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/variable/queue_of.hpp>
#include <dist/variable/variable_core.hpp>

namespace dist {

/// Stores a copy in the memory of every replica (spec A01), which the replica changes itself.
struct MirroredStore {
  static constexpr bool shared = false;
  [[nodiscard]] static constexpr std::size_t copies(std::size_t replicas) noexcept { return replicas; }
  [[nodiscard]] static constexpr std::size_t copy_of(std::size_t local_replica) noexcept { return local_replica; }

  template <class Change>
  static void once(const InReplica auto&, Change&& change) {
    change();
  }
  template <class Change>
  static void share_out(const InReplica auto&, std::size_t count, Change&& change) {
    change(IndexRange{0, count});
  }
  template <class Copy, class Change>
  static void from_first(const InReplica auto& replica, Copy copy, Change&& change) {
    replica.barrier();  // detects mismatched collectives before a copy changes
    if (replica.replica_id().index() == 0) change(copy);
    replica.collectives().broadcast(0, copy);
  }
  template <class Span, class Change>
  static auto update_local_then_average(const InReplica auto&, Span copy, Span, Change&& change) {
    return change(copy);
  }

  /// Copies the first copy to all others. Each replica copies for itself, for NUMA-local pages; during a run, one
  /// thread copies for all.
  template <class Strategy, class Variable>
  static void spread(Strategy& strategy, const Variable& variable, bool is_in_run) {
    using Device = typename Variable::Device;
    if constexpr (Device::Space::host_accessible) {
      spread_by<Device>(strategy, is_in_run, BytesOf<typename Device::Memory>{variable});
    } else {
      const CrossReplicaContext<Strategy> scope{strategy};
      spread_by<Device>(strategy, is_in_run, [&](std::size_t local) { return variable.copy(scope, local); });
    }
  }

 private:
  template <class Memory>
  struct BytesOf {
    const detail::VariableCore<Memory>& core;
    [[nodiscard]] std::span<std::byte> operator()(std::size_t local) const { return core.bytes(local); }
  };

  /// `copy(local)` returns a replica's copy. Host memory is copied as bytes.
  template <class Device, class Strategy>
  static void spread_by(Strategy& strategy, bool is_in_run, const auto& copy) {
    if (is_in_run) {
      const CrossReplicaContext<Strategy> scope{strategy};
      for (std::size_t local = 1; local < strategy.num_local_replicas(); ++local)
        detail::copy_and_wait(detail::queue_of_replica<Device>(scope, local), copy(0), copy(local));
    } else {
      strategy.run([&](auto& replica) {
        const std::size_t local = replica.local_index();
        if (local != 0) detail::copy_and_wait(detail::queue_of<Device>(replica), copy(0), copy(local));
      });
    }
  }
};

/// Stores one copy, which all replicas of the single process share (spec A18).
struct CentralStore {
  static constexpr bool shared = true;
  [[nodiscard]] static constexpr std::size_t copies(std::size_t) noexcept { return 1; }
  [[nodiscard]] static constexpr std::size_t copy_of(std::size_t) noexcept { return 0; }

  template <class Change>
  static void once(const InReplica auto& replica, Change&& change) {
    replica.barrier();  // others may still read the copy
    if (replica.replica_id().index() == 0) change();
    replica.barrier();
  }
  template <InReplica Replica, class Change>
  static void share_out(const Replica& replica, std::size_t count, Change&& change) {
    if constexpr (!Replica::Device::Space::host_accessible) replica.barrier();  // other queues may still read
    change(replica.shard(count));
    replica.barrier();
  }
  template <class Copy, class Change>
  static void from_first(const InReplica auto& replica, Copy copy, Change&& change) {
    once(replica, [&] { change(copy); });
  }
  template <class Span, class Change>
  static auto update_local_then_average(const InReplica auto& replica, Span copy, Span own, Change&& change) {
    replica.queue().copy(copy, own);
    auto result = change(own);
    replica.all_reduce(mean, own);
    share_out(replica, own.size(), [&](IndexRange mine) {
      replica.queue().copy(own.subspan(mine.begin, mine.size()), copy.subspan(mine.begin, mine.size()));
    });
    return result;
  }

  template <class Strategy, class Variable>
  static void spread(Strategy&, const Variable&, bool) {}
};

/// Stores OnShard variables under all strategies: each element is in the memory of the replica that owns it. In the
/// memory of others it is unspecified.
struct OwnerStore {
  /// Returns the elements of all owners, in a replica function. A collective call.
  template <class Variable>
  [[nodiscard]] static auto gathered(const Variable& variable, const InReplica auto& replica) {
    using T = typename Variable::Element;
    Tensor<T> all{variable.shape()};
    detail::HostCopy mine{variable, replica};
    Variable::Synchronization::update_shards(replica, std::span<const T>{mine.elements()}, all.elements(),
                                             [](std::size_t, T, T owned) { return owned; });
    return all;
  }
  /// Returns the elements of all owners, outside replica functions. A collective call of the processes.
  template <class Variable>
  [[nodiscard]] static auto whole(const Variable& variable, const InCrossReplica auto& context) {
    Tensor<typename Variable::Element> all{Shape{0}};
    context.strategy().run([&](auto& replica) {
      auto gathered_here = gathered(variable, replica);
      if (replica.local_index() == 0) all = std::move(gathered_here);
    });
    return all;
  }
  /// Writes the elements of `given` to their owners only. A collective call of the processes.
  template <class Variable, class Values>
  static void restore(const Variable& variable, const InCrossReplica auto& context, const Values& given) {
    using T = typename Variable::Element;
    constexpr bool is_here = Variable::View::is_host_accessible;
    context.strategy().run([&](auto& replica) {
      const auto copy = variable.component(replica);
      AlignedBuffer<T> staged(is_here ? 0 : variable.size());
      std::vector<bool> is_staged(staged.size());
      Tensor<T> passed{variable.shape()};  // elements that owners send to others, unused
      const std::span<T> elements = passed.elements();
      Variable::Synchronization::update_shards(replica, std::span<const T>{elements}, elements,
                                               [&](std::size_t i, T element, T) {
                                                 if constexpr (is_here) {
                                                   copy[i] = given[i];
                                                 } else {
                                                   staged.data()[i] = given[i];
                                                   is_staged[i] = true;
                                                 }
                                                 return element;
                                               });
      if constexpr (!is_here) {
        const auto queue = variable.queue(replica);
        for (std::size_t end = 0; end < staged.size();) {  // ranges of owned elements
          const std::size_t begin = end;
          while (end < staged.size() && is_staged[end] == is_staged[begin]) ++end;
          if (is_staged[begin])
            queue.copy(std::span<const T>{staged.data() + begin, end - begin}, copy.subspan(begin, end - begin));
        }
        queue.wait();
      }
    });
  }
};

}  // namespace dist
