#pragma once

#include <cstddef>
#include <exception>
#include <string_view>
#include <utility>

#include <dist/comm/communicator.hpp>
#include <dist/comm/self.hpp>
#include <dist/core/type_traits.hpp>

namespace dist::detail {

/// Stands at the top of a function that lends operands to the peers. When an exception leaves the function, of a
/// reduction or of a user's update, it waits until no peer uses the operands any more: they may end with the
/// function.
template <SharesMemory C>
class Borrowed {
 public:
  explicit Borrowed(const C& comm) : comm_(comm), exceptions_(std::uncaught_exceptions()) {}
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ~Borrowed() {
    if (std::uncaught_exceptions() > exceptions_) comm_.cancel_operands();
  }

 private:
  const C& comm_;
  int exceptions_;
};

}  // namespace dist::detail

namespace dist {

/// Lets the members see each other's `mine`, whatever that is, for as long as `use(peers)` runs on any of them:
/// `peers(rank)` is that of member `rank`. What they write there must not be what another reads or writes. `operation`,
/// a literal, is how messages call it. A collective call, with the same type, which is not const, on every member.
template <SharesMemory C, class T, class Use>
void share(const C& comm, std::string_view operation, T& mine, Use&& use) {
  const detail::Borrowed loan{comm};
  comm.publish({.operation = operation, .reduction = detail::type_name<T>()}, {.write = &mine});
  std::forward<Use>(use)([&](std::size_t rank) -> T& { return *comm.template peer_to_write<T>(rank); });
  comm.barrier();
}
template <class T, class Use>
void share(const SelfCommunicator&, std::string_view, T& mine, Use&& use) {
  std::forward<Use>(use)([&](std::size_t) -> T& { return mine; });
}

}  // namespace dist
