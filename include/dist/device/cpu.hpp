#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/future.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/vectors.hpp>
#include <dist/device/arena.hpp>

namespace dist {

/// The host's processors as devices: each replica is a thread and uses host memory.
struct Cpu {
  static constexpr std::string_view name = "Cpu";
  /// The type in device names.
  static constexpr std::string_view type = "cpu";
  using Memory = Arena;
  using Space = HostMemory;
  template <class T>
  using Span = std::span<T>;

  /// A queue that runs work at once, in the calling thread, as plain loops.
  class Queue {
   public:
    using Space = HostMemory;
    /// A marker in the queue, always complete.
    struct Event {
      explicit constexpr Event(const Queue&) noexcept {}
    };

    static constexpr void enter() noexcept {}

    /// Calls `body(i)` for each index of the range. The calls must be independent, as the compiler may vectorise the
    /// loop.
    template <class Body>
    static DIST_ALWAYS_INLINE void for_each(IndexRange range, Body&& body) {
      DIST_INDEPENDENT_LOOP
      for (std::size_t i = range.begin; i < range.end; ++i) body(i);
    }

    /// Reduces `body(i)` over all indices of the range with `op`. Uses eight interleaved partial results, so that the
    /// loop vectorises. The order depends only on the range, so results are reproducible. 16-bit floating-point values
    /// are combined as floats and rounded once.
    template <class Op, class Body>
    [[nodiscard]] static DIST_ALWAYS_INLINE auto transform_reduce(Op op, IndexRange range, Body&& body) {
      using T = std::decay_t<decltype(body(range.begin))>;
      if constexpr (detail::require_queue_op<Op, T>()) {
        using Combined = Accumulator<T>;
        constexpr std::size_t lanes = 8;
        detail::Lanes<Combined, lanes> partial;
        for (std::size_t lane = 0; lane < lanes; ++lane) partial[lane] = detail::identity_of<Combined>(op);
        std::size_t i = range.begin;
        for (const std::size_t tail = range.end - range.size() % lanes; i != tail; i += lanes)
          for (std::size_t lane = 0; lane < lanes; ++lane)
            partial[lane] = op(partial[lane], static_cast<Combined>(body(i + lane)));
        Combined combined = partial[0];
        for (std::size_t lane = 1; lane < lanes; ++lane) combined = op(combined, partial[lane]);
        for (; i != range.end; ++i) combined = op(combined, static_cast<Combined>(body(i)));
        return static_cast<T>(Op::finish(combined, range.size()));
      } else {
        return detail::refused<T>();
      }
    }

    /// `transform_reduce` as a Future.
    template <class Op, class Body>
    [[nodiscard]] static DIST_ALWAYS_INLINE auto start_transform_reduce(Op op, IndexRange range, Body&& body) {
      return Ready{transform_reduce(op, range, std::forward<Body>(body))};
    }

    /// `transform_reduce` into the single element of `to`.
    template <class Op, class Body, class T>
    static DIST_ALWAYS_INLINE void transform_reduce_to(Op op, IndexRange range, Body&& body, std::span<T> to) {
      DIST_EXPECT(to.size() == 1);
      to[0] = transform_reduce(op, range, std::forward<Body>(body));
    }

    /// Copies elements between spans of equal size, which must be identical or not overlap.
    template <class T>
    static DIST_ALWAYS_INLINE void copy(std::type_identity_t<std::span<const T>> from, std::span<T> to) {
      DIST_EXPECT(from.size() == to.size());
      if (from.data() != to.data()) std::copy_n(from.data(), from.size(), to.data());
    }
    template <class T>
    static DIST_ALWAYS_INLINE void fill(std::span<T> to, std::type_identity_t<T> value) {
      std::fill_n(to.data(), to.size(), value);
    }

    static constexpr void record(Event&) noexcept {}
    static constexpr void wait_for(const Event&) noexcept {}
    static constexpr void wait() noexcept {}
    [[nodiscard]] static constexpr bool is_done() noexcept { return true; }
  };
  /// The queues of replicas on these devices, without state.
  struct Queues {
    explicit constexpr Queues(std::span<const std::size_t>, std::chrono::nanoseconds = {}) noexcept {}
    /// The queue of a replica.
    [[nodiscard]] constexpr Queue operator[](std::size_t) const noexcept { return {}; }
  };

  /// Returns the number of processors that this process may use.
  [[nodiscard]] static std::size_t count();

  /// Returns the smaller of `count()` and the CPU quota of the process's control groups under `root` (processor_quota).
  [[nodiscard]] static std::size_t most_at_once(const std::string& root = "");

  /// Returns the default devices for `replicas` replicas, in replica order: one per core, near each other
  /// (placement_order), from this process's share of the processors. Returns fewer devices than replicas if they are
  /// shared.
  [[nodiscard]] static std::vector<std::size_t> placement(std::size_t replicas);

  /// Returns the processor of each replica's thread, given their devices. Returns none if replicas share devices, or a
  /// quota below `count()` indicates that other jobs use the same processors, because bound threads would wait for
  /// these.
  [[nodiscard]] static std::vector<std::size_t> processors(std::span<const std::size_t> devices,
                                                           const std::string& root = "");

  /// Returns a name such as "/cpu:0".
  [[nodiscard]] static std::string device_name(std::size_t device);

  /// Throws InvalidArgument for `device`, which is not a processor that this process may use.
  [[noreturn]] static void refuse(std::string_view device);
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/device/cpu.ipp>
#endif
