#include <dist/device/slow_wait.hpp>

#include <doctest/doctest.h>

#include <support/stderr_of.hpp>
#include <support/what_throws.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

using dist::ReportSignal;
using dist::SlowWait;
using namespace std::chrono_literals;

namespace {

/// Returns the output of a process that runs `body()` with ReportSignal.
template <class Body>
std::string printed(Body&& body) {
  return testing::stderr_of([&] {
           const ReportSignal answers;
           ReportSignal::name_process("worker 3 on host east");
           body();
         })
      .stderr_text;
}

/// Returns the printed age of the wait with this text in seconds; -1 if it was not printed.
double age(const std::string& all, const std::string& wait) {
  const std::size_t at = all.find(" waits " + wait + ", since ");
  return at == std::string::npos ? -1 : std::strtod(all.c_str() + all.find("since ", at) + 6, nullptr);
}

/// True if there is a line "dist: worker 3 on host east (process 4711)…", with any process number, that continues with
/// `end`.
bool has_line(const std::string& all, const std::string& end) {
  const std::size_t at = all.find(")" + end);
  return at != std::string::npos && all.rfind("dist: worker 3 on host east (process ", at) != std::string::npos;
}

}  // namespace

TEST_CASE("each signal prints the current waits with their peers and durations") {
  const std::string said = printed([] {
    raise(SIGUSR1);
    {
      SlowWait wait{0}, other{0};
      wait.note([] { return "for worker 1 (host west) in all_reduce(sum) of 4 f32"; });
      std::this_thread::sleep_for(250ms);
      other.note([] { return std::string("for replica 2"); });
      raise(SIGUSR1);
    }
    raise(SIGUSR1);
  });
  CAPTURE(said);
  CHECK(has_line(said, " waits for worker 1 (host west) in all_reduce(sum) of 4 f32, since "));
  CHECK(age(said, "for worker 1 (host west) in all_reduce(sum) of 4 f32") >= 0.2);
  CHECK(age(said, "for replica 2") >= 0);
  const std::string nothing = " waits for no other process or replica\n";
  CHECK(said.find(nothing) < said.find("for worker 1"));
  CHECK(said.rfind(nothing) > said.find("for replica 2"));
}

TEST_CASE("a wait's description is updated after a second, not before") {
  const std::string said = printed([] {
    SlowWait wait{0};
    int asked = 0;
    const auto describe = [&] { return "for peer number " + std::to_string(++asked); };
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 10; ++i) wait.note(describe);
    if (asked > 1 && std::chrono::steady_clock::now() - begin < 1s) std::abort();
    asked = 1;  // if this process was suspended
    std::this_thread::sleep_for(1050ms);
    wait.note(describe);
    raise(SIGUSR1);
  });
  CAPTURE(said);
  CHECK(age(said, "for peer number 2") >= 1);
}

TEST_CASE("a short wait has no description and does not allocate") {
  int asked = 0;
  const std::string said = printed([&] {
    SlowWait short_one{3'600'000'000'000}, wait;
    const auto describe = [&] { return "for peer number " + std::to_string(++asked); };
    short_one.note(describe);
    short_one.note(describe);
    if (asked != 0) std::abort();
    raise(SIGUSR1);
    wait.note(describe);
    std::this_thread::sleep_for(120ms);
    wait.note(describe);
    raise(SIGUSR1);
  });
  CAPTURE(said);
  CHECK(said.find(" waits for no other process or replica\n") < said.find("for peer number 1"));
  CHECK(age(said, "for peer number 1") >= 0.1);
}

TEST_CASE("a default description does not replace another one") {
  const std::string said = printed([] {
    SlowWait known{0}, unknown{0};
    known.note([] { return "for worker 2"; });
    known.note_otherwise([] { return "for somebody"; });
    unknown.note_otherwise([] { return "for anybody"; });
    raise(SIGUSR1);
  });
  CAPTURE(said);
  CHECK(age(said, "for worker 2") >= 0);
  CHECK(said.find("somebody") == std::string::npos);
  CHECK(age(said, "for anybody") >= 0);
}

TEST_CASE("too many waits and too long descriptions are harmless") {
  const std::string said = printed([] {
    const auto nest = [](const auto& again, int deeper) -> void {
      SlowWait wait{0};
      SlowWait::note_innermost([] { return std::string(2000, 'x'); });
      if (deeper == 0)
        raise(SIGUSR1);
      else
        again(again, deeper - 1);
    };
    nest(nest, 100);
  });
  CHECK(std::count(said.begin(), said.end(), '\n') == static_cast<long>(dist::detail::WaitBoard::places));
}

TEST_CASE("signals may arrive while waits begin and end in other threads") {
  const std::string said = printed([] {
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] {
        while (!stop) {
          SlowWait wait{0};
          wait.note([] { return "for somebody"; });
        }
      });
    for (int i = 0; i < 200; ++i) raise(SIGUSR1);
    stop = true;
    for (std::thread& thread : threads) thread.join();
  });
  CHECK(std::count(said.begin(), said.end(), '\n') >= 200);
}

TEST_CASE("handlers of the program are kept, and actions are restored afterwards") {
  static volatile std::sig_atomic_t handled = 0;
  CHECK(testing::stderr_of([] {
          std::signal(SIGUSR1, [](int) { handled = handled + 1; });
          const ReportSignal answers;
          raise(SIGUSR1);
          std::signal(SIGUSR1, SIG_IGN);
          const ReportSignal still_not;
          raise(SIGUSR1);
          if (handled != 1) std::abort();
        }).stderr_text == "");
  CHECK_FALSE(testing::stderr_of([] {
                {
                  const ReportSignal answers;
                  std::signal(SIGUSR1, SIG_IGN);  // the program replaces the handler
                }
                struct sigaction now {};
                sigaction(SIGUSR1, nullptr, &now);
                if (now.sa_handler != SIG_IGN) std::abort();
                std::signal(SIGUSR1, SIG_DFL);
                { const ReportSignal answers; }
                sigaction(SIGUSR1, nullptr, &now);
                if (now.sa_handler != SIG_DFL) std::abort();
              }).aborted);
}

TEST_CASE("DIST_REPORT_SIGNAL names another signal, or none") {
  setenv("DIST_REPORT_SIGNAL", std::to_string(SIGUSR2).c_str(), 1);
  CHECK(has_line(printed([] { raise(SIGUSR2); }), " waits for no other process or replica\n"));
  setenv("DIST_REPORT_SIGNAL", "0", 1);
  const testing::Ending ending = testing::stderr_of([] {
    const ReportSignal answers;
    struct sigaction now {};
    sigaction(SIGUSR1, nullptr, &now);
    if (now.sa_handler != SIG_DFL) std::abort();
  });
  CHECK_FALSE(ending.aborted);
  unsetenv("DIST_REPORT_SIGNAL");
}

using dist::detail::await;

TEST_CASE("a wait polls the device's work, with pauses in between") {
  int pauses = 0;
  await([&] { return pauses == 3; }, [&] { ++pauses; }, [] { return "a copy"; }, std::chrono::nanoseconds{0}, "Look");
  CHECK(pauses == 3);
}

TEST_CASE("a wait that times out names the work and a suggestion") {
  const std::string late = support::what_throws<dist::DeadlineExceeded>([] {
    await([] { return false; }, [] {}, [] { return "queue 1"; }, std::chrono::milliseconds{2}, "Look at the device");
  });
  CHECK(late.find("Work was not done in time: queue 1 (the host waited ") == 0);
  CHECK(late.find("Look at the device, or set a longer timeout") != std::string::npos);
}
