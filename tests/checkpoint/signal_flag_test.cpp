#include <dist/checkpoint/signal_flag.hpp>

#include <signal.h>

#include <doctest/doctest.h>

using dist::detail::SignalFlag;

namespace {
int handled = 0;
void count(int) { ++handled; }
}  // namespace

TEST_CASE("a signal sets the flag while there is one, and does what it did before afterwards") {
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

TEST_CASE("a signal that no program may handle is refused, and leaves nothing behind") {
  CHECK_THROWS_AS((SignalFlag{SIGKILL}), dist::InvalidArgument);
  const SignalFlag flag{SIGUSR2};
}
