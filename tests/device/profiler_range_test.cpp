#include <dist/device/profiler_range.hpp>

#include <doctest/doctest.h>

#include <string>
#include <type_traits>
#include <vector>

#include <dist/device/cpu.hpp>

using dist::ProfilerRange;
using dist::Trace;

namespace {

/// Notes what it is asked.
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

TEST_CASE("a queue that times its work is asked where a trace keeps events, and only there") {
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

TEST_CASE("what the queue does not time has no end") {
  std::vector<std::string> asked;
  const Timed queue{&asked, false};
  Trace trace;
  { const ProfilerRange<Timed> span{{&trace, "run"}, queue}; }
  CHECK(asked == std::vector<std::string>{"begin run"});
}

TEST_CASE("queues that time nothing cost nothing") {
  Trace trace;
  const dist::Cpu::Queue queue{};
  { [[maybe_unused]] const ProfilerRange<dist::Cpu::Queue> span{{&trace, "run"}, queue}; }
  CHECK(trace.events().empty());
  static_assert(std::is_empty_v<ProfilerRange<dist::Cpu::Queue>>);
  static_assert(std::is_trivially_destructible_v<ProfilerRange<dist::Cpu::Queue>>);
}
