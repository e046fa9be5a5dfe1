#pragma once

#include <cstddef>
#include <exception>
#include <string_view>
#include <utility>

#include <dist/comm/communicator.hpp>
#include <dist/comm/self.hpp>
#include <dist/core/type_traits.hpp>

namespace dist::detail {

/// Guard in functions that lend operands. If an exception leaves the function, it waits until no peer uses the
/// operands, because they may end with the function.
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

/// Gives members access to each other's `mine` while `use(peers)` runs on any of them; `peers(rank)` is the object of
/// member `rank`. Members must not write to data that another one reads or writes. `operation`, a literal, is the name
/// in messages. A collective call, with the same non-const type on every member.
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
