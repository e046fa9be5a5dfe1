#pragma once

#include <unistd.h>

#include <exception>

#include <dist/comm/mpi/environment.hpp>
#include <dist/core/error.hpp>
#include <dist/core/standard_descriptors.hpp>

namespace dist::mpi {

namespace detail {

DIST_INLINE void refuse_finalized() {
  throw InvalidArgument(
      "MPI was finalised in this process", "it cannot be started a second time",
      "Keep one mpi::Environment, and all objects that use MPI, until the program does not need MPI any more");
}

}  // namespace detail

DIST_INLINE bool is_running() noexcept {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (initialized == 0 || finalized != 0) return false;
  static const pid_t owner = getpid();
  return owner == getpid();
}

DIST_INLINE void require_running() {
  if (is_running()) return;
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized != 0) detail::refuse_finalized();
  throw InvalidArgument("MPI was not initialised in this process", "MPI_Init was not called",
                        "Create a dist::mpi::Environment at the beginning of main, or call MPI_Init_thread");
}

DIST_INLINE ThreadPermit::ThreadPermit() {
  require_running();
  int provided = MPI_THREAD_SINGLE;
  int main = 0;
  DIST_MPI_CALL(MPI_Query_thread(&provided));
  DIST_MPI_CALL(MPI_Is_thread_main(&main));
  level_ = static_cast<ThreadLevel>(provided);
  one_thread_only_ = level_ < ThreadLevel::serialized;
  thread_ = pthread_self();
  if (one_thread_only_ && main == 0) refuse("an object that calls MPI was created");
}

DIST_INLINE void ThreadPermit::refuse(std::string_view call) const {
  throw InvalidArgument(
      "MPI was called from a thread that must not call it",
      concat(call, " in a thread that did not initialise MPI, whose thread level is ", to_string(level_)),
      "Call from the thread that initialised MPI, or initialise it with MPI_Init_thread and MPI_THREAD_SERIALIZED or "
      "MPI_THREAD_MULTIPLE");
}

DIST_INLINE Environment::Environment(ThreadLevel wanted) : exceptions_(std::uncaught_exceptions()) {
  int done = 0;
  MPI_Finalized(&done);
  if (done != 0) detail::refuse_finalized();
  MPI_Initialized(&done);
  int provided = MPI_THREAD_SINGLE;
  if (done == 0) {
    fill_standard_descriptors();
    DIST_MPI_CALL(MPI_Init_thread(nullptr, nullptr, static_cast<int>(wanted), &provided));
    owns_ = true;
  } else {
    DIST_MPI_CALL(MPI_Query_thread(&provided));
  }
  provided_ = static_cast<ThreadLevel>(provided);
}

DIST_INLINE Environment::~Environment() {
  if (owns_ && !abandoned_ && std::uncaught_exceptions() == exceptions_ && is_running()) MPI_Finalize();
}

}  // namespace dist::mpi
