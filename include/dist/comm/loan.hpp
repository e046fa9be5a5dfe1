#pragma once

#include <exception>

#include <dist/comm/communicator.hpp>

namespace dist::detail {

/// Stands at the top of a function that lends operands to the peers. When an exception leaves the function, of a
/// reduction or of a user's update, it waits until no peer uses the operands any more: they may end with the
/// function.
template <SharesMemory C>
class Loan {
 public:
  explicit Loan(const C& comm) : comm_(comm), exceptions_(std::uncaught_exceptions()) {}
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  ~Loan() {
    if (std::uncaught_exceptions() > exceptions_) comm_.reclaim();
  }

 private:
  const C& comm_;
  int exceptions_;
};

}  // namespace dist::detail
