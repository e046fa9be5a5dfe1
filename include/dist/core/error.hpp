#pragma once

#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/text.hpp>  // to compose the parts of a message

namespace dist {

/// The statuses with which processes of a job end, so that a cluster knows which of them to start again.
struct ExitCode {
  /// The program failed with an error that is not the library's.
  static constexpr int failure = 1;
  /// The job has saved a checkpoint and ended on request: start it again, and do not count it as a failure.
  static constexpr int preempted = 42;
  /// Another try may succeed, such as after the loss of a process: start the job again, and count it.
  static constexpr int try_again = 75;
  /// The user must change something first, such as an argument or a file: do not start the job again.
  static constexpr int must_change = 78;
};

/// Every mistake of a user, a file, the environment or a peer that the library reports.
///
/// The text follows one grammar, "<problem> (<why>). <suggestion>.": the problem names the culprit (a variable, a file,
/// a replica), the reason gives the values that disagree, the suggestion says what to change. Catch a derived type to
/// react to one kind of mistake. Whatever the parts quote, the text does nothing to a terminal and has an end.
class Error : public std::runtime_error {
 public:
  Error(std::string_view problem, std::string_view why, std::string_view suggestion);

  /// The status with which `main` ends because of this error (dist::exit_code): by default the one for what the user
  /// must change.
  [[nodiscard]] virtual int exit_code() const noexcept;

 private:
  /// Lines stay: an exception of the program may have several.
  [[nodiscard]] static std::string shown(std::string_view part);
};

/// An argument that no state of the program could make valid: zero replicas, a batch of zero elements.
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// Extents that had to agree and do not.
class ShapeMismatch : public Error {
 public:
  using Error::Error;
};

/// A file that is missing, unreadable, truncated, corrupt or of another format than its reader's.
class FileError : public Error {
 public:
  FileError(std::string_view path, std::string_view problem, std::string_view why, std::string_view suggestion);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

/// An object of one strategy was used with another, or in a context where it has no meaning (spec B08, B14).
class WrongStrategy : public Error {
 public:
  using Error::Error;
};

/// Replicas did not issue the same collectives in the same order (spec E12).
class CollectiveMismatch : public Error {
 public:
  using Error::Error;
};

/// A wait ended because its time was up.
class DeadlineExceeded : public Error {
 public:
  using Error::Error;

  [[nodiscard]] int exit_code() const noexcept override;
};

/// A process of the job is gone: it ended, was killed, or left without a word. What it held is lost, so the job is
/// started again, all processes together (spec O01).
class Unavailable : public Error {
 public:
  Unavailable(std::size_t rank, std::string_view host, std::string_view why, std::string_view suggestion);

  /// The number of the lost process among those of its kind, which are workers unless the text says otherwise.
  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] const std::string& host() const noexcept { return host_; }
  /// How it was noticed.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  [[nodiscard]] int exit_code() const noexcept override;

 protected:
  /// Of a process that is no worker: `problem` says which.
  Unavailable(std::string_view problem, std::size_t rank, std::string_view host, std::string_view why,
              std::string_view suggestion);

 private:
  std::size_t rank_;
  std::string host_;
  std::string why_;
};

/// Another process of the job failed and said so: what left its replica function, or ended its part of a collective.
class PeerError : public Error {
 public:
  PeerError(std::size_t rank, std::string_view host, std::string_view what);

  /// The number of the failed process among the workers.
  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] const std::string& host() const noexcept { return host_; }
  /// The text of its exception.
  [[nodiscard]] const std::string& thrown() const noexcept { return thrown_; }
  [[nodiscard]] int exit_code() const noexcept override;

 private:
  std::size_t rank_;
  std::string host_;
  std::string thrown_;
};

/// Memory that the operating system refuses.
class OutOfMemory : public Error {
 public:
  using Error::Error;

  [[nodiscard]] int exit_code() const noexcept override;
};

/// An exception left the replica function of `replica()`, its number among all in sync. Surfaces once, in the thread
/// that called `run`; the strategy stays usable. `cause()` is what the replica threw, and its text ends this one's.
class ReplicaError : public Error {
 public:
  ReplicaError(std::size_t replica, std::size_t replicas, std::string_view what, std::exception_ptr cause);

  [[nodiscard]] std::size_t replica() const noexcept { return replica_; }
  [[nodiscard]] const std::exception_ptr& cause() const noexcept { return cause_; }
  /// The exit code of the cause.
  [[nodiscard]] int exit_code() const noexcept override;

 private:
  std::size_t replica_;
  std::exception_ptr cause_;
};

/// The status for an error that has reached `main`: Error::exit_code, and ExitCode::failure for other exceptions.
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
