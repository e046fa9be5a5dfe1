#pragma once

#include <cstddef>
#include <exception>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/comm/communicator.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/comm/share.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/memory_space.hpp>

namespace dist {

/// Gives every member the values of member `root`. A collective call.
template <SharesMemory C, class T>
void broadcast(const C& comm, std::size_t root, std::span<T> values) {
  DIST_EXPECT(root < comm.size());
  const detail::Borrowed loan{comm};
  comm.publish({.operation = "broadcast", .elements = values.size(), .dtype = dtype_name<T>, .root = root},
               {.read = values.data()});
  const T* const theirs = comm.template peer<T>(root);
  if (theirs != values.data()) std::copy_n(theirs, values.size(), values.data());  // unless all gave one memory
  comm.barrier();
}

/// Gives every member the value of every member, `all_values[rank]`: shapes, counts, flags. `operation`, a literal, is how
/// messages call it. A collective call.
template <SharesMemory C, class T>
  requires std::is_trivially_copyable_v<T>
void all_gather_values(const C& comm, std::string_view operation, const T& mine, std::span<T> all_values) {
  DIST_EXPECT(all_values.size() == comm.size());
  const CollectiveCall call{.operation = operation, .elements = sizeof(T), .dtype = "exchanged bytes"};
  if constexpr (ExchangesSmall<C>) {
    if constexpr (sizeof(T) <= C::exchange_capacity) {
      comm.exchange(call, std::span<const T>{&mine, 1});
      for (std::size_t rank = 0; rank < all_values.size(); ++rank) all_values[rank] = *comm.template received<T>(rank);
      return;
    }
  }
  const detail::Borrowed loan{comm};
  comm.publish(call, {.read = &mine});
  for (std::size_t rank = 0; rank < all_values.size(); ++rank) all_values[rank] = *comm.template peer<T>(rank);
  comm.barrier();
}

/// A member of a group, as the collectives of every policy hold it: they tell failures as their communicator does. A
/// policy that derives from it models ReportsFailures with a `with_timeout` of its own.
template <class C>
class Membership {
  static constexpr bool tells_failures = ReportsFailures<C>;
  static_assert(tells_failures,
                "a communicator tells failures, with empty functions where nobody is to be told: begin_attempt(), "
                "cancel(notice), cancel(exception), is_broken() and with_timeout(timeout), as in the concept "
                "dist::ReportsFailures");

 public:
  explicit Membership(C communicator) : comm_(std::move(communicator)) {}

  [[nodiscard]] const C& communicator() const noexcept { return comm_; }

  void begin_attempt() const noexcept { comm_.begin_attempt(); }
  void cancel(const FailureNotice& notice) const noexcept { comm_.cancel(notice); }
  void cancel(const std::exception_ptr& why) const noexcept { comm_.cancel(why); }
  [[nodiscard]] bool is_broken() const noexcept { return comm_.is_broken(); }

 protected:
  C comm_;
};

}  // namespace dist
