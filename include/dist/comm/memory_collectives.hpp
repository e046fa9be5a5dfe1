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
#include <dist/core/hash.hpp>
#include <dist/core/memory_space.hpp>

namespace dist {

/// Base class of the collectives of every policy: a group member that reports failures by its communicator. Derived
/// policies add `with_timeout` to model ReportsFailures.
template <class C>
class Membership {
  static constexpr bool tells_failures = ReportsFailures<C>;
  static_assert(tells_failures,
                "a communicator must report failures, with empty functions if it has no peers: add begin_attempt(), "
                "cancel(notice), cancel(exception), is_broken() and with_timeout(timeout), as in the concept "
                "dist::ReportsFailures");

 public:
  /// Calls are forwarded to this communicator.
  explicit Membership(C communicator) : comm_(std::move(communicator)) {}

  [[nodiscard]] const C& communicator() const noexcept { return comm_; }

  void begin_attempt() const noexcept { comm_.begin_attempt(); }
  void cancel(const FailureNotice& notice) const noexcept { comm_.cancel(notice); }
  void cancel(const std::exception_ptr& why) const noexcept { comm_.cancel(why); }
  [[nodiscard]] bool is_broken() const noexcept { return comm_.is_broken(); }

 protected:
  C comm_;  ///< the member's communicator
};

namespace detail {

/// Typed functions for collectives `Self`, implemented by its functions on bytes:
/// - `broadcast_bytes(call, values)` copies the values of member `call.root` to every member;
/// - `all_gather_bytes(call, mine, counts, size, all)`, where `counts` are numbers of elements of `size` bytes;
/// - `gather_values_bytes(call, mine, all)`, where all members give the same number of bytes.
template <class Self>
class GathersBytes {
 public:
  template <class T>
  void broadcast(std::size_t root, std::span<T> values) const {
    self().broadcast_bytes({.operation = "broadcast",
                            .elements = values.size(),
                            .dtype = dtype_name<T>,
                            .root = root,
                            .names = HashOfNames::of("broadcast", {}, dtype_name<T>)},
                           std::as_writable_bytes(values));
  }
  template <class T>
  void all_gather(std::span<const T> mine, std::span<const std::size_t> counts, std::span<T> all) const {
    self().all_gather_bytes({.operation = "all_gather",
                             .elements = all.size(),
                             .dtype = dtype_name<T>,
                             .counts = hash_of_numbers(counts),
                             .names = HashOfNames::of("all_gather", {}, dtype_name<T>)},
                            std::as_bytes(mine), counts, sizeof(T), std::as_writable_bytes(all));
  }
  template <class T>
  requires std::is_trivially_copyable_v<T> DIST_ALWAYS_INLINE void all_gather_values(std::string_view operation,
                                                                                     const T& mine,
                                                                                     std::span<T> all_values) const {
    constexpr std::string_view dtype = "exchanged bytes";
    self().gather_values_bytes(
        {.operation = operation, .elements = sizeof(T), .dtype = dtype, .names = HashOfNames::of(operation, {}, dtype)},
        std::as_bytes(std::span<const T>{&mine, 1}), std::as_writable_bytes(all_values));
  }

 private:
  [[nodiscard]] const Self& self() const noexcept { return static_cast<const Self&>(*this); }
};

}  // namespace detail

/// The policy-independent collectives of members with shared memory, which read each other's operands in place. Derived
/// policies check `SharesMemory<C>` by a `static_assert` with an explanation; a constraint here would fail first.
template <class C>
class SharedMemoryCollectives : public Membership<C>, public detail::GathersBytes<SharedMemoryCollectives<C>> {
 public:
  using Membership<C>::Membership;

  void broadcast_bytes(const CollectiveCall& call, std::span<std::byte> values) const;
  void all_gather_bytes(const CollectiveCall& call, std::span<const std::byte> mine,
                        std::span<const std::size_t> counts, std::size_t size, std::span<std::byte> all) const;
  void gather_values_bytes(const CollectiveCall& call, std::span<const std::byte> mine, std::span<std::byte> all) const;

