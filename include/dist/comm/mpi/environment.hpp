#pragma once

#include <pthread.h>

#include <string_view>

#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/comm_ref.hpp>
#include <dist/comm/network.hpp>
#include <dist/core/config.hpp>

namespace dist::mpi {

/// The threads that may call MPI. These values are the same in every MPI.
using dist::ThreadLevel;
static_assert(static_cast<int>(ThreadLevel::single) == MPI_THREAD_SINGLE &&
              static_cast<int>(ThreadLevel::funneled) == MPI_THREAD_FUNNELED &&
              static_cast<int>(ThreadLevel::serialized) == MPI_THREAD_SERIALIZED &&
              static_cast<int>(ThreadLevel::multiple) == MPI_THREAD_MULTIPLE);

/// Returns the name of the level in messages.
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

[[noreturn]] void refuse_finalized();

}  // namespace detail

/// The likely cause and fix if MPI processes have started but cannot communicate.
inline constexpr std::string_view connections_advice =
    "MPI's own connections between hosts probably fail. Name a network interface that reaches all hosts in "
    "OMPI_MCA_btl_tcp_if_include, or open the ports of OMPI_MCA_btl_tcp_port_min_v4 and "
    "OMPI_MCA_btl_tcp_port_range_v4 in the firewall";

/// True if MPI can be called: it is initialised and not finalised, and this process is not a forked child.
[[nodiscard]] bool is_running() noexcept;

/// Throws InvalidArgument, with the fix, unless MPI can be called.
void require_running();

/// The threads that may call MPI, as provided by MPI. Keep it where calls are made: a check costs one comparison.
class ThreadPermit {
 public:
  /// Throws InvalidArgument if this thread may not call MPI, or MPI is not running.
  ThreadPermit();

  /// The thread support that MPI provides.
  [[nodiscard]] ThreadLevel level() const noexcept { return level_; }

  /// Throws InvalidArgument, with the fix, if this thread may not call MPI.
  void require(std::string_view call) const {
    if (one_thread_only_ && pthread_equal(thread_, pthread_self()) == 0) [[unlikely]]
      refuse(call);
  }

 private:
  [[noreturn]] void refuse(std::string_view call) const;

  ThreadLevel level_;
  bool one_thread_only_;
  pthread_t thread_;
};

/// Scope in which a program may use MPI. Initialises MPI unless it is initialised, and finalises it only in this case,
/// so a program that owns MPI keeps control.
///
/// MPI_Finalize waits for all processes of the job. So the destructor skips it after `abandon()`, for jobs with a
/// missing process, and if an exception leaves the scope.
class Environment {
 public:
  /// Throws InvalidArgument if MPI was already finalised, MpiError if it does not start. If the program initialised
  /// MPI, its thread level applies, which may be lower than `wanted`: ThreadPermit throws for calls it does not allow.
  explicit Environment(ThreadLevel wanted = ThreadLevel::funneled);
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment();

  /// True if this object initialised MPI and will finalise it.
  [[nodiscard]] bool owns_mpi() const noexcept { return owns_; }
  /// The thread support that MPI provides, which may be less than requested.
  [[nodiscard]] ThreadLevel provided() const noexcept { return provided_; }

  /// Marks the job as broken: MPI is not finalised, because finalising would never end.
  void abandon() noexcept { abandoned_ = true; }

 private:
  int exceptions_;
  bool owns_ = false;
  bool abandoned_ = false;
  ThreadLevel provided_ = ThreadLevel::single;
};

}  // namespace dist::mpi

namespace dist {

namespace mpi {

using CommunicatorOptions = NetworkOptions;

}  // namespace mpi

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/comm/mpi/environment.ipp>
#endif
