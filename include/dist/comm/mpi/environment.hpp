#pragma once

#include <pthread.h>

#include <string_view>

#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/comm_ref.hpp>
#include <dist/comm/network.hpp>
#include <dist/comm/thread_level.hpp>
#include <dist/core/config.hpp>

namespace dist::mpi {

/// Which threads may call MPI. Its constants have these values in every MPI.
using dist::ThreadLevel;
static_assert(static_cast<int>(ThreadLevel::single) == MPI_THREAD_SINGLE &&
              static_cast<int>(ThreadLevel::funneled) == MPI_THREAD_FUNNELED &&
              static_cast<int>(ThreadLevel::serialized) == MPI_THREAD_SERIALIZED &&
              static_cast<int>(ThreadLevel::multiple) == MPI_THREAD_MULTIPLE);

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

/// The likely cause and the cure where MPI's processes do not meet although all of them have started.
inline constexpr std::string_view connections_advice =
    "MPI's own connections between hosts probably fail. Name a network interface that reaches all hosts in "
    "OMPI_MCA_btl_tcp_if_include, or open the ports of OMPI_MCA_btl_tcp_port_min_v4 and "
    "OMPI_MCA_btl_tcp_port_range_v4 in the firewall";

/// True if MPI can be called now: it is initialised and not finalised, and this process is the one where this was true
/// first, not a forked child of it.
[[nodiscard]] bool is_running() noexcept;

/// Throws InvalidArgument, with the fix, unless MPI can be called now.
void require_running();

/// Which threads of this process may call MPI, as MPI itself says. A value to keep where calls are made: the check
/// costs a comparison.
class ThreadPermit {
 public:
  /// Throws InvalidArgument where this thread may not call MPI, or MPI does not run.
  ThreadPermit();

  [[nodiscard]] ThreadLevel level() const noexcept { return level_; }

  /// Throws InvalidArgument, with the fix, where MPI must not be called from this thread.
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
  explicit Environment(ThreadLevel wanted = ThreadLevel::funneled);
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment();

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

namespace dist {

namespace mpi {

using CommunicatorOptions = NetworkOptions;

}  // namespace mpi

}  // namespace dist

#ifndef DIST_COMPILED_MPI
#include <dist/comm/mpi/environment.ipp>
#endif
