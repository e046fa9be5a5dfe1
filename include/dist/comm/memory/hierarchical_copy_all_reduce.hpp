#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include <dist/comm/communicator.hpp>
#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/memory_collectives.hpp>
#include <dist/comm/reduce_block.hpp>
#include <dist/comm/share.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/light_memory.hpp>

namespace dist {

/// All-reduce in two groups of adjacent replicas, for devices that are linked in two groups (spec H06). In each group
/// one replica combines the values; the two exchange results, and each group copies from its own. The combining
/// replicas change with each tensor, to share the work.
///
/// Sums are computed by group: their bits differ from other policies, but not between replicas or runs.
///
/// `OnDevices<Device>` reduces device memory in the same groups and order.
struct HierarchicalCopyAllReduce {
  static constexpr std::string_view name = "HierarchicalCopyAllReduce";
  static constexpr bool sums_in_rank_order = false;

  /// True if the policy supports communicator `C`.
  template <class C>
  static constexpr bool fits = SharesMemory<C>;

  /// The policy for devices with separate memory, specialized in headers for these devices.
  template <class Device>
  struct OnDevices : detail::NoOps {
    [[nodiscard]] static constexpr bool require_header() {
      static_assert(
          sizeof(Device) == 0,
          "HierarchicalCopyAllReduce of GPU memory needs a separate header: include <dist/comm/cuda/policies.cuh>");
      return false;
    }
  };

  /// The collectives of one replica, a member of `C`.
  template <class C>
  class On : public SharedMemoryCollectives<C>, public detail::OnBytes<On<C>> {
    static_assert(fits<C>,
                  "HierarchicalCopyAllReduce needs replicas in one address space: use a communicator that models "
                  "SharesMemory, such as ThreadCommunicator");

   public:
    explicit On(C communicator)
        : SharedMemoryCollectives<C>(std::move(communicator)), tensors_(std::make_shared<std::size_t>(0)) {}

    /// Returns the same collectives with another timeout. Both share one count of tensors.
    [[nodiscard]] On with_timeout(std::chrono::nanoseconds timeout) const {
      On changed{comm_.with_timeout(timeout)};
      changed.tensors_ = tensors_;
      return changed;
    }

    void all_reduce_bytes(const Reduction& reduction, std::span<std::byte> values) const {
      const std::size_t main = *tensors_ % comm_.size();
      AlignedBuffer<std::byte> mine;
      const detail::Borrowed loan{comm_};
      mine = reduce_in_groups("all_reduce", reduction, main, values);
      ++*tensors_;  // after all have arrived: members that caught an error agree with the others
      const std::span<const std::byte> total = across_groups(reduction, main, mine, values.size());
      std::copy(total.begin(), total.end(), values.begin());
      comm_.barrier();
    }
    /// Replica 0 always applies the update, because it holds the optimizer's slots; the other mirrors are copies.
    void reduce_and_apply_bytes(const Reduction& reduction, std::span<const std::byte> gradient,
                                std::span<std::byte> mirror, detail::UseReduced update) const {
      AlignedBuffer<std::byte> mine;
      const detail::Borrowed loan{comm_};
      mine = reduce_in_groups("reduce_and_apply", reduction, 0, gradient);
      on_first_replica(across_groups(reduction, 0, mine, gradient.size()), update);
      this->broadcast_from(0, reduction.dtype, reduction.size, mirror);
    }
    void reduce_scatter_bytes(const Reduction& reduction, std::span<const std::byte> values,
                              detail::UseReduced use) const {
      AlignedBuffer<std::byte> mine;
      const detail::Borrowed loan{comm_};
      mine = reduce_in_groups("reduce_scatter", reduction, 0, values);
      on_first_replica(across_groups(reduction, 0, mine, values.size()), use);
      comm_.barrier();
    }
    void update_shards_bytes(const CollectiveCall& call, std::size_t size, std::span<std::byte> mirror,
                             detail::FunctionRef<void(IndexRange)> update) const {
      const detail::Borrowed loan{comm_};
      comm_.publish(call, {});
      if (comm_.rank() == 0) update({0, call.elements});
      this->broadcast_from(0, call.dtype, size, mirror);
    }

