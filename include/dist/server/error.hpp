#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>

namespace dist {

namespace server {

/// Why a parameter server did not do what was asked.
enum class Problem : std::uint8_t {
  unknown_shard = 1,  ///< there is no shard of this number
  shard_exists,       ///< there is one already
  wrong_type,         ///< the elements are of another type than those given
  wrong_size,         ///< there are more or fewer elements than those given
  wrong_row,          ///< a shard has no such row
  wrong_slot,         ///< a shard has no such slot
  wrong_value,        ///< a value cannot be used, such as the integer 0 to divide by
  no_memory,          ///< the system refuses the memory
  other_program,      ///< the caller runs another build of the program
  lost_variables,     ///< the server was started again since, and has no variables of then
  old_push,           ///< a push is so old that nobody knows whether it came before
  malformed,          ///< the request is none
  in_use,             ///< somebody else has locked the shard for too long
  half_changed,       ///< a process ended while it changed the shard
};

}  // namespace server

/// A parameter server refuses a request, and has changed nothing. `problem()` says why.
class StoreError : public Error {
 public:
  StoreError(server::Problem problem, std::string_view what, std::string_view why, std::string_view suggestion);

  [[nodiscard]] server::Problem problem() const noexcept { return problem_; }
  /// The three parts of the text, for who sends it on.
  [[nodiscard]] const std::string& said() const noexcept { return what_; }
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  [[nodiscard]] const std::string& suggestion() const noexcept { return suggestion_; }
  /// ExitCode::try_again for problems that end with the processes of this job.
  [[nodiscard]] int exit_code() const noexcept override;

 private:
  server::Problem problem_;
  std::string what_;
  std::string why_;
  std::string suggestion_;
};

/// A parameter server is gone, or was started again and has lost what it held (spec L15). What its variables were is in the
/// last checkpoint. `rank()` is its number among the parameter servers, `host()` its address.
class ServerUnavailable : public Unavailable {
 public:
  ServerUnavailable(std::size_t index, std::string_view address, std::string_view happened, std::string_view why,
                    std::string_view suggestion);
};

/// The coordinator of a job with parameter servers is gone, and with it the work of this process, which is a parameter server
/// or a worker. `rank()` is 0; `host()` is the coordinator as the cluster lists it: "chief 0 at 10.0.0.1:2222".
class CoordinatorUnavailable : public Unavailable {
 public:
  /// `self` is this process: "ps 0 at 10.0.0.2:2222". `happened` goes on after the coordinator's name.
  CoordinatorUnavailable(std::string_view self, std::string_view coordinator, std::string_view happened);
};

/// The coordinator has ended the job on request with `exit_code()`, so that the job goes on when it is started again
/// (PreemptionHandler). This process, a parameter server or a worker, ends with the same status.
class Preempted : public Error {
 public:
  Preempted(std::string_view self, std::string_view why, int exit_code);

  [[nodiscard]] int exit_code() const noexcept override { return exit_code_; }

 private:
  int exit_code_;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/server/error.ipp>
#endif
