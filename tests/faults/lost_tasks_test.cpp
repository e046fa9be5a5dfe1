// Jobs with parameter servers over gRPC that lose tasks. The matrix: a worker, a server or the coordinator is killed,
// stopped or disconnected from the network, while it is idle, functions are queued, or one computes, pulls or pushes.
// coordinator/worker_processes tests killed and stopped workers without pulls and pushes. Disconnecting requires
// network namespaces. In addition, a soak test.
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/coordinator/serve.hpp>
#include <dist/core/log.hpp>
#include <dist/rpc/grpc/transport.hpp>
#include <dist/server/lifeline.hpp>
#include <dist/server/shard_server.hpp>
#include <dist/strategy/parameter_server.hpp>

#include <doctest/doctest.h>

#include "coordinator/local_workers.hpp"
#include "net/ports.hpp"
#include "support/grpc_suppressions.hpp"
#include "support/soon.hpp"
#include "support/spawned.hpp"
#include "support/temporary_folder.hpp"
#include "support/two_hosts.hpp"

namespace {

using namespace std::chrono_literals;
using dist::Grpc;
using dist::Task;
using dist::TaskType;
using dist::WorkerContext;
using support::soon;
using Clock = std::chrono::steady_clock;
using Strategy = dist::ParameterServer<Grpc>;
using Coordinator = dist::ClusterCoordinator<Strategy>;
using Variable = dist::ServerVariable<float, Grpc>;

constexpr auto silence = 1s;
/// Time until a loss has taken effect: a killed process is noticed at once, a silent one after `silence`, plus the
/// attempts of clients.
constexpr auto after_kill = 3s, after_silence = silence + 5s;

enum Role { worker, server, coordinator };
enum Moment { idle, queued, computing, pulling, pushing };
enum Loss { killed, stopped, cut_off };
constexpr const char* roles[] = {"worker", "server", "coordinator"};
constexpr const char* moments[] = {"idle", "queued", "computing", "pulling", "pushing"};
constexpr const char* losses[] = {"killed", "stopped", "cut off"};

constexpr Task server_0{TaskType::parameter_server, 0}, worker_0{TaskType::worker, 0}, worker_1{TaskType::worker, 1},
    chief{TaskType::chief, 0};

/// Created before the first thread; the threads of the test enter it.
const support::TwoHosts* hosts() {
  static const support::TwoHosts both;
  return both.made ? &both : nullptr;
}

/// True when the tasks of all cells were lost, so that workers of the test can stop computing.
std::atomic<bool> over{false};

/// The function of a worker in a cell: computes until a stop request, or uses a variable. Returns its worker.
constexpr auto step = [](WorkerContext& context, Variable& variable, int moment) {
  if (moment == pulling) static_cast<void>(variable.read(context));
  if (moment == pushing) variable.assign_add(context, 1.0F);
  for (int i = 0; moment == computing && i < 10'000 && !over && !context.stop_requested(); ++i)
    std::this_thread::sleep_for(1ms);
  return context.index();
};

/// A parameter server that stops during pulls or pushes, as the cell requires, until it may continue.
class HeldServer {
 public:
  explicit HeldServer(Moment moment)
      : held_(moment == pulling   ? "store.pull"
              : moment == pushing ? "store.push"
                                  : "") {}

  void hold() { open_ = false; }
  void go_on() { open_ = true; }
  [[nodiscard]] int held() const { return arrived_; }

  void serve(const dist::net::Endpoint& own) {
    dist::server::ShardServer store;
    dist::server::Lifeline<Grpc::Exchange> lifeline{server_0, store.incarnation()};
    auto methods = dist::server::store_methods<Grpc::Exchange>(store);
    for (auto& method : methods)
      if (method.name == held_)
        method.handler = [this, handle = std::make_shared<decltype(method.handler)>(std::move(method.handler))](
                             Grpc::Exchange& exchange) {
          if (++arrived_ == 2) dist::log_line("two are held");
          while (!open_) std::this_thread::sleep_for(1ms);
          (*handle)(exchange);
        };
    for (auto& method : lifeline.methods()) methods.push_back(std::move(method));
    dist::rpc::ServerOptions options;
    options.threads = 4;
    options.silence = silence;
    const Grpc::Server listens{own, options, std::move(methods)};
    using State = decltype(lifeline)::State;
    for (State state = State::waiting; state != State::left && state != State::lost;)
      state = lifeline.wait_for(10ms).state;
  }

 private:
  const std::string held_;
  std::atomic<bool> open_{true};
  std::atomic<int> arrived_{0};
};

void serve_worker(const dist::ClusterSpec& cluster, Task task) {
  dist::server::ServeOptions options;
  options.wait_for_coordinator = 60s;
  options.keep_alive = 0s;
  options.server.silence = silence;
  try {
    static_cast<void>(dist::serve<Grpc>(dist::SimpleResolver{cluster, task}, options));
  } catch (const dist::CoordinatorUnavailable&) {  // cells whose coordinator is lost
  }
}

/// The state of a coordinator, in the test or in a separate process.
struct Chief {
  explicit Chief(const dist::ClusterSpec& cluster)
      : strategy(dist::SimpleResolver{cluster, chief}, options()),
        variable(strategy.variable<float>({4}, 1.0F, "variable")),
        coordinator(strategy) {}
  static dist::ParameterServerOptions options() {
    dist::ParameterServerOptions options;
    options.channel.silence = silence;
    options.wait_for_servers = 30s;
    return options;
  }

  [[nodiscard]] bool is_connected() const { return coordinator.metrics().connected == 2; }
  /// Schedules the functions of the moment on both workers, and more if functions must be queued.
  void begin(Moment moment) {
    if (moment == idle) return;
    const Moment does = moment == queued ? computing : moment;
    for (std::size_t index = 0; index < 2; ++index) running.push_back(coordinator.schedule(step, variable, int{does}));
    if (moment != queued) return;
    REQUIRE(soon([&] { return is_busy(computing); }));
    for (std::size_t index = 0; index < 2; ++index)
      running.push_back(coordinator.schedule_on(index, step, variable, int{pulling}));
  }
  [[nodiscard]] bool is_busy(Moment moment) const {
    const dist::CoordinatorMetrics metrics = coordinator.metrics();
    return moment == idle || (metrics.in_flight == 2 && metrics.waiting == (moment == queued ? 2 : 0));
  }

  Strategy strategy;
  Variable variable;
  Coordinator coordinator;
  std::vector<dist::RemoteValue<std::size_t>> running;
};

constexpr Task tasks[] = {server_0, worker_0, worker_1};

/// The locations of the tasks of a job.
struct Places {
  void add(Task task, const dist::net::Endpoint& endpoint) {
    addresses += to_string(endpoint) + " ";
    cluster.add(task, to_string(endpoint));
  }
  /// Starts a process as this task. On the other host, it enters the namespace of the process that holds the host.
  [[nodiscard]] std::unique_ptr<support::Spawned> start(Task task, Moment moment, const std::string& stderr_file,
                                                        pid_t host = 0) const {
    return std::make_unique<support::Spawned>(
        "a task of a job",
        std::vector{"DIST_TEST_TASK=" + to_string(task), dist::concat("DIST_TEST_MOMENT=", int{moment}),
                    "DIST_TEST_ADDRESSES=" + addresses, dist::concat("DIST_TEST_HOST=", host)},
        stderr_file);
  }

  std::string addresses;
  dist::ClusterSpec cluster;
};

/// A job with one task as a process and the others as threads.
class Cell {
 public:
  Cell(Role who, Moment when, Loss how, int number) : role(who), moment(when), loss(how), held_(when) {
    auto endpoints = dist_test::free_endpoints(3);
    for (std::size_t task = 0; task < 3; ++task) {
      if (loss == cut_off)
        endpoints[task] = {support::TwoHosts::address(tasks[task] == task_ ? 1 : 0),
                           std::to_string(20'000 + 3 * number + static_cast<int>(task))};
      places_.add(tasks[task], endpoints[task]);
    }
    for (const Task task : tasks)
      if (task != task_)
        threads_.emplace_back([this, task, own = endpoints[0]] {
          task == server_0 ? held_.serve(own) : serve_worker(places_.cluster, task);
          ++ended_;
        });
    start_victim();
  }
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;
  ~Cell() {
    held_.go_on();
    chief_.reset();
    for (std::thread& thread : threads_) thread.join();
  }

  [[nodiscard]] std::string name() const {
    return dist::concat(roles[role], ", ", moments[moment], ", ", losses[loss]);
  }

  void connect() {
    held_.hold();
    if (role != coordinator) chief_.emplace(places_.cluster);
  }
  [[nodiscard]] bool is_connected() const { return role == coordinator || chief_->is_connected(); }
  void begin() {
    if (role != coordinator) chief_->begin(moment);
  }
  /// True once the moment has come.
  [[nodiscard]] bool is_ready() const {
    const bool uses = moment == pulling || moment == pushing;
    if (role == coordinator) return uses ? held_.held() == 2 : says("it is busy");
    if (!chief_->is_busy(moment)) return false;
    return !uses || (role == server ? says("two are held") : held_.held() == 2);
  }
  void lose() {
    since_ = Clock::now();
    if (loss != cut_off) victim_->signal(loss == killed ? SIGKILL : SIGSTOP);
  }
  /// True once the other tasks have reacted to the loss.
  [[nodiscard]] bool is_noticed() {
    if (noticed) return true;
    held_.go_on();
    if (role == worker) {
      if (chief_->coordinator.metrics().lost < 1) return false;
    } else if (role == server) {
      try {
        static_cast<void>(chief_->coordinator.done());
        return false;
      } catch (const dist::ServerUnavailable& error) {
        CHECK(error.rank() == 0);
        CHECK(error.host() == places_.cluster.task_address(server_0));
      }
    } else if (ended_ < 3) {
      return false;
    }
    noticed = Clock::now() - since_;
    return true;
  }
  /// Starts a replacement of a lost worker.
  void replace() {
    if (role == worker) start_victim();
  }
  void check() {
    CAPTURE(name());
    const bool bounded = noticed && *noticed < (loss == killed ? after_kill : after_silence);
    CHECK(bounded);
    if (role != worker) return;
    // The other worker runs the functions of the lost one, except functions that wait for its replacement.
    CHECK_NOTHROW(chief_->coordinator.join(30s));
    std::size_t by_victim = 0;
    for (const auto& value : chief_->running)
      if (value.fetch(1s) == 0) ++by_victim;
    if (moment == queued) CHECK(by_victim >= 1);
    CHECK(chief_->coordinator.schedule_on(0, step, chief_->variable, int{idle}).fetch(30s) == 0);
    // A push that was held when its worker was lost may be applied in addition to its repetition.
    const float value = chief_->variable.read(chief_->strategy.scope())[0];
    if (moment == pushing)
      CHECK((value == 3 || value == 4));
    else
      CHECK(value == 1);
  }

  const Role role;
  const Moment moment;
  const Loss loss;
  std::optional<Clock::duration> noticed;

 private:
  void start_victim() {
    victim_.reset();
    victim_ = places_.start(task_, moment, folder_.path("stderr"), loss == cut_off ? hosts()->holder(1) : 0);
  }
  [[nodiscard]] bool says(const std::string& words) const {
    return folder_.read("stderr").find(words) != std::string::npos;
  }

  const support::TemporaryFolder folder_;
  HeldServer held_;
  const Task task_ = role == worker ? worker_0 : role == server ? server_0 : chief;  ///< the lost task
  Places places_;
  std::unique_ptr<support::Spawned> victim_;
  std::atomic<int> ended_{0};
  std::vector<std::thread> threads_;
  std::optional<Chief> chief_;
  Clock::time_point since_;
};

/// Returns whether it soon holds for all cells.
template <class Fn>
bool all_soon(const std::vector<std::unique_ptr<Cell>>& cells, Fn&& holds) {
  const bool all = soon([&] {
    std::size_t count = 0;
    for (const auto& cell : cells)
      if (holds(*cell)) ++count;
    return count == cells.size();
  });
  for (const auto& cell : cells)
    if (!holds(*cell)) MESSAGE("not so: " << cell->name());
  return all;
}

}  // namespace

TEST_CASE("a task of a job" * doctest::skip()) {
  const auto number = [](const char* variable) { return std::atoi(std::getenv(variable)); };
  const std::string task = std::getenv("DIST_TEST_TASK");
  if (const int holder = number("DIST_TEST_HOST"); holder != 0) support::TwoHosts::enter_host_of(holder);
  const auto moment = static_cast<Moment>(number("DIST_TEST_MOMENT"));
  dist::ClusterSpec cluster;
  std::string addresses = std::getenv("DIST_TEST_ADDRESSES");
  for (const Task each : tasks) {
    const std::size_t end = addresses.find(' ');
    cluster.add(each, addresses.substr(0, end));
    addresses.erase(0, end + 1);
  }
  for (const Task each : {worker_0, worker_1})
    if (task == to_string(each)) return serve_worker(cluster, each);
  if (task == to_string(server_0)) {
    HeldServer held{moment};
    held.hold();
    return held.serve(dist::task_endpoint(cluster, server_0, "the matrix"));
  }
  Chief own{cluster};
  REQUIRE(soon([&] { return own.is_connected(); }));
  own.begin(moment);
  REQUIRE(soon([&] { return own.is_busy(moment); }));
  dist::log_line("it is busy");
  for (int i = 0; i < 60 && getppid() != 1; ++i) std::this_thread::sleep_for(1s);
}

TEST_CASE("the loss of any task in any state is noticed in time, and breaks no promise (spec L14, L15, L22)") {
  if (hosts() != nullptr) hosts()->enter(0);
  std::vector<std::unique_ptr<Cell>> cells;
  for (const Role role : {worker, server, coordinator})
    for (const Moment moment : {idle, queued, computing, pulling, pushing})
      for (const Loss loss : {killed, stopped, cut_off}) {
        if (loss == cut_off && hosts() == nullptr) continue;
        if (role == worker && loss != cut_off && moment <= computing) continue;
        cells.push_back(std::make_unique<Cell>(role, moment, loss, static_cast<int>(cells.size())));
      }
  for (const auto& cell : cells) cell->connect();
  REQUIRE(all_soon(cells, [](const Cell& cell) { return cell.is_connected(); }));
  for (const auto& cell : cells) cell->begin();
  REQUIRE(all_soon(cells, [](const Cell& cell) { return cell.is_ready(); }));
  for (const auto& cell : cells) cell->lose();
  if (hosts() != nullptr) CHECK(hosts()->on(1, "link set dist0 down"));
  over = true;
  CHECK(all_soon(cells, [](Cell& cell) { return cell.is_noticed(); }));
  if (hosts() != nullptr) CHECK(hosts()->on(1, "link set dist0 up"));
  for (const auto& cell : cells)
    if (cell->noticed)
      MESSAGE(cell->name() << ": noticed after " << std::chrono::duration<double, std::milli>(*cell->noticed).count()
                           << " ms");
  if (hosts() == nullptr) MESSAGE("nothing was cut off: this user may make no network namespaces");
  for (const auto& cell : cells) cell->replace();
  for (const auto& cell : cells) cell->check();
  std::vector<std::thread> ends;  // some wait for a reply to their Leave
  for (auto& cell : cells) ends.emplace_back([&cell] { cell.reset(); });
  for (std::thread& end : ends) end.join();
}

namespace {

/// Resources of a process that must not grow.
struct Holdings {
  std::size_t threads = entries_of("/proc/self/task");
  std::size_t descriptors = entries_of("/proc/self/fd");
  std::size_t bytes = mallinfo2().uordblks;

  static std::size_t entries_of(const char* folder) {
    const std::filesystem::directory_iterator entries{folder};
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
  }
};

}  // namespace

TEST_CASE("a job with repeatedly killed workers runs all functions, and does not leak resources") {
  // For ten minutes with a kill every five seconds: DIST_TEST_SOAK_SECONDS=600.
  const char* const asked = std::getenv("DIST_TEST_SOAK_SECONDS");
  const std::chrono::milliseconds length = asked == nullptr ? 1200ms : std::chrono::seconds{std::atoi(asked)};
  const std::chrono::milliseconds between = std::min<std::chrono::milliseconds>(5s, length / 3);
  const support::TemporaryFolder folder;
  Places places;
  const auto endpoints = dist_test::free_endpoints(3);
  for (std::size_t task = 0; task < 3; ++task) places.add(tasks[task], endpoints[task]);
  std::thread server_thread{[own = endpoints[0]] { HeldServer{idle}.serve(own); }};
  std::unique_ptr<support::Spawned> workers[2];
  const auto start = [&](std::size_t index) {
    workers[index].reset();
    workers[index] = places.start(tasks[1 + index], idle, folder.path("stderr"));
  };
  for (const std::size_t index : {0U, 1U}) start(index);
  {
    Chief own{places.cluster};
    std::uint64_t scheduled = 0;
    std::size_t kills = 0;
    std::optional<Holdings> before;
    const auto begin = Clock::now();
    while (Clock::now() < begin + length) {
      for (; own.coordinator.metrics().waiting < 50; ++scheduled)
        static_cast<void>(own.coordinator.schedule(step, own.variable, int{pushing}));
      if (Clock::now() > begin + between * (kills + 1)) {
        REQUIRE(soon([&] { return own.is_connected(); }));
        if (!before) before.emplace();
        start(kills++ % 2);
      }
      std::this_thread::sleep_for(1ms);
    }
    CHECK_NOTHROW(own.coordinator.join(60s));
    REQUIRE(soon([&] { return own.is_connected(); }));
    const Holdings after;
    const dist::CoordinatorMetrics metrics = own.coordinator.metrics();
    const double pushes = static_cast<double>(own.variable.read(own.strategy.scope())[0]) - 1;
    REQUIRE(kills >= 2);
    MESSAGE(kills << " kills: " << scheduled << " functions, " << metrics.put_back << " put back, " << pushes
                  << " pushes; threads " << before->threads << " -> " << after.threads << ", descriptors "
                  << before->descriptors << " -> " << after.descriptors << ", bytes " << before->bytes << " -> "
                  << after.bytes);
    CHECK(metrics.finished == scheduled);
    CHECK(pushes >= static_cast<double>(scheduled));                     // at least once,
    CHECK(pushes <= static_cast<double>(scheduled + metrics.put_back));  // and again only functions that were put back
    CHECK(after.threads <= before->threads + 2);                         // the core starts and ends threads
    CHECK(after.descriptors <= before->descriptors + 4);
    CHECK(after.bytes < before->bytes + (4 << 20));
  }
  server_thread.join();
}
