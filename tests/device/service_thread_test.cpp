#include <dist/device/service_thread.hpp>

#include <doctest/doctest.h>

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <string>
#include <thread>

#include <dist/core/error.hpp>
#include <support/sanitizers.hpp>

namespace {

bool is_blocked(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

}  // namespace

TEST_CASE("a service thread blocks signals, and the program's threads still receive them") {
  std::atomic<bool> blocked{false};
  std::thread thread = dist::detail::start_service_thread(
      "a test", [&] { blocked = is_blocked(SIGTERM) && is_blocked(SIGUSR1) && is_blocked(SIGINT); });
  thread.join();
  CHECK(blocked);
  CHECK_FALSE(is_blocked(SIGTERM));
}

#ifndef DIST_TEST_SANITIZER  // sanitizers need memory at any time
TEST_CASE("a failure to create a thread is reported, and the signal mask is restored") {
  std::atomic<bool> done{false};
  std::thread holder{[&] { done.wait(false); }};  // occupies the stack of an earlier thread, which would be reused
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  rlimit none = before;
  none.rlim_cur = 1;  // no memory for another stack
  std::string told;
  REQUIRE(setrlimit(RLIMIT_AS, &none) == 0);
  try {
    dist::detail::start_service_thread("a test", [] {}).join();
  } catch (const dist::OutOfMemory& error) {
    setrlimit(RLIMIT_AS, &before);
    told = error.what();
  }
  setrlimit(RLIMIT_AS, &before);
  done = true;
  done.notify_one();
  holder.join();
  CHECK(told.starts_with("Could not start a thread for a test ("));
  CHECK_FALSE(is_blocked(SIGTERM));
}
#endif
