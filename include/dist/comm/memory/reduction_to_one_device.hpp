#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <dist/comm/communicator.hpp>
#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/element_update.hpp>
#include <dist/comm/memory/shared_memory_collectives.hpp>
#include <dist/comm/reduce_block.hpp>
#include <dist/comm/share.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

/// Reduction on replica 0, from which the others copy the result (spec H04). Moves more bytes than
/// ThreadAllReduce and leaves all but one replica idle; it is the simple way, and the same result bit for bit.
struct ReductionToOneDevice {
  static constexpr std::string_view name = "ReductionToOneDevice";
  static constexpr std::size_t device = 0;

  /// Whether it works between members like these.
  template <class C>
  static constexpr bool fits = SharesMemory<C>;

  /// The policy where replicas are on devices whose memory the host does not reach: a header for these devices has it.
  template <class Device>
  struct OnDevices : detail::NoOps {
    [[nodiscard]] static constexpr bool require_header() {
      static_assert(sizeof(Device) == 0,
                    "ReductionToOneDevice of memory of GPUs has a header of its own: include "
                    "<dist/comm/cuda/policies.cuh>");
      return false;
    }
  };

  template <class C>
  class On : public SharedMemoryCollectives<C> {
    static_assert(
        fits<C>,
        "ReductionToOneDevice needs replicas in one address space: use a communicator that models SharesMemory, "
        "such as ThreadCommunicator");

   public:
    using SharedMemoryCollectives<C>::SharedMemoryCollectives;

    [[nodiscard]] On with_timeout(std::chrono::nanoseconds timeout) const { return On{comm_.with_timeout(timeout)}; }

    template <class T, ReduceOp<T> Op>
    void all_reduce(Op op, std::span<T> values) const {
      const detail::Borrowed loan{comm_};
      comm_.publish(
          {.operation = "all_reduce", .reduction = Op::name, .elements = values.size(), .dtype = dtype_name<T>},
          {.read = values.data()});
      if (comm_.rank() == device)
        detail::reduce_range<T>(op, comm_, {0, values.size()}, [&](std::size_t first, std::span<const T> sums) {
          std::copy_n(sums.data(), sums.size(), values.data() + first);
        });
      this->broadcast(device, values);
    }

    /// Replica 0 updates; the other mirrors are copies.
    template <class T, ReduceOp<T> Op, ElementUpdate<T> Update>
    void reduce_and_apply(Op op, std::span<const T> gradient, std::span<T> mirror, const Update& update) const {
      const detail::Borrowed loan{comm_};
      comm_.publish(
          {.operation = "reduce_and_apply", .reduction = Op::name, .elements = mirror.size(), .dtype = dtype_name<T>},
          {.read = gradient.data()});
      if (comm_.rank() == device)
        detail::reduce_range<T>(op, comm_, {0, gradient.size()},
                                [&](std::size_t first, std::span<const T> reduced) DIST_INLINE_LAMBDA {
                                  detail::update_block(update, first, mirror.subspan(first, reduced.size()), reduced);
                                });
      this->broadcast(device, mirror);
    }

    template <class T, ReduceOp<T> Op, class Use>
    void reduce_scatter(Op op, std::span<const T> values, Use&& use) const {
      const detail::Borrowed loan{comm_};
      comm_.publish(
          {.operation = "reduce_scatter", .reduction = Op::name, .elements = values.size(), .dtype = dtype_name<T>},
          {.read = values.data()});
      if (comm_.rank() == device) detail::reduce_range<T>(op, comm_, {0, values.size()}, use);
      comm_.barrier();
    }

    template <class T, ElementUpdate<T> Update>
    void update_shards(std::span<const T> gradients, std::span<T> mirror, const Update& update) const {
      const detail::Borrowed loan{comm_};
      comm_.publish({.operation = "update_shards", .elements = mirror.size(), .dtype = dtype_name<T>}, {});
      if (comm_.rank() == device) detail::update_range(update, 0, mirror, gradients);
      this->broadcast(device, mirror);
    }

   private:
    using SharedMemoryCollectives<C>::comm_;
  };
};

}  // namespace dist
