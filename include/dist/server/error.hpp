#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>

namespace dist {

namespace server {

/// The reason why a parameter server rejected a request.
enum class Problem : std::uint8_t {
  unknown_shard = 1,  ///< the shard does not exist
  shard_exists,       ///< the shard exists already
  wrong_type,         ///< the values have another type than the shard
  wrong_size,         ///< the number of values does not fit the shard
  wrong_row,          ///< the row does not exist
  wrong_slot,         ///< the slot does not exist
  wrong_value,        ///< a value is invalid, such as the integer 0 as a divisor
  no_memory,          ///< out of memory
  other_program,      ///< the caller runs another build of the program
  lost_variables,     ///< the server was restarted and has lost the variables
  old_push,           ///< a push is too old to tell whether it is a repetition
  malformed,          ///< the request cannot be parsed
  in_use,             ///< another process or thread has locked the shard for too long
  half_changed,       ///< a process ended while it changed the shard
};

}  // namespace server

/// Error of a parameter server that rejected a request and changed nothing.
class StoreError : public Error {
 public:
  /// `what`, `why` and `suggestion` are the parts of the message.
  StoreError(server::Problem problem, std::string_view what, std::string_view why, std::string_view suggestion);

  /// The cause of the rejection, for programs that handle it.
  [[nodiscard]] server::Problem problem() const noexcept { return problem_; }
  /// The parts of the message.
  [[nodiscard]] const std::string& said() const noexcept { return what_; }
  /// The reason in the message.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  /// The suggested action in the message.
  [[nodiscard]] const std::string& suggestion() const noexcept { return suggestion_; }
  /// ExitCode::try_again for problems that a restart of the job solves.
  [[nodiscard]] int exit_code() const noexcept override;

 private:
  server::Problem problem_;
  std::string what_;
  std::string why_;
  std::string suggestion_;
};

/// Error for a parameter server that is unreachable, or has lost its variables in a restart (spec L15). `rank()` is its
/// index among the parameter servers, `host()` its address.
class ServerUnavailable : public Unavailable {
 public:
  /// `index` is the number of the server; `happened` describes the event, such as a failed call.
  ServerUnavailable(std::size_t index, std::string_view address, std::string_view happened, std::string_view why,
                    std::string_view suggestion);
};

/// Error of a parameter server or worker that has lost its coordinator. `rank()` is 0; `host()` is the coordinator as
/// listed in the cluster: "chief 0 at 10.0.0.1:2222".
class CoordinatorUnavailable : public Unavailable {
 public:
  /// `self` is this process: "ps 0 at 10.0.0.2:2222". `happened` follows the coordinator's name.
  CoordinatorUnavailable(std::string_view self, std::string_view coordinator, std::string_view happened);
};

/// Error of a parameter server or worker whose coordinator has ended the job on request (PreemptionHandler). The
/// process exits with the same status, so that the job continues when it is restarted.
class Preempted : public Error {
 public:
  /// `self` describes this process, `exit_code` is the status of the coordinator.
  Preempted(std::string_view self, std::string_view why, int exit_code);

  [[nodiscard]] int exit_code() const noexcept override { return exit_code_; }

 private:
  int exit_code_;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/server/error.ipp>
#endif
