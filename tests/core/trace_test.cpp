#include <dist/core/trace.hpp>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <dist/core/error.hpp>
#include <dist/core/thread_name.hpp>

using dist::Trace;

namespace {

/// Records its calls.
struct Listener final : dist::SpanListener {
  std::vector<std::string> told;
  void begin(std::string_view name, std::int64_t number) noexcept override {
    told.push_back(std::string(name) + " " + std::to_string(number));
  }
  void end() noexcept override { told.emplace_back("end"); }
};

}  // namespace

TEST_CASE("events store name, number, times and thread") {
  Trace trace;
  trace.record("backward of dense", 3, 1'000, 4'500);
  const auto events = trace.events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].name() == "backward of dense");
  CHECK(events[0].number == 3);
  CHECK(events[0].begin == 1'000);
  CHECK(events[0].end == 4'500);
  CHECK(events[0].thread == gettid());
  trace.clear();
  CHECK(trace.events().empty());
}

TEST_CASE("a span records its lifetime, and nothing without a trace") {
  Trace trace;
  const std::int64_t before = Trace::now();
  { const dist::TraceSpan span{{&trace, "work", 7}}; }
  { const dist::TraceSpan span{{}}; }
  const std::int64_t after = Trace::now();
  REQUIRE(trace.events().size() == 1);
  CHECK(trace.events()[0].number == 7);
  CHECK(before <= trace.events()[0].begin);
  CHECK(trace.events()[0].begin <= trace.events()[0].end);
  CHECK(trace.events()[0].end <= after);
}

TEST_CASE("a listener receives the begin and end of spans until it is removed") {
  Trace trace;
  Listener listener, second;
  REQUIRE(trace.set_listener(&listener));
  CHECK_FALSE(trace.set_listener(&second));
  {
    const dist::TraceSpan outer{{&trace, "run", 1}};
    CHECK(listener.told == std::vector<std::string>{"run 1"});
    const dist::TraceSpan inner{{&trace, "all_reduce", 1}};
    trace.record("what was measured otherwise", 0, 0, 1);
  }
  CHECK(listener.told == std::vector<std::string>{"run 1", "all_reduce 1", "end", "end"});
  CHECK(trace.events().size() == 3);
  CHECK(trace.set_listener(nullptr));
  { const dist::TraceSpan span{{&trace, "late", 0}}; }
  CHECK(listener.told.size() == 4);
  CHECK(second.told.empty());
}

TEST_CASE("added rows have numbers that are not thread numbers") {
  Trace trace;
  const int first = trace.add_row("queue 0 of GPU 0"), second = trace.add_row("queue 1 of GPU \"1\"");
  CHECK(first != second);
  CHECK(first > 4'194'304);  // the maximum thread number
  trace.record_on(second, "run", 5, 1'000, 2'000);
  REQUIRE(trace.events().size() == 1);
  CHECK(trace.events()[0].thread == second);
  const auto has = [json = trace.chrome_json(3)](const std::string& part) {
    return json.find(part) != std::string::npos;
  };
  const std::string row = std::to_string(second);
  CHECK(
      has("\"tid\":" + std::to_string(first) + ",\"name\":\"thread_name\",\"args\":{\"name\":\"queue 0 of GPU 0\"}}"));
  CHECK(has("\"tid\":" + row + ",\"name\":\"thread_name\",\"args\":{\"name\":\"queue 1 of GPU \\\"1\\\"\"}}"));
  CHECK(has("\"tid\":" + row + ",\"ts\":1.000,\"dur\":1.000,\"name\":\"run\",\"args\":{\"number\":5}"));
  CHECK_FALSE(has(std::to_string(gettid())));  // which recorded no events
}

TEST_CASE("every trace has a unique id") {
  const Trace one{1}, two{1};
  CHECK(one.id() != two.id());
}

TEST_CASE("long names are cut, excess events are dropped and counted") {
  Trace trace{2};
  trace.record(std::string(100, 'x'), 0, 0, 1);
  for (int i = 0; i < 4; ++i) trace.record("more", i, 0, 1);
  CHECK(trace.events().size() == 2);
  CHECK(trace.dropped() == 3);
  CHECK(trace.events()[0].name() == std::string(47, 'x'));
}

TEST_CASE("threads record concurrently") {
  Trace trace;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&trace, thread] {
      for (int i = 0; i < 100; ++i) trace.record("event", thread, i, i + 1);
    });
  for (std::thread& thread : threads) thread.join();
  int of_thread[4] = {};
  for (const Trace::Event& event : trace.events()) ++of_thread[event.number];
  for (const int count : of_thread) CHECK(count == 100);
}

TEST_CASE("overlap sums the time of simultaneous events") {
  Trace trace;
  trace.record("backward of a", 0, 0, 10);
  trace.record("backward of b", 0, 10, 30);
  trace.record("all_reduce", 0, 5, 12);   // 5 with a, 2 with b
  trace.record("all_reduce", 1, 25, 40);  // 5 with b
  trace.record("all_reduce", 2, 50, 60);  // none
  CHECK(trace.overlap("backward", "all_reduce") == 12);
  CHECK(trace.overlap("backward of a", "all_reduce") == 5);
  CHECK(trace.overlap("forward", "all_reduce") == 0);
}

TEST_CASE("the JSON has Chrome's trace format: complete events in microseconds") {
  Trace trace;
  CHECK(trace.chrome_json() == "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n]}\n");
  trace.record("a \"name\"", 4, 1'002'003, 1'002'010);
  const std::string thread = std::to_string(gettid());
  CHECK(trace.chrome_json(5) ==
        "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
        "{\"ph\":\"M\",\"pid\":5,\"tid\":" +
            thread + ",\"name\":\"thread_name\",\"args\":{\"name\":\"" + dist::detail::name_of_this_thread().data() +
            "\"}},\n"
            "{\"ph\":\"X\",\"pid\":5,\"tid\":" +
            thread + ",\"ts\":1002.003,\"dur\":0.007,\"name\":\"a \\\"name\\\"\",\"args\":{\"number\":4}}\n]}\n");
}

TEST_CASE("a trace is written to a file, or FileError is thrown") {
  Trace trace;
  trace.record("event", 0, 0, 1);
  const std::string path = "trace_test_" + std::to_string(getpid()) + ".json";
  trace.write_chrome_json(path);
  std::string content(1000, '\0');
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  REQUIRE(file != nullptr);
  content.resize(std::fread(content.data(), 1, content.size(), file));
  std::fclose(file);
  std::remove(path.c_str());
  CHECK(content == trace.chrome_json());
  CHECK_THROWS_AS(trace.write_chrome_json("/nowhere/at/all.json"), dist::FileError);
}