   protected:
    using SharedMemoryCollectives<C>::comm_;

    /// The first of two groups; the second has the remaining replicas.
    [[nodiscard]] IndexRange first_group() const noexcept { return {0, comm_.size() / 2}; }
    /// The remaining replicas.
    [[nodiscard]] IndexRange second_group() const noexcept { return {comm_.size() / 2, comm_.size()}; }
    /// The group of this replica.
    [[nodiscard]] IndexRange my_group() const noexcept {
      return comm_.rank() < comm_.size() / 2 ? first_group() : second_group();
    }
    /// Returns the replica that combines the values of `group`: its replicas take turns as `main` increases.
    [[nodiscard]] static std::size_t main_of(IndexRange group, std::size_t main) noexcept {
      return group.begin + main % group.size();
    }
    /// True if this replica combines its group's values.
    [[nodiscard]] bool combines(std::size_t main) const noexcept { return comm_.rank() == main_of(my_group(), main); }

    std::shared_ptr<std::size_t> tensors_;  ///< count of reduced tensors, shared by copies of this object

   private:
    /// Returns the group's combined values as Accumulators, or nothing if another replica combines.
    [[nodiscard]] AlignedBuffer<std::byte> reduce_in_groups(std::string_view operation, const Reduction& reduction,
                                                            std::size_t main, std::span<const std::byte> values) const {
      const std::size_t elements = values.size() / reduction.size;
      // The combining replica is part of the call: replicas that have reduced different numbers of tensors disagree.
      CollectiveCall call = reduction.call(operation, elements);
      call.root = main;
      comm_.publish(call, {.read = values.data()});
      if (!combines(main)) return {};
      AlignedBuffer<std::byte> sums(elements * reduction.wide_size);
      const IndexRange group = my_group();
      reduction.widen(sums.data(), comm_.template peer<std::byte>(group.begin), elements);
      for (std::size_t rank = group.begin + 1; rank < group.end; ++rank)
        reduction.combine(sums.data(), comm_.template peer<std::byte>(rank), elements);
      return sums;
    }

    /// Returns the reduction of both groups, of `bytes` bytes. `mine` holds the values of this replica's group, then
    /// the result until the next collective.
    [[nodiscard]] std::span<const std::byte> across_groups(const Reduction& reduction, std::size_t main,
                                                           AlignedBuffer<std::byte>& mine, std::size_t bytes) const {
      const std::size_t elements = bytes / reduction.size;
      const CollectiveCall call{.operation = "exchange of groups", .elements = elements, .dtype = reduction.dtype};
      AlignedBuffer<std::byte> total(combines(main) ? bytes : 0);
      const detail::Borrowed loan{comm_};  // of `total`, which is destroyed before `mine`
      comm_.publish(call, {.read = mine.data()});
      if (combines(main)) {
        const std::byte* groups[2];
        std::size_t count = 0;
        for (const IndexRange group : {first_group(), second_group()})
          if (group.size() != 0) groups[count++] = comm_.template peer<std::byte>(main_of(group, main));
        alignas(cache_line) std::byte block[detail::block_bytes];
        const std::size_t most = detail::block_bytes / reduction.wide_size;
        for (std::size_t first = 0; first < elements; first += most) {
          const IndexRange range{first, std::min(first + most, elements)};
          reduction.partial->reduce({groups, count, count}, range, block, 0);
          reduction.finish(total.data() + first * reduction.size, block, nullptr, range.size(),
                           reduction.finished_for(comm_.size()));
        }
      }
      comm_.publish(call, {.read = total.data()});
      mine = std::move(total);  // no peer reads the group's values any more
      return {comm_.template peer<std::byte>(main_of(my_group(), main)), bytes};
    }

    void on_first_replica(std::span<const std::byte> total, detail::UseReduced use) const {
      if (comm_.rank() == 0 && !total.empty()) use(0, total);
    }
  };
};

}  // namespace dist
