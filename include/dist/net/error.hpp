#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include <dist/core/error.hpp>

namespace dist {

/// Thrown if a job's processes cannot connect: an address cannot be bound, lists differ, a rank connects twice, or a
/// secret is wrong. Timeouts throw DeadlineExceeded.
class RendezvousError : public Error {
 public:
  using Error::Error;

  [[nodiscard]] int exit_code() const noexcept override { return ExitCode::try_again; }
};

namespace net {

/// Thrown if a peer sends data that is not from this library.
class FrameError : public Error {
 public:
  using Error::Error;
};

/// The system's text for `code`.
[[nodiscard]] inline std::string system_text(int code = errno) { return strerror(code); }

/// A serialisable error: the parts of its text, and whether it is temporary.
struct Refusal {
  std::string problem;     ///< the conflict, see dist::Error
  std::string why;         ///< the reason, with values
  std::string suggestion;  ///< the change to make
  bool passes = false;     ///< true if another attempt may succeed
};

}  // namespace net
}  // namespace dist
