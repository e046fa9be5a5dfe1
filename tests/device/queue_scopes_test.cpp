#include <dist/device/queue_scopes.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <dist/device/cpu.hpp>

namespace {

struct Delaying {
  std::uint64_t* put;
  std::optional<std::uint64_t>* dropped_since;

  [[nodiscard]] std::uint64_t copies() const noexcept { return *put; }
  void drop_copies(std::uint64_t since) const noexcept { *dropped_since = since; }
};

}  // namespace

static_assert(dist::DelaysCopies<Delaying>);
static_assert(!dist::DelaysCopies<dist::Cpu::Queue>);

TEST_CASE("an exception cancels the copies of its scope, not earlier ones") {
  std::uint64_t put = 3;
  std::optional<std::uint64_t> dropped;
  const Delaying queue{&put, &dropped};
  { const dist::CopiesOfScope<Delaying> copies{queue}; }
  CHECK(!dropped);
  const auto fail = [&] {
    const dist::CopiesOfScope<Delaying> copies{queue};
    put = 5;
    throw std::runtime_error("no");
  };
  CHECK_THROWS_AS(fail(), std::runtime_error);
  CHECK(dropped == 3);
}

TEST_CASE("a scope that begins and ends during stack unwinding keeps its copies") {
  std::uint64_t put = 0;
  std::optional<std::uint64_t> dropped;
  struct AtTheEnd {
    Delaying queue;
    ~AtTheEnd() { const dist::CopiesOfScope<Delaying> copies{queue}; }
  };
  const auto fail = [&] {
    const AtTheEnd last{{&put, &dropped}};
    throw std::runtime_error("no");
  };
  CHECK_THROWS_AS(fail(), std::runtime_error);
  CHECK(!dropped);
}

using dist::ProfilerRange;
using dist::Trace;

namespace {

/// Records its calls.
struct Timed {
  std::vector<std::string>* asked;
  bool answer = true;
  bool begin_timing(const dist::ProfilerLabel& label) const noexcept {
    asked->push_back("begin " + std::string(label.name));
    return answer;
  }
  void end_timing() const noexcept { asked->emplace_back("end"); }
};
struct MayThrow : Timed {
  void end_timing() const { asked->emplace_back("end"); }
};
static_assert(dist::TimesWork<Timed>);
static_assert(!dist::TimesWork<MayThrow>);
static_assert(!dist::TimesWork<dist::Cpu::Queue>);

}  // namespace

TEST_CASE("queues are timed only if a trace keeps events") {
  std::vector<std::string> asked;
  const Timed queue{&asked};
  Trace trace;
  { const ProfilerRange<Timed> span{{}, queue}; }
  Trace for_a_listener{0};
  { const ProfilerRange<Timed> span{{&for_a_listener, "run"}, queue}; }
  CHECK(asked.empty());
  {
    const ProfilerRange<Timed> outer{{&trace, "run"}, queue};
    const ProfilerRange<Timed> inner{{&trace, "all_reduce"}, queue};
  }
  CHECK(asked == std::vector<std::string>{"begin run", "begin all_reduce", "end", "end"});
}

TEST_CASE("end_timing is not called if begin_timing returns false") {
  std::vector<std::string> asked;
  const Timed queue{&asked, false};
  Trace trace;
  { const ProfilerRange<Timed> span{{&trace, "run"}, queue}; }
  CHECK(asked == std::vector<std::string>{"begin run"});
}

TEST_CASE("ranges on queues without timing are empty") {
  Trace trace;
  const dist::Cpu::Queue queue{};
  { [[maybe_unused]] const ProfilerRange<dist::Cpu::Queue> span{{&trace, "run"}, queue}; }
  CHECK(trace.events().empty());
  static_assert(std::is_empty_v<ProfilerRange<dist::Cpu::Queue>>);
  static_assert(std::is_trivially_destructible_v<ProfilerRange<dist::Cpu::Queue>>);
}
