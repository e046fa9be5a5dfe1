#include <dist/core/standard_descriptors.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include <dist/core/trace.hpp>
#include <dist/device/shared_memory.hpp>
#include <dist/io/file.hpp>

#include <support/processes.hpp>

namespace {

/// Returns the exit status of a process that closes standard input, output and error, and then runs `check`.
template <class Check>
int without_standard_descriptors(Check&& check) {
  support::Processes process{1, [&](std::size_t) {
                               for (const int each : {0, 1, 2}) close(each);
                               return check() ? 0 : 1;
                             }};
  return process.wait()[0];
}

bool is_nowhere(int descriptor) {
  struct stat here {
  }, nowhere{};
  return fstat(descriptor, &here) == 0 && stat("/dev/null", &nowhere) == 0 && here.st_rdev == nowhere.st_rdev;
}

}  // namespace

TEST_CASE("closed standard descriptors become /dev/null, and open ones stay") {
  CHECK(without_standard_descriptors([] {
          int ends[2];
          if (pipe(ends) != 0) return false;  // 0 and 1
          const int next = fcntl(3, F_GETFD);
          dist::fill_standard_descriptors();
          return is_nowhere(2) && !is_nowhere(0) && !is_nowhere(1) && fcntl(3, F_GETFD) == next;
        }) == 0);
}

TEST_CASE("a socket never gets a standard descriptor, and is closed on exec") {
  CHECK(without_standard_descriptors([] {
          const dist::io::Descriptor socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
          return socket.get() > 2 && fcntl(socket.get(), F_GETFD) == FD_CLOEXEC && is_nowhere(0) && is_nowhere(1) &&
                 is_nowhere(2);
        }) == 0);
}

TEST_CASE("shared memory and traces do not use standard descriptors") {
  CHECK(without_standard_descriptors([] {
          const dist::SharedMemory memory{4096};
          return is_nowhere(0) && is_nowhere(1) && is_nowhere(2);
        }) == 0);
  CHECK(without_standard_descriptors([] {
          dist::Trace{}.write_chrome_json("/dev/null");
          return is_nowhere(0) && is_nowhere(1) && is_nowhere(2);
        }) == 0);
}