 protected:
  /// Copies the values of member `root`, of elements of `size` bytes, to all members.
  void broadcast_from(std::size_t root, std::string_view dtype, std::size_t size, std::span<std::byte> values) const {
    broadcast_bytes({.operation = "broadcast", .elements = values.size() / size, .dtype = dtype, .root = root}, values);
  }

  using Membership<C>::comm_;
};
/// Deduces the communicator type.
template <class C>
SharedMemoryCollectives(C) -> SharedMemoryCollectives<C>;

template <class C>
void SharedMemoryCollectives<C>::broadcast_bytes(const CollectiveCall& call, std::span<std::byte> values) const {
  DIST_EXPECT(call.root < comm_.size());
  const detail::Borrowed loan{comm_};
  comm_.publish(call, {.read = values.data()});
  const std::byte* const theirs = comm_.template peer<std::byte>(call.root);
  if (theirs != values.data()) std::copy_n(theirs, values.size(), values.data());  // unless all share one array
  comm_.barrier();
}

template <class C>
void SharedMemoryCollectives<C>::all_gather_bytes(const CollectiveCall& call, std::span<const std::byte> mine,
                                                  std::span<const std::size_t> counts, std::size_t size,
                                                  std::span<std::byte> all) const {
  DIST_EXPECT(counts.size() == comm_.size() && mine.size() == counts[comm_.rank()] * size);
  DIST_EXPECT(std::accumulate(counts.begin(), counts.end(), std::size_t{0}) * size == all.size());
  const detail::Borrowed loan{comm_};
  comm_.publish(call, {.read = mine.data()});
  std::byte* place = all.data();
  for (std::size_t rank = 0; rank < comm_.size(); place += counts[rank] * size, ++rank) {
    const std::byte* const theirs = comm_.template peer<std::byte>(rank);
    if (theirs != place) std::copy_n(theirs, counts[rank] * size, place);
  }
  comm_.barrier();
}

template <class C>
void SharedMemoryCollectives<C>::gather_values_bytes(const CollectiveCall& call, std::span<const std::byte> mine,
                                                     std::span<std::byte> all) const {
  DIST_EXPECT(all.size() == comm_.size() * mine.size());
  const auto copy_from = [&](auto&& of) {
    for (std::size_t rank = 0; rank < comm_.size(); ++rank)
      std::copy_n(of(rank), mine.size(), all.data() + rank * mine.size());
  };
  if constexpr (ExchangesSmall<C>)
    if (mine.size() <= C::exchange_capacity) {
      comm_.exchange(call, mine);
      return copy_from([&](std::size_t rank) { return comm_.template received<std::byte>(rank); });
    }
  const detail::Borrowed loan{comm_};
  comm_.publish(call, {.read = mine.data()});
  copy_from([&](std::size_t rank) { return comm_.template peer<std::byte>(rank); });
  comm_.barrier();
}

/// Copies the values of member `root` to every member. A collective call.
template <SharesMemory C, class T>
void broadcast(const C& comm, std::size_t root, std::span<T> values) {
  SharedMemoryCollectives{comm}.broadcast(root, values);
}
/// Copies the values of all members, concatenated in rank order, to every member (spec E06, H21). Member `rank` gives
/// `counts[rank]` values; members with different `counts` throw CollectiveMismatch. `mine` may be this member's part of
/// `all`. A collective call.
template <SharesMemory C, class T>
void all_gather(const C& comm, std::span<const T> mine, std::span<const std::size_t> counts, std::span<T> all) {
  SharedMemoryCollectives{comm}.all_gather(mine, counts, all);
}
/// Copies one value of every member to all, as `all_values[rank]`: shapes, counts, flags. `operation`, a literal, is
/// the name in messages. A collective call.
template <SharesMemory C, class T>
  requires std::is_trivially_copyable_v<T>
void all_gather_values(const C& comm, std::string_view operation, const T& mine, std::span<T> all_values) {
  SharedMemoryCollectives{comm}.all_gather_values(operation, mine, all_values);
}

}  // namespace dist
