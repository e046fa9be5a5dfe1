#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <dist/comm/communicator.hpp>
#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/memory_collectives.hpp>
#include <dist/comm/reduce_block.hpp>
#include <dist/comm/reduction.hpp>
#include <dist/comm/share.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/index_range.hpp>

namespace dist {

/// Reduction on replica 0, from which the other replicas copy the result (spec H04). Simple, and bit-identical to
/// ThreadAllReduce, but moves more bytes and leaves the other replicas idle.
struct ReductionToOneDevice {
  static constexpr std::string_view name = "ReductionToOneDevice";
  /// The replica that reduces.
  static constexpr std::size_t device = 0;

  /// True if the policy supports communicator `C`.
  template <class C>
  static constexpr bool fits = SharesMemory<C>;

  /// The policy for devices with separate memory, specialized in headers for these devices.
  template <class Device>
  struct OnDevices : detail::NoOps {
    [[nodiscard]] static constexpr bool require_header() {
      static_assert(
          sizeof(Device) == 0,
          "ReductionToOneDevice of GPU memory needs a separate header: include <dist/comm/cuda/policies.cuh>");
      return false;
    }
  };

  /// The collectives of one replica, a member of `C`.
  template <class C>
  class On : public SharedMemoryCollectives<C>, public detail::OnBytes<On<C>> {
    static_assert(
        fits<C>,
        "ReductionToOneDevice needs replicas in one address space: use a communicator that models SharesMemory, "
        "such as ThreadCommunicator");

   public:
    using SharedMemoryCollectives<C>::SharedMemoryCollectives;

    [[nodiscard]] On with_timeout(std::chrono::nanoseconds timeout) const { return On{comm_.with_timeout(timeout)}; }

    void all_reduce_bytes(const Reduction& reduction, std::span<std::byte> values) const {
      const detail::Borrowed loan{comm_};
      reduce("all_reduce", reduction, values, [&](std::size_t first, std::span<const std::byte> reduced) {
        std::copy(reduced.begin(), reduced.end(), values.data() + first * reduction.size);
      });
      this->broadcast_from(device, reduction.dtype, reduction.size, values);
    }
    /// Replica 0 applies the update; the other mirrors are copies.
    void reduce_and_apply_bytes(const Reduction& reduction, std::span<const std::byte> gradient,
                                std::span<std::byte> mirror, detail::UseReduced update) const {
      const detail::Borrowed loan{comm_};
      reduce("reduce_and_apply", reduction, gradient, update);
      this->broadcast_from(device, reduction.dtype, reduction.size, mirror);
    }
    void reduce_scatter_bytes(const Reduction& reduction, std::span<const std::byte> values,
                              detail::UseReduced use) const {
      const detail::Borrowed loan{comm_};
      reduce("reduce_scatter", reduction, values, use);
      comm_.barrier();
    }
    void update_shards_bytes(const CollectiveCall& call, std::size_t size, std::span<std::byte> mirror,
                             detail::FunctionRef<void(IndexRange)> update) const {
      const detail::Borrowed loan{comm_};
      comm_.publish(call, {});
      if (comm_.rank() == device) update({0, call.elements});
      this->broadcast_from(device, call.dtype, size, mirror);
    }

   private:
    /// Calls `use` with blocks of the reduction, on replica 0 only.
    void reduce(std::string_view operation, const Reduction& reduction, std::span<const std::byte> values,
                detail::UseReduced use) const {
      const std::size_t elements = values.size() / reduction.size;
      comm_.publish(reduction.call(operation, elements), {.read = values.data()});
      if (comm_.rank() == device) detail::reduce_range(reduction, comm_, {0, elements}, use);
    }

    using SharedMemoryCollectives<C>::comm_;
  };
};

}  // namespace dist
