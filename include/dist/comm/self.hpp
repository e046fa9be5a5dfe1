#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string_view>

#include <dist/comm/communicator.hpp>
#include <dist/comm/element_update.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/comm/reduction.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist {

/// A group of one. Its size is a constant of the type.
class SelfCommunicator {
 public:
  [[nodiscard]] static constexpr std::size_t rank() noexcept { return 0; }
  [[nodiscard]] static constexpr std::size_t size() noexcept { return 1; }
  static constexpr void barrier() noexcept {}

  [[nodiscard]] static constexpr SelfCommunicator local() noexcept { return {}; }
  static constexpr void begin_attempt() noexcept {}
  static constexpr void cancel(const FailureNotice&) noexcept {}
  static constexpr void cancel(const std::exception_ptr&) noexcept {}
  [[nodiscard]] static constexpr bool is_broken() noexcept { return false; }
  [[nodiscard]] static constexpr SelfCommunicator with_timeout(std::chrono::nanoseconds) noexcept { return {}; }
  static constexpr void set_structure(std::uint64_t) noexcept {}
  static constexpr void begin_run(std::uint64_t) noexcept {}
  static constexpr void begin_alone() noexcept {}
  static constexpr void end_run() noexcept {}
  static constexpr void begin_call() noexcept {}
};

/// The collectives of a group of one. Each is the identity (spec H03) and disappears at compile time, so code for
/// replicas has no overhead with one.
class SelfCollectives : public ReducesByRecords {
 public:
  static constexpr std::string_view name = "none needed";

  [[nodiscard]] static constexpr SelfCommunicator communicator() noexcept { return {}; }

  static constexpr void begin_attempt() noexcept {}
  static constexpr void cancel(const FailureNotice&) noexcept {}
  static constexpr void cancel(const std::exception_ptr&) noexcept {}
  [[nodiscard]] static constexpr bool is_broken() noexcept { return false; }
  [[nodiscard]] static constexpr SelfCollectives with_timeout(std::chrono::nanoseconds) noexcept { return {}; }

  template <class T, ReduceOp<T> Op>
  static constexpr void all_reduce(Op, std::span<T>) noexcept {}
  static constexpr void all_reduce_bytes(const Record&, std::span<std::byte>) noexcept {}

  template <class T>
  static constexpr void broadcast(std::size_t, std::span<T>) noexcept {}

  template <class T>
  static constexpr void all_gather(std::span<const T> mine, std::span<const std::size_t>, std::span<T> all) noexcept {
    DIST_EXPECT(mine.size() == all.size());
    if (mine.data() != all.data()) std::copy(mine.begin(), mine.end(), all.begin());
  }

  template <class T>
  static constexpr void all_gather_values(std::string_view, const T& mine, std::span<T> all_values) noexcept {
    DIST_EXPECT(all_values.size() == 1);
    all_values[0] = mine;
  }

  template <class T, ReduceOp<T> Op, ElementUpdate<T> Update>
  static void reduce_and_apply(Op, std::span<const T> gradient, std::span<T> mirror, const Update& update) {
    update_shards(gradient, mirror, update);
  }

  template <class T, ReduceOp<T> Op, class Use>
  static constexpr void reduce_scatter(Op, std::span<const T> values, Use&& use) {
    if (!values.empty()) use(std::size_t{0}, values);
  }

  template <class T, ElementUpdate<T> Update>
  static void update_shards(std::span<const T> gradients, std::span<T> mirror, const Update& update) {
    detail::update_range(update, 0, mirror, gradients);
  }
};

}  // namespace dist
