#include <dist/core/trace.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/core/thread_name.hpp>

using dist::Trace;
using dist::TraceFile;
using dist::TraceSpan;
using dist::detail::traced;

namespace {

std::string fresh_path(const char* name) {
  const char* const folder = std::getenv("TMPDIR");
  std::string path = dist::concat(folder == nullptr ? "/tmp" : folder, "/dist-", name, "-", getpid(), ".json");
  std::remove(path.c_str());
  return path;
}
std::string content(const std::string& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}
std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("a trace file records during its lifetime, with the names of threads and process") {
  const std::string path = fresh_path("trace");
  { const TraceSpan before{traced("too early")}; }
  {
    const TraceFile trace{path};
    dist::detail::name_traced_process(3, "worker 3");
    { const TraceSpan span{traced("all_reduce", 1)}; }
    std::thread([] {
      dist::detail::name_this_thread("dist replica 1");
      const TraceSpan span{traced("run", 1)};
    }).join();
    CHECK_THROWS_AS(TraceFile{path}, dist::WrongStrategy);
  }
  { const TraceSpan after{traced("too late")}; }
  const std::string json = content(path);
  CHECK(json.starts_with("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{"));
  CHECK(json.ends_with("}\n]}\n"));
  CHECK(count(json, "\"name\":\"all_reduce\"") == 1);
  CHECK(count(json, "\"name\":\"run\"") == 1);
  CHECK(count(json, "\"args\":{\"name\":\"dist replica 1\"}") == 1);
  CHECK(count(json, "\"name\":\"process_name\",\"args\":{\"name\":\"worker 3\"}") == 1);
  CHECK(count(json, "\"pid\":3") == 5);
  CHECK(count(json, "too ") == 0);
  std::remove(path.c_str());
}

TEST_CASE("processes share one trace file") {
  const std::string path = fresh_path("traces");
  Trace::clear_file(path);
  constexpr int processes = 4;
  for (int process = 0; process < processes; ++process)
    if (fork() == 0) {
      Trace trace;
      trace.name_process(static_cast<std::size_t>(process), dist::concat("worker ", process));
      for (int i = 0; i < 100; ++i) trace.record("step", i, i, i + 1);
      trace.append_to_file(path);
      _exit(0);
    }
  for (int process = 0; process < processes; ++process) wait(nullptr);
  const std::string json = content(path);
  CHECK(count(json, "\"traceEvents\"") == 1);
  CHECK(count(json, "]}") == 1);
  CHECK(json.ends_with("}\n]}\n"));
  CHECK(count(json, "\"name\":\"step\"") == 100 * processes);
  for (int process = 0; process < processes; ++process)
    CHECK(count(json, dist::concat("\"worker ", process, "\"")) == 1);
  CHECK(count(json, "},\n{") == (100 + 2) * processes - 1);  // a process, its thread, its events
  std::remove(path.c_str());
}

TEST_CASE("a path that is not writable is rejected at once") {
  CHECK_THROWS_AS(TraceFile{"/no/such/folder/trace.json"}, dist::FileError);
  CHECK(traced("x").trace == nullptr);
}
