#pragma once

#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/text.hpp>  // to compose the parts of a message

namespace dist {

/// Exit statuses of the processes of a job. They tell cluster managers whether to restart the job.
struct ExitCode {
  /// The program failed with an exception that is not a dist::Error.
  static constexpr int failure = 1;
  /// The job saved a checkpoint and exited on request: restart it, and do not count this as a failure.
  static constexpr int preempted = 42;
  /// A retry may succeed, for instance after the loss of a process: restart the job, and count a failure.
  static constexpr int try_again = 75;
  /// The user has to change something first, such as an argument or a file: do not restart the job.
  static constexpr int must_change = 78;
};

/// Base class of all errors of users, files, the environment and peers that the library reports.
///
/// The text has the form "<problem> (<why>). <suggestion>.": the problem names the variable, file or replica, the
/// reason gives the conflicting values, the suggestion what to change. Catch derived types to handle one kind of error.
/// Quoted input is escaped and its length limited.
class Error : public std::runtime_error {
 public:
  /// Composes the text of the parts, and escapes unprintable characters.
  Error(std::string_view problem, std::string_view why, std::string_view suggestion);

  /// Returns the process exit status for this error (see dist::exit_code). Default: ExitCode::must_change.
  [[nodiscard]] virtual int exit_code() const noexcept;

 private:
  /// Keeps line breaks: an exception of the program may have several lines.
  [[nodiscard]] static std::string shown(std::string_view part);
};

/// An argument that is invalid in every state of the program, such as zero replicas or a batch of zero elements.
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// Extents that should match but do not.
class ShapeMismatch : public Error {
 public:
  using Error::Error;
};

/// A file that is missing, unreadable, truncated, corrupt or of a format that its reader does not support.
class FileError : public Error {
 public:
  /// The text begins with "File '<path>' <problem>".
  FileError(std::string_view path, std::string_view problem, std::string_view why, std::string_view suggestion);

  /// The path of the file.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

/// An object of one strategy was used with another strategy, or in a context where it is not supported (spec B08, B14).
class WrongStrategy : public Error {
 public:
  using Error::Error;
};

/// Replicas did not call the same collectives in the same order (spec E12).
class CollectiveMismatch : public Error {
 public:
  using Error::Error;
};

/// A timeout expired.
class DeadlineExceeded : public Error {
 public:
  using Error::Error;

  [[nodiscard]] int exit_code() const noexcept override;
};

/// A process of the job exited, was killed or lost its connection. Restart the whole job (spec O01).
class Unavailable : public Error {
 public:
  /// The text names the process by `rank` and `host`.
  Unavailable(std::size_t rank, std::string_view host, std::string_view why, std::string_view suggestion);

  /// The rank of the lost process among processes of its kind: workers, unless the message names another kind.
  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  /// The machine of the lost process.
  [[nodiscard]] const std::string& host() const noexcept { return host_; }
  /// The way in which the loss was detected.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  [[nodiscard]] int exit_code() const noexcept override;

 protected:
  /// For processes other than workers: `problem` names the kind.
  Unavailable(std::string_view problem, std::size_t rank, std::string_view host, std::string_view why,
              std::string_view suggestion);

 private:
  std::size_t rank_;
  std::string host_;
  std::string why_;
};

/// Another process of the job reported a failure: an exception in its replica function or in its part of a collective.
class PeerError : public Error {
 public:
  /// `what` is the text of the peer's exception.
  PeerError(std::size_t rank, std::string_view host, std::string_view what);

  /// The rank of the failed process among the workers.
  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  /// The machine of the failed process.
  [[nodiscard]] const std::string& host() const noexcept { return host_; }
  /// The text of the peer's exception.
  [[nodiscard]] const std::string& thrown() const noexcept { return thrown_; }
  [[nodiscard]] int exit_code() const noexcept override;

 private:
  std::size_t rank_;
  std::string host_;
  std::string thrown_;
};

/// The operating system could not provide memory.
class OutOfMemory : public Error {
 public:
  using Error::Error;

  [[nodiscard]] int exit_code() const noexcept override;
};

/// An exception that left the replica function of `replica()`, the index among all replicas in sync. Thrown once, in
/// the thread that called `run`; the strategy stays usable. `cause()` is the original exception, whose text is at the
/// end of this one.
class ReplicaError : public Error {
 public:
  /// The text begins with the index of the replica, and ends with `what`.
  ReplicaError(std::size_t replica, std::size_t replicas, std::string_view what, std::exception_ptr cause);

  /// The index among all replicas in sync.
  [[nodiscard]] std::size_t replica() const noexcept { return replica_; }
  /// The original exception.
  [[nodiscard]] const std::exception_ptr& cause() const noexcept { return cause_; }
  [[nodiscard]] int exit_code() const noexcept override;

 private:
  std::size_t replica_;
  std::exception_ptr cause_;
};

/// Returns the exit status for an exception that reached `main`: Error::exit_code, or ExitCode::failure for other
/// exceptions.
///
///     } catch (const std::exception& error) {
///       std::fprintf(stderr, "%s\n", error.what());
///       return dist::exit_code(error);
///     }
[[nodiscard]] int exit_code(const std::exception& error) noexcept;

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/core/error.ipp>
#endif
