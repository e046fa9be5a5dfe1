#pragma once

#include <exception>
#include <utility>

#include <dist/comm/communicator.hpp>
#include <dist/comm/failure_notice.hpp>

namespace dist {

/// A member of a group, as the collectives of every policy hold it: they tell failures as their communicator does. A
/// policy that derives from it models TellsFailures with a `with_timeout` of its own.
template <class C>
class Membership {
  static constexpr bool tells_failures = TellsFailures<C>;
  static_assert(tells_failures,
                "a communicator tells failures, with empty functions where nobody is to be told: begin_attempt(), "
                "abandon(notice), abandon(exception), is_broken() and with_timeout(timeout), as in the concept "
                "dist::TellsFailures");

 public:
  explicit Membership(C communicator) : comm_(std::move(communicator)) {}

  [[nodiscard]] const C& communicator() const noexcept { return comm_; }

  void begin_attempt() const noexcept { comm_.begin_attempt(); }
  void abandon(const FailureNotice& notice) const noexcept { comm_.abandon(notice); }
  void abandon(const std::exception_ptr& why) const noexcept { comm_.abandon(why); }
  [[nodiscard]] bool is_broken() const noexcept { return comm_.is_broken(); }

 protected:
  C comm_;
};

}  // namespace dist
