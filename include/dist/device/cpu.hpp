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

/// The host's processors as devices: one replica is one thread, its memory is the host's.
struct Cpu {
  static constexpr std::string_view name = "Cpu";
  /// As it stands in device names.
  static constexpr std::string_view type = "cpu";
  using Memory = Arena;
  using Space = HostMemory;
  template <class T>
  using Span = std::span<T>;

  /// The work is done at once, by the thread that puts it here: every call is the loop itself, and what orders or waits
  /// is empty.
  class Queue {
   public:
    using Space = HostMemory;
    struct Event {
      explicit constexpr Event(const Queue&) noexcept {}
    };

    static constexpr void enter() noexcept {}

    /// Calls `body(i)` for every index of the range, in one loop that the compiler may vectorise: the calls must not
    /// depend on each other.
    template <class Body>
    static DIST_ALWAYS_INLINE void for_each(IndexRange range, Body&& body) {
      DIST_INDEPENDENT_LOOP
      for (std::size_t i = range.begin; i < range.end; ++i) body(i);
    }

    /// `op` over `body(i)` for every index of the range. Eight interleaved partial results, so that the loop vectorises;
    /// the order depends on the range only, so the same range gives the same bits. 16-bit floating-point values are
    /// combined as floats and rounded once.
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

    /// The same, not waited for.
    template <class Op, class Body>
    [[nodiscard]] static DIST_ALWAYS_INLINE auto start_transform_reduce(Op op, IndexRange range, Body&& body) {
      return Ready{transform_reduce(op, range, std::forward<Body>(body))};
    }

    /// The same into the one element of `to`.
    template <class Op, class Body, class T>
    static DIST_ALWAYS_INLINE void transform_reduce_to(Op op, IndexRange range, Body&& body, std::span<T> to) {
      DIST_EXPECT(to.size() == 1);
      to[0] = transform_reduce(op, range, std::forward<Body>(body));
    }

    /// As many elements, which do not overlap unless they are the same.
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
  /// Of replicas on these devices, which need nothing.
  struct Queues {
    explicit constexpr Queues(std::span<const std::size_t>, std::chrono::nanoseconds = {}) noexcept {}
    [[nodiscard]] constexpr Queue operator[](std::size_t) const noexcept { return {}; }
  };

  /// As many as there are processors that this process may use.
  [[nodiscard]] static std::size_t count();

  /// The lesser of `count()` and the quota of the process's control groups under `root` (processor_quota).
  [[nodiscard]] static std::size_t most_at_once(const std::string& root = "");

  /// The devices of `replicas` replicas when nobody names them, in replica order: one per core, near each other
  /// (placement_order), among this process's share of the processors. Fewer than replicas when these share them all.
  [[nodiscard]] static std::vector<std::size_t> placement(std::size_t replicas);

  /// The processor of each replica's thread, given their devices. None where replicas share devices; nor where a quota
  /// below `count()` says that other jobs use the same processors, because bound threads would wait for these.
  [[nodiscard]] static std::vector<std::size_t> processors(std::span<const std::size_t> devices,
                                                           const std::string& root = "");

  /// "/cpu:0"
  [[nodiscard]] static std::string device_name(std::size_t device);

  /// Throws the InvalidArgument of `device`, which names no processor that this process may use.
  [[noreturn]] static void refuse(std::string_view device);
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/device/cpu.ipp>
#endif
