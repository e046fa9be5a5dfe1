// The main function of tests under mpirun: initialises MPI, runs the tests on every rank, and prints the output of rank
// 0 and of failed ranks. Every rank's status counts, as mpirun returns the first non-zero one; a failed rank skips
// MPI_Finalize, so that mpirun terminates the others. DIST_TEST_THREAD_LEVEL is the requested thread level: "single",
// "funneled" (default), "serialized" or "multiple".
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include <dist/comm/mpi/environment.hpp>
#include <support/sanitizers.hpp>

#ifdef DIST_TEST_ADDRESS_SANITIZER
#include <sanitizer/lsan_interface.h>

// Slow unwinding, because MPI libraries without frame pointers would hide the caller.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "fast_unwind_on_malloc=0"; }

// Memory that MPI and its libraries keep until the process exits.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libopen-pal.so\nleak:libopen-rte.so\nleak:libmpi.so\nleak:libpmix.so\nleak:libhwloc.so\nleak:libevent\n"
         "leak:mca_\nleak:libucp\nleak:libucs\nleak:libfabric\n";
}
#endif

namespace {

/// Ignores leaks of memory allocated during its lifetime.
class LeaksOfOthers {
 public:
  LeaksOfOthers() {
#ifdef DIST_TEST_ADDRESS_SANITIZER
    __lsan_disable();
#endif
  }
  LeaksOfOthers(const LeaksOfOthers&) = delete;
  LeaksOfOthers& operator=(const LeaksOfOthers&) = delete;
  ~LeaksOfOthers() {
#ifdef DIST_TEST_ADDRESS_SANITIZER
    __lsan_enable();
#endif
  }
};

/// Terminates the program on leaks. Must run before MPI unloads its libraries, or their leaks would not be attributed
/// to MPI.
void refuse_leaks() {
#ifdef DIST_TEST_ADDRESS_SANITIZER
  __lsan_do_leak_check();
#endif
}

int wanted_thread_level() {
  const char* const value = std::getenv("DIST_TEST_THREAD_LEVEL");
  const std::string level = value != nullptr ? value : "funneled";
  return level == "single"       ? MPI_THREAD_SINGLE
         : level == "serialized" ? MPI_THREAD_SERIALIZED
         : level == "multiple"   ? MPI_THREAD_MULTIPLE
                                 : MPI_THREAD_FUNNELED;
}

}  // namespace

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  {
    const LeaksOfOthers while_mpi_starts;
    MPI_Init_thread(&argc, &argv, wanted_thread_level(), &provided);
  }
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int status = 0;
  std::ostringstream said;
  {
    doctest::Context context(argc, argv);
    if (rank != 0) context.setCout(&said);
    status = context.run();
  }
  if (rank != 0 && status != 0) std::fprintf(stderr, "rank %d of %d:\n%s\n", rank, size, said.str().c_str());
  std::fflush(nullptr);
  if (status != 0) std::_Exit(status);
  refuse_leaks();
  const LeaksOfOthers while_mpi_ends;
  MPI_Finalize();
  return 0;
}
