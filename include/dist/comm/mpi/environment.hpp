#pragma once

#include <pthread.h>

#include <exception>
#include <string_view>

#include <dist/comm/mpi/api.hpp>
#include <dist/core/error.hpp>

namespace dist::mpi {

/// Which threads may call MPI, from fewest to most.
enum class ThreadLevel : int {
  single = MPI_THREAD_SINGLE,          ///< the process has one thread
  funneled = MPI_THREAD_FUNNELED,      ///< the thread that initialised MPI
  serialized = MPI_THREAD_SERIALIZED,  ///< any, one at a time
  multiple = MPI_THREAD_MULTIPLE       ///< any
};

[[nodiscard]] constexpr std::string_view to_string(ThreadLevel level) noexcept {
  switch (level) {
    case ThreadLevel::single:
      return "MPI_THREAD_SINGLE";
    case ThreadLevel::funneled:
      return "MPI_THREAD_FUNNELED";
    case ThreadLevel::serialized:
      return "MPI_THREAD_SERIALIZED";
    case ThreadLevel::multiple:
      return "MPI_THREAD_MULTIPLE";
  }
  return "no thread level";
}

namespace detail {

[[noreturn]] inline void refuse_finalized() {
  throw InvalidArgument("MPI was finalised in this process", "it cannot be started a second time",
                        "Keep what uses MPI, and one mpi::Environment, for as long as the program needs them");
}

}  // namespace detail

/// Whether MPI can be called now: it is initialised and not finalised.
[[nodiscard]] inline bool is_running() noexcept {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

/// Throws InvalidArgument, with the fix, unless MPI can be called now.
inline void require_running() {
  if (is_running()) return;
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized != 0) detail::refuse_finalized();
  throw InvalidArgument("MPI was not initialised in this process", "MPI_Init was not called",
                        "Make a dist::mpi::Environment at the beginning of main, or call MPI_Init_thread");
}

/// Which threads of this process may call MPI, as MPI itself says. A value to keep where calls are made: the check
/// costs a comparison.
class ThreadPermit {
 public:
  /// Throws InvalidArgument where this thread may not call MPI, or MPI does not run.
  ThreadPermit() {
    require_running();
    int provided = MPI_THREAD_SINGLE;
    int main = 0;
    check(MPI_Query_thread(&provided), "MPI_Query_thread");
    check(MPI_Is_thread_main(&main), "MPI_Is_thread_main");
    level_ = static_cast<ThreadLevel>(provided);
    one_thread_only_ = level_ < ThreadLevel::serialized;
    thread_ = pthread_self();
    if (one_thread_only_ && main == 0) refuse("an object that calls MPI was made");
  }

  [[nodiscard]] ThreadLevel level() const noexcept { return level_; }

  /// Throws InvalidArgument, with the fix, where MPI must not be called from this thread.
  void require(std::string_view call) const {
    if (one_thread_only_ && pthread_equal(thread_, pthread_self()) == 0) [[unlikely]]
      refuse(call);
  }

 private:
  [[noreturn]] void refuse(std::string_view call) const {
    throw InvalidArgument(
        "MPI was called from a thread that must not call it",
        text(call, " in another thread than the one that initialised MPI, which gave the thread level ",
             to_string(level_)),
        "Call from the thread that initialised MPI, or initialise it with MPI_Init_thread and MPI_THREAD_SERIALIZED or "
        "MPI_THREAD_MULTIPLE");
  }

  ThreadLevel level_;
  bool one_thread_only_;
  pthread_t thread_;
};

/// Lets a program use MPI while it lives. Initialises MPI unless that is done, and finalises it only if it initialised
/// it itself, so that a program that owns MPI keeps it.
///
/// MPI_Finalize waits for all processes of the job, so it is not called when one of them is known not to come, by
/// `abandon()`, or when an exception is on its way through the owner of this object.
class Environment {
 public:
  /// Throws InvalidArgument when MPI was finalised already, MpiError when it does not start. Where the program
  /// initialised MPI, the level is the program's, and may be less than `wanted`: a ThreadPermit refuses what it does
  /// not allow.
  explicit Environment(ThreadLevel wanted = ThreadLevel::funneled) : exceptions_(std::uncaught_exceptions()) {
    int done = 0;
    MPI_Finalized(&done);
    if (done != 0) detail::refuse_finalized();
    MPI_Initialized(&done);
    int provided = MPI_THREAD_SINGLE;
    if (done == 0) {
      check(MPI_Init_thread(nullptr, nullptr, static_cast<int>(wanted), &provided), "MPI_Init_thread");
      owns_ = true;
    } else {
      check(MPI_Query_thread(&provided), "MPI_Query_thread");
    }
    provided_ = static_cast<ThreadLevel>(provided);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    if (owns_ && !abandoned_ && std::uncaught_exceptions() == exceptions_ && is_running()) MPI_Finalize();
  }

  /// Whether this object initialised MPI and will finalise it.
  [[nodiscard]] bool owns_mpi() const noexcept { return owns_; }
  [[nodiscard]] ThreadLevel provided() const noexcept { return provided_; }

  /// The job is broken: MPI is left as it is when this object ends, because finalising would wait for ever.
  void abandon() noexcept { abandoned_ = true; }

 private:
  int exceptions_;
  bool owns_ = false;
  bool abandoned_ = false;
  ThreadLevel provided_ = ThreadLevel::single;
};

}  // namespace dist::mpi
