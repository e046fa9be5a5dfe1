#include <dist/device/nvtx.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/text.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/range.hpp>
#include <dist/strategy/mirrored.hpp>

using dist::NvtxRanges;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

namespace {

/// A profiler that NVTX loads like a real one: it records domains and ranges.
struct Range {
  std::string name;
  std::int64_t payload;
  std::size_t depth;  // number of enclosing ranges of the thread
};
struct Profiler {
  std::mutex lock;
  std::vector<std::string> domains;
  std::size_t destroyed = 0;
  std::vector<Range> ranges;
  std::map<pid_t, std::size_t> open;
  std::size_t underflows = 0;
};
Profiler profiler;

nvtxDomainHandle_t create(const char* name) {
  const std::lock_guard guard{profiler.lock};
  profiler.domains.emplace_back(name);
  return reinterpret_cast<nvtxDomainHandle_t>(&profiler);
}
void destroy(nvtxDomainHandle_t) { ++profiler.destroyed; }
int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  const std::lock_guard guard{profiler.lock};
  REQUIRE(domain == reinterpret_cast<nvtxDomainHandle_t>(&profiler));
  REQUIRE(event->version == NVTX_VERSION);
  REQUIRE(event->size == NVTX_EVENT_ATTRIB_STRUCT_SIZE);
  REQUIRE(event->messageType == NVTX_MESSAGE_TYPE_ASCII);
  REQUIRE(event->payloadType == NVTX_PAYLOAD_TYPE_INT64);
  std::size_t& depth = profiler.open[gettid()];
  profiler.ranges.push_back({event->message.ascii, event->payload.llValue, depth});
  return static_cast<int>(depth++);
}
int pop(nvtxDomainHandle_t) {
  const std::lock_guard guard{profiler.lock};
  std::size_t& depth = profiler.open[gettid()];
  if (depth == 0) {
    ++profiler.underflows;
    return -1;
  }
  return static_cast<int>(--depth);
}

int load(NvtxGetExportTableFunc_t tables) {
  const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(tables(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &functions, &size) == 0 ||
      size <= NVTX_CBID_CORE2_DomainDestroy)
    return 0;
  const auto set = [&](unsigned number, auto* function) {
    *functions[number] = reinterpret_cast<NvtxFunctionPointer>(function);
  };
  set(NVTX_CBID_CORE2_DomainCreateA, &create);
  set(NVTX_CBID_CORE2_DomainDestroy, &destroy);
  set(NVTX_CBID_CORE2_DomainRangePushEx, &push);
  set(NVTX_CBID_CORE2_DomainRangePop, &pop);
  return 1;
}
/// Runs before the first call of NVTX, which loads it.
const bool is_injected = [] {
  unsetenv("NVTX_INJECTION64_PATH");
  InitializeInjectionNvtx2_fnptr = &load;
  return true;
}();

void start() {
  REQUIRE(is_injected);
  profiler.domains.clear();
  profiler.ranges.clear();
  profiler.open.clear();
  profiler.destroyed = profiler.underflows = 0;
}
std::size_t ranges_of(const std::string& name, std::int64_t number) {
  return static_cast<std::size_t>(std::count_if(profiler.ranges.begin(), profiler.ranges.end(), [&](const Range& each) {
    return each.name == name && each.payload == number;
  }));
}
bool is_balanced() {
  return profiler.underflows == 0 &&
         std::all_of(profiler.open.begin(), profiler.open.end(), [](const auto& each) { return each.second == 0; });
}
void train() {
  Mirrored strategy{2};
  auto batches = strategy.distribute_dataset(dist::data::range(8) | dist::data::batch(4));
  for (auto& batch : batches)
    strategy.run([](auto replica, const auto&) { static_cast<void>(replica.all_reduce(dist::sum, 1.0F)); }, batch);
}
std::string content_of(const std::string& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}
std::string fresh_path() {
  const char* const folder = std::getenv("TMPDIR");
  std::string path = dist::concat(folder == nullptr ? "/tmp" : folder, "/dist-nvtx-", getpid(), ".json");
  std::remove(path.c_str());
  return path;
}

}  // namespace

// Must be the first test: a process reads DIST_TRACE once.
TEST_CASE("a trace file of DIST_TRACE records the same events") {
  start();
  const std::string path = fresh_path();
  if (const pid_t child = fork(); child == 0) {
    setenv("DIST_TRACE", path.c_str(), 1);
    {
      const NvtxRanges ranges;
      const dist::TraceSpan span{dist::detail::traced("both", 1)};
    }
    std::exit(ranges_of("both", 1) == 1 && is_balanced() ? 0 : 1);
  } else {
    int status = 1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  CHECK(content_of(path).find("\"name\":\"both\"") != std::string::npos);
  std::remove(path.c_str());
}

TEST_CASE("runs, collectives and input are ranges of the domain dist") {
  start();
  {
    const NvtxRanges ranges;
    train();
  }
  CHECK(profiler.domains == std::vector<std::string>{"dist"});
  CHECK(profiler.destroyed == 1);
  for (const std::int64_t replica : {0, 1}) {
    CHECK(ranges_of("run", replica) == 2);
    CHECK(ranges_of("all_reduce", replica) == 2);
  }
  CHECK(ranges_of("make batch", 0) >= 2);
  for (const Range& range : profiler.ranges) CHECK(range.depth == (range.name == "all_reduce" ? 1U : 0U));
  CHECK(is_balanced());
}

TEST_CASE("without NvtxRanges nothing is recorded") {
  start();
  train();
  { const NvtxRanges ranges; }
  train();
  CHECK(profiler.ranges.empty());
  CHECK(dist::detail::traced("x").trace == nullptr);
}

TEST_CASE("long names are cut like a trace's") {
  start();
  const NvtxRanges ranges;
  { const dist::TraceSpan span{dist::detail::traced(std::string(100, 'x'), 7)}; }
  CHECK(ranges_of(std::string(47, 'x'), 7) == 1);
}

TEST_CASE("a trace file created before records the same events") {
  start();
  const std::string path = fresh_path();
  {
    const dist::TraceFile trace{path};
    const NvtxRanges ranges;
    { const dist::TraceSpan span{dist::detail::traced("both", 1)}; }
  }
  CHECK(ranges_of("both", 1) == 1);
  CHECK(content_of(path).find("\"name\":\"both\"") != std::string::npos);
  std::remove(path.c_str());
}

TEST_CASE("a second NvtxRanges, and a trace file created after it, are rejected") {
  start();
  std::optional<NvtxRanges> ranges{std::in_place};
  CHECK_THROWS_WITH_AS(NvtxRanges{}, doctest::Contains("A second NvtxRanges object was created"), dist::WrongStrategy);
  CHECK_THROWS_WITH_AS(dist::TraceFile{fresh_path()}, doctest::Contains("create NvtxRanges after the TraceFile"),
                       dist::WrongStrategy);
  ranges.reset();
  CHECK(profiler.destroyed == profiler.domains.size());
  const NvtxRanges again;
}
