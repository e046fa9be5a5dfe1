#include <dist/device/signal_flag.hpp>

#include <signal.h>

#include <optional>

#include <doctest/doctest.h>

using dist::detail::SignalFlag;

namespace {
int handled = 0;
void count(int) { ++handled; }
}  // namespace

TEST_CASE("a signal sets the flag during its lifetime, and its action is restored afterwards") {
  signal(SIGUSR2, &count);
  {
    const SignalFlag flag{SIGUSR2};
    CHECK_FALSE(SignalFlag::came());
    raise(SIGUSR2);
    CHECK(SignalFlag::came());
    CHECK(handled == 0);
    CHECK_THROWS_AS((SignalFlag{SIGTERM}), dist::InvalidArgument);
  }
  raise(SIGUSR2);
  CHECK(handled == 1);
  const SignalFlag again{SIGUSR2};
  CHECK_FALSE(SignalFlag::came());
}

TEST_CASE("a signal that cannot be handled is rejected, without side effects") {
  CHECK_THROWS_AS((SignalFlag{SIGKILL}), dist::InvalidArgument);
  const SignalFlag flag{SIGUSR2};
}

TEST_CASE("make_if_free creates a flag unless the program handles the signal") {
  std::optional<SignalFlag> flag, second;
  signal(SIGUSR2, SIG_IGN);
  SignalFlag::make_if_free(flag, SIGUSR2);
  CHECK_FALSE(flag);
  signal(SIGUSR2, SIG_DFL);
  SignalFlag::make_if_free(flag, 0);
  CHECK_FALSE(flag);
  SignalFlag::make_if_free(flag, SIGUSR2);
  REQUIRE(flag);
  SignalFlag::make_if_free(second, SIGTERM);
  CHECK_FALSE(second);
  raise(SIGUSR2);
  CHECK(SignalFlag::came());
}

TEST_CASE("the exit status outlives the flag, until the next flag") {
  {
    const SignalFlag flag{SIGUSR2};
    CHECK(SignalFlag::obeyed() == 0);
    SignalFlag::obey(42);
  }
  CHECK(SignalFlag::obeyed() == 42);
  const SignalFlag another{SIGUSR2};
  CHECK(SignalFlag::obeyed() == 0);
}
