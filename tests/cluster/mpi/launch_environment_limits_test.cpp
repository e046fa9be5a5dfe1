#include <dist/cluster/mpi/launch_environment.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <stdexcept>
#include <string>

#include <support/processes.hpp>

using namespace dist::detail;

namespace {

void limit_to(int resource, rlim_t most) {
  rlimit limit{};
  getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  limit.rlim_cur = most;
  if (setrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) throw std::runtime_error("no limit");
}

/// Returns the error for a job of `workers` workers, `here` of them on this node.
std::string refusal(std::size_t workers, std::size_t here) {
  try {
    require_limits(workers, here);
  } catch (const dist::OutOfMemory& error) {
    return error.what();
  }
  return "";
}

/// Returns `holds()` from a separate process.
template <class Holds>
bool holds_in_a_process(Holds&& holds) {
  support::Processes process{1, [&](std::size_t) { return holds() ? 0 : 1; }};
  return process.wait()[0] == 0;
}

}  // namespace

TEST_CASE("open_descriptors counts open descriptors") {
  const std::size_t before = open_descriptors();
  const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
  CHECK(open_descriptors() == before + 1);
  close(file);
  CHECK(open_descriptors() == before);
}

TEST_CASE("too few descriptors are refused with the required number, which suffices") {
  CHECK(holds_in_a_process([] {
    const std::size_t open = open_descriptors();
    limit_to(RLIMIT_NOFILE, 24);
    const std::size_t needed = open + 20 + 4 * 2 + 2 * 3;
    const bool refused =
        refusal(5, 2) == dist::concat(
                             "This process may have 24 files open, too few for a job of 5 "
                             "workers (",
                             needed, " are needed). Raise the limit: ulimit -n ", needed, ", or more.");
    limit_to(RLIMIT_NOFILE, needed);
    return refused && refusal(5, 2).empty();
  }));
}

TEST_CASE("a file size limit below MPI's shared memory is refused") {
  CHECK(holds_in_a_process([] {
    limit_to(RLIMIT_FSIZE, 1'000'000);
    const bool refused = refusal(2, 2).find("This process may only write files of up to 1000000 bytes") == 0 &&
                         refusal(2, 2).find("ulimit -f 8192") != std::string::npos;
    limit_to(RLIMIT_FSIZE, 8 << 20);
    return refused && refusal(2, 2).empty();
  }));
}
