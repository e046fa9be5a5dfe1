#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include <dist/core/error.hpp>

namespace dist {

/// The processes of a job could not come together: an address that cannot be bound, lists that differ, a rank that came
/// twice, a wrong secret. A wait that was too long is DeadlineExceeded instead.
class RendezvousError : public Error {
 public:
  using Error::Error;

  [[nodiscard]] int exit_code() const noexcept override { return ExitCode::try_again; }
};

namespace net {

/// A peer sent what no process of this library sends.
class FrameError : public Error {
 public:
  using Error::Error;
};

/// What the system says about `code`.
[[nodiscard]] inline std::string system_text(int code = errno) { return strerror(code); }

/// An error as it travels: the three parts of its text, and whether it may be over in a while.
struct Refusal {
  std::string problem;
  std::string why;
  std::string suggestion;
  bool passes = false;
};

}  // namespace net
}  // namespace dist
