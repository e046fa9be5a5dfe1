#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>

namespace dist {

/// A scheduled function has no result, though it did not fail: it was taken out of the queue, or nobody knows what
/// became of it (spec L05, L08).
class Cancelled : public Error {
 public:
  Cancelled(std::string_view problem, std::string_view why)
      : Error(problem, why, "Schedule the function again if its result is wanted") {}

  [[nodiscard]] int exit_code() const noexcept override { return ExitCode::try_again; }
};

/// A scheduled function threw on a worker, or could not begin there.
class RemoteError : public Error {
 public:
  RemoteError(std::size_t worker, std::string_view address, std::string_view function, std::string_view thrown,
              std::string_view why);

  /// The number of the worker.
  [[nodiscard]] std::size_t worker() const noexcept { return worker_; }
  /// The type of what the function threw; empty where it threw nothing, as it could not begin.
  [[nodiscard]] const std::string& thrown() const noexcept { return thrown_; }
  /// The text of what it threw.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

 private:
  std::size_t worker_;
  std::string thrown_;
  std::string why_;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/coordinator/error.ipp>
#endif
