#include <dist/io/writable_file.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include <support/processes.hpp>
#include <support/temporary_folder.hpp>

using dist::io::NoFileSizeSignal;

namespace {

/// Runs `body` in a process with a file size limit of 0. Returns its exit status.
template <class Body>
int limited(Body&& body) {
  const support::TemporaryFolder folder;
  support::Processes child{1, [&](std::size_t) {
                             const int file = open(folder.path("a").c_str(), O_WRONLY | O_CREAT, 0600);
                             const rlimit none{0, 0};
                             return file < 0 || setrlimit(RLIMIT_FSIZE, &none) != 0 ? 90 : body(file);
                           }};
  return child.wait()[0];
}
/// True if a write fails because of the limit.
bool fails(int file, NoFileSizeSignal& guard) {
  const bool failed = write(file, "x", 1) < 0 && errno == EFBIG;
  if (failed) guard.raised();
  return failed;
}
bool is_in(int (*get)(sigset_t*)) {
  sigset_t set;
  return get(&set) == 0 && sigismember(&set, SIGXFSZ) == 1;
}
bool is_pending() { return is_in(sigpending); }
bool is_blocked() {
  return is_in([](sigset_t* set) { return pthread_sigmask(SIG_SETMASK, nullptr, set); });
}

}  // namespace

TEST_CASE("a write beyond the limit ends the program, but not during or after the guard") {
  CHECK(limited([](int file) { return write(file, "x", 1) < 0 ? 1 : 0; }) == 128 + SIGXFSZ);
  CHECK(limited([](int file) {
          for (int i = 0; i < 2; ++i) {
            NoFileSizeSignal guard;
            if (!fails(file, guard)) return 1;
          }
          return is_pending() || is_blocked() ? 2 : 0;
        }) == 0);
}

TEST_CASE("a signal handler is not called, and an earlier pending signal is not consumed") {
  CHECK(limited([](int file) {
          signal(SIGXFSZ, [](int) { _exit(9); });
          NoFileSizeSignal guard;
          return fails(file, guard) ? 0 : 1;
        }) == 0);
  CHECK(limited([](int file) {
          sigset_t set;
          sigemptyset(&set);
          sigaddset(&set, SIGXFSZ);
          pthread_sigmask(SIG_BLOCK, &set, nullptr);
          raise(SIGXFSZ);
          {
            NoFileSizeSignal guard;
            if (!fails(file, guard)) return 1;
          }
          return is_pending() && is_blocked() ? 0 : 2;
        }) == 0);
}
