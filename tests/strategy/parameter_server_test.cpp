#include <dist/strategy/parameter_server.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <dist/checkpoint/checkpoint.hpp>
#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/coordinator/serve.hpp>
#include <dist/core/tensor.hpp>
#include <dist/rpc/local_transport.hpp>
#include <dist/server/server_variable.hpp>
#include <dist/strategy/default.hpp>
#include <dist/variable/embedding.hpp>
#include <dist/variable/partitioner.hpp>
#include <support/stderr_of.hpp>
#include <support/temporary_folder.hpp>

using dist::ClusterCoordinator;
using dist::ClusterSpec;
using dist::Local;
using dist::ParameterServer;
using dist::Shape;
using dist::SimpleResolver;
using dist::Task;
using dist::TaskType;
using dist::Tensor;
using dist::TensorView;
using dist::WorkerContext;

namespace {

using Variable = dist::ServerVariable<float, Local>;

/// A job whose parameter servers and workers are threads of this process, which end with its coordinator.
class Job {
 public:
  Job(std::size_t servers, std::size_t workers, dist::ParameterServerOptions options = {}) {
    for (std::size_t i = 0; i < servers; ++i) cluster_.append(TaskType::parameter_server, {address()});
    for (std::size_t i = 0; i < workers; ++i) cluster_.append(TaskType::worker, {address()});
    for (const Task task : cluster_.tasks()) start(task);
    strategy_.emplace(SimpleResolver{cluster_, Task{TaskType::chief, 0}}, std::move(options));
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() {
    strategy_.reset();
    for (std::thread& thread : threads_) thread.join();
  }

  [[nodiscard]] ParameterServer<Local>& strategy() { return *strategy_; }
  /// Starts another worker, unknown to the coordinator, and returns its endpoint.
  [[nodiscard]] dist::net::Endpoint start_worker() {
    const Task task{TaskType::worker, cluster_.task_indices(TaskType::worker).size()};
    cluster_.append(TaskType::worker, {address()});
    start(task);
    return dist::task_endpoint(cluster_, task, "the test");
  }

 private:
  void start(Task task) {
    threads_.emplace_back([cluster = cluster_, task] { CHECK(dist::serve<Local>(SimpleResolver{cluster, task})); });
  }
  [[nodiscard]] static std::string address() {
    static int port = 0;
    return "job:" + std::to_string(++port);
  }

  ClusterSpec cluster_;
  std::vector<std::thread> threads_;
  std::optional<ParameterServer<Local>> strategy_;
};

std::vector<float> values_of(const Tensor<float>& tensor) {
  return {tensor.elements().begin(), tensor.elements().end()};
}
std::vector<std::uint64_t> servers_of(const Variable& variable) {
  std::vector<std::uint64_t> servers;
  for (const auto& shard : variable.shards()) servers.push_back(shard.place().server);
  return servers;
}

float square(std::uint64_t i) { return static_cast<float>(i * i); }

/// Momentum: the slot is the last change of the weight.
struct Momentum {
  static constexpr std::array<float, 1> slots{0};
  float rate = 0.5F;
  float operator()(float weight, float gradient, float* velocity) const {
    velocity[0] = rate * velocity[0] + gradient;
    return weight - velocity[0];
  }
};

}  // namespace

TEST_CASE("shards are assigned to servers in rotation, and an undivided variable is one shard (spec J04, J05, J06)") {
  Job job(3, 1, {.partitioner = [](const Shape& shape, std::size_t) { return shape[0] > 4 ? 4 : 1; }});
  auto& strategy = job.strategy();
  const auto small = strategy.variable<float>({2}, 1.0F, "small");
  const auto large = strategy.variable<float>({6, 2}, 1.0F, "large");
  const auto scalar = strategy.variable<float>({}, 1.0F, "scalar");
  CHECK(servers_of(small) == std::vector<std::uint64_t>{0});
  CHECK(servers_of(large) == std::vector<std::uint64_t>{1, 2, 0, 1});
  CHECK(servers_of(scalar) == std::vector<std::uint64_t>{2});
  CHECK(small.shards()[0].name() == "small");
  CHECK(large.shards()[3].name() == "large/part_3");
  CHECK(large.shards()[1].shape() == Shape{2, 2});
  CHECK(large.shards()[2].shape() == Shape{1, 2});
  CHECK(strategy.describe().find(">: 3 parameter servers, 1 worker") != std::string::npos);
}

TEST_CASE("initial values are numbers, tensors and functions, including functions run by servers (spec J07)") {
  Job job(2, 1, {.partitioner = dist::FixedShards{2}});
  auto& strategy = job.strategy();
  const auto scope = strategy.scope();
  CHECK(values_of(strategy.variable<float>({3}, 2.5F).read(scope)) == std::vector<float>{2.5F, 2.5F, 2.5F});
  CHECK(values_of(strategy.variable<float>({3}, std::vector<float>{1, 2, 3}).read(scope)) ==
        std::vector<float>{1, 2, 3});
  const float first = 7;
  CHECK(values_of(strategy
                      .variable<float>({3},
                                       [&](TensorView<float> all) {
                                         for (std::size_t i = 0; i < 3; ++i) all[i] = first + static_cast<float>(i);
                                       })
                      .read(scope)) == std::vector<float>{7, 8, 9});
  CHECK(values_of(strategy
                      .variable<float>({3, 1},
                                       [&](TensorView<float> part, dist::IndexRange rows) {
                                         CHECK(part.rows() == rows.size());
                                         for (std::size_t i = 0; i < part.size(); ++i)
                                           part[i] = first * static_cast<float>(rows.begin + i);
                                       })
                      .read(scope)) == std::vector<float>{0, 7, 14});
  CHECK(values_of(strategy.variable<float>({5}, dist::function<square>).read(scope)) ==
        std::vector<float>{0, 1, 4, 9, 16});
  CHECK(values_of(strategy
                      .variable<float>({5}, [](std::uint64_t begin,
                                               std::span<float> part) { part[0] = static_cast<float>(begin + 1); })
                      .read(scope)) == std::vector<float>{1, 0, 0, 4, 0});
  CHECK(strategy.variable<std::int64_t>({}, 42).read(scope)[0] == 42);
  CHECK_THROWS_AS((void)strategy.variable<float>({3}, std::vector<float>{1, 2}), dist::ShapeMismatch);
}

TEST_CASE("the coordinator reads and writes variables, whole and by rows") {
  Job job(2, 1, {.partitioner = dist::FixedShards{3}});
  auto& strategy = job.strategy();
  const auto scope = strategy.scope();
  auto table = strategy.variable<float>({5, 2}, dist::function<square>, "table");
  CHECK(values_of(table.gather(scope, std::vector<std::int64_t>{4, 0, 4})) == std::vector<float>{64, 81, 0, 1, 64, 81});
  CHECK_THROWS_AS((void)table.gather(scope, std::vector<std::int64_t>{5}), dist::InvalidArgument);
  table.assign(scope, 1.0F);
  dist::IndexedSlices<float> slices(3, Shape{5, 2});
  std::copy_n(std::vector<std::int64_t>{3, 1, 3}.data(), 3, slices.indices().data());
  std::fill_n(slices.values().data(), 6, 2.0F);
  table.scatter_add(scope, slices);
  CHECK(values_of(table.read(scope)) == std::vector<float>{1, 1, 3, 3, 1, 1, 5, 5, 1, 1});
  table.scatter_mul(scope, slices);
  CHECK(values_of(table.gather(scope, std::vector<std::int64_t>{3})) == std::vector<float>{20, 20});
  auto scalar = strategy.variable<float>({}, 3.0F);
  scalar.assign_add(scope, 4.0F);
  CHECK(scalar.read(scope)[0] == 7);
  Tensor<float> two{Shape{}};
  two[0] = 2;
  scalar.restore(scope, two.view());
  CHECK(scalar.read(scope)[0] == 2);
  scalar.ensure_slots(scope, {1.0});
  scalar.assign_slot(scope, 0, scalar.read(scope).view());
  CHECK(scalar.read_slot(scope, 0)[0] == 2);
  CHECK(scalar.read(scope)[0] == 2);
  CHECK_THROWS_AS((void)scalar.gather(scope, std::vector<std::int64_t>{0}), dist::ShapeMismatch);
  CHECK(dist::embedding_lookup(scope, table, std::vector<std::int64_t>{1}).values().shape() == Shape{1, 2});
}

TEST_CASE("scheduled functions read and change variables, and no change is lost") {
  Job job(2, 3, {.partitioner = dist::FixedShards{2}});
  auto& strategy = job.strategy();
  auto weights = strategy.variable<float>({4}, 0.0F, "weights");
  auto count = strategy.variable<std::int64_t>({}, 0, "count");
  ClusterCoordinator coordinator{strategy};
  const auto step = [](WorkerContext& worker, auto& its_weights, auto& its_count, float by) {
    its_weights.assign_add(worker, by);
    its_count.assign_add(worker, 1);
    return its_weights.read(worker).shape();
  };
  dist::RemoteValue<Shape> last;
  for (int i = 0; i < 200; ++i) last = coordinator.schedule(step, weights, count, static_cast<float>(i % 3));
  coordinator.join();
  CHECK(last.fetch() == Shape{4});
  CHECK(values_of(weights.read(strategy.scope())) == std::vector<float>(4, 199.0F));
  CHECK(count.read(strategy.scope())[0] == 200);
}

TEST_CASE("an added worker runs functions, and ends with the job like the others (spec J12)") {
  Job job(1, 1);  // its destructor waits for all threads
  auto total = job.strategy().variable<std::int64_t>({}, 0, "total");
  ClusterCoordinator coordinator{job.strategy()};
  CHECK(coordinator.add_worker(job.start_worker()) == 1);
  const auto step = [](WorkerContext& worker, auto& its_total) {
    its_total.assign_add(worker, 1);
    return worker.index();
  };
  CHECK(coordinator.schedule_on(1, step, total).fetch() == 1);
  CHECK(total.read(job.strategy().scope())[0] == 1);
}

TEST_CASE("scheduled functions look up embeddings, and push gradients of their rows (spec K08)") {
  Job job(2, 2, {.partitioner = dist::FixedShards{2}});
  auto& strategy = job.strategy();
  auto table = strategy.variable<float>({1000, 2}, 3.0F, "table");
  ClusterCoordinator coordinator{strategy};
  const auto step = [](WorkerContext& worker, auto& its_table, std::int64_t id) {
    const auto found = dist::embedding_lookup(worker, its_table, std::vector<std::int64_t>{id, 999 - id, id});
    Tensor<float> ones{found.values().shape()};
    for (std::size_t i = 0; i < ones.size(); ++i) ones[i] = 1;
    its_table.apply(worker, dist::sum, found.gradient(ones).view());
    return found.values().shape();
  };
  CHECK(coordinator.schedule(step, table, std::int64_t{7}).fetch() == Shape{3, 2});
  for (std::int64_t i = 0; i < 50; ++i) coordinator.schedule(step, table, i % 5);
  coordinator.join();
  CHECK(values_of(table.gather(strategy.scope(), std::vector<std::int64_t>{7, 992, 4, 995, 500})) ==
        std::vector<float>{5, 5, 4, 4, 23, 23, 13, 13, 3, 3});
}

TEST_CASE("optimizer functors run on the servers, with slots, also for rows") {
  Job job(2, 1, {.partitioner = dist::FixedShards{2}});
  auto& strategy = job.strategy();
  const auto scope = strategy.scope();
  auto weights = strategy.variable<float>({3, 1}, 10.0F, "weights");
  weights.ensure_slots(scope, {0.0});
  Tensor<float> gradient{Shape{3, 1}};
  for (std::size_t i = 0; i < 3; ++i) gradient[i] = static_cast<float>(i);
  weights.apply(scope, Momentum{}, gradient.view());
  weights.apply(scope, Momentum{}, gradient.view());
  CHECK(values_of(weights.read(scope)) == std::vector<float>{10, 7.5F, 5});
  CHECK(values_of(weights.read_slot(scope, 0)) == std::vector<float>{0, 1.5F, 3});
  dist::IndexedSlices<float> slices(2, Shape{3, 1});  // the same row twice: its gradients are added
  slices.indices()[0] = slices.indices()[1] = 2;
  slices.values()[0] = slices.values()[1] = 0.25F;
  weights.apply(scope, Momentum{}, slices.view());
  CHECK(values_of(weights.read(scope)) == std::vector<float>{10, 7.5F, 3});
  CHECK_THROWS_AS(weights.apply(scope, Momentum{}, TensorView<const float>{gradient.data(), Shape{3}}),
                  dist::ShapeMismatch);
}

TEST_CASE("a push contains the version of its gradient, and staleness is counted") {
  Job job(1, 1);
  auto& strategy = job.strategy();
  const auto scope = strategy.scope();
  auto weights = strategy.variable<float>({2}, 0.0F);
  const auto pulled = weights.pull(scope);
  CHECK(values_of(pulled.values) == std::vector<float>{0, 0});
  const Tensor<float> gradient{Shape{2}};
  CHECK(weights.apply(scope, dist::sum, gradient.view(), {.versions = pulled.versions})[0].staleness == 0);
  CHECK(weights.apply(scope, dist::sum, gradient.view(), {.versions = pulled.versions})[0].staleness == 1);
  CHECK(weights.staleness(scope) == dist::server::Staleness{.pushes = 2, .sum = 1, .max = 1});
  CHECK_THROWS_AS(weights.apply(scope, dist::sum, gradient.view(), {.versions = {0, 0}}), dist::InvalidArgument);
}

TEST_CASE("a checkpoint is restored with other numbers of servers and shards, and without servers (spec K11)") {
  const support::TemporaryFolder folder;
  {
    Job job(2, 1, {.partitioner = dist::FixedShards{3}});
    auto table = job.strategy().variable<float>({5}, dist::function<square>, "table");
    dist::Checkpoint checkpoint{job.strategy()};
    checkpoint.add("table", table);
    checkpoint.save(folder.path("saved"));
  }
  Job job(3, 1);
  auto table = job.strategy().variable<float>({5}, 0.0F, "table");
  dist::Checkpoint checkpoint{job.strategy()};
  checkpoint.add("table", table);
  checkpoint.restore(folder.path("saved"));
  CHECK(values_of(table.read(job.strategy().scope())) == std::vector<float>{0, 1, 4, 9, 16});

  dist::Default alone;
  auto plain = alone.variable<float>(Shape{5}, 0.0F, "table");
  dist::Checkpoint of_plain{alone};
  of_plain.add("table", plain);
  of_plain.restore(folder.path("saved"));
  CHECK(plain.read(alone.scope())[3] == 9);
}

TEST_CASE("a destroyed variable is removed from its servers, but not by workers that refer to it") {
  Job job(1, 1);
  auto& strategy = job.strategy();
  const auto shards = [&] {
    const auto kept = strategy.variable<float>({1});  // its shard shows the server
    return kept.shards()[0].client(strategy.scope())->list().size();
  };
  CHECK(shards() == 1);
  {
    auto variable = strategy.variable<float>({2});
    CHECK(shards() == 2);
    ClusterCoordinator coordinator{strategy};
    coordinator.schedule([](WorkerContext& worker, auto& its) { its.assign(worker, 1.0F); }, variable);
    coordinator.join();
    CHECK(values_of(variable.read(strategy.scope())) == std::vector<float>{1, 1});
    CHECK(shards() == 2);
  }
  CHECK(shards() == 1);
}

TEST_CASE("threads of one process write to the memory of their servers, unless disabled") {
  using dist::server::SharedMemoryAccess;
  CHECK(Job(1, 1).strategy().worker_options().shared_memory == SharedMemoryAccess::write);
  for (const SharedMemoryAccess access : {SharedMemoryAccess::none, SharedMemoryAccess::read}) {
    Job job(1, 1, {.shared_memory = access});
    auto variable = job.strategy().variable<float>({2}, 1.0F);
    ClusterCoordinator coordinator{job.strategy()};
    coordinator.schedule([](WorkerContext& worker, auto& its) { its.assign_add(worker, 2.0F); }, variable);
    coordinator.join();
    CHECK(values_of(variable.read(job.strategy().scope())) == std::vector<float>{3, 3});
  }
}

TEST_CASE("the process of the strategy must be the chief (spec J01, J12)") {
  const ClusterSpec cluster{{TaskType::parameter_server, {"job:9001"}}, {TaskType::worker, {"job:9002"}}};
  CHECK_THROWS_WITH_AS(
      (ParameterServer<Local>{SimpleResolver{cluster, Task{TaskType::worker, 0}}}),
      "A ParameterServer was made in worker 0 (SimpleResolver names this task, and the coordinator is the chief). "
      "First call dist::serve, which returns true in parameter servers and workers when they have finished.",
      dist::InvalidArgument);
  CHECK_THROWS_AS((ParameterServer<Local>{SimpleResolver{{}, Task{TaskType::chief, 0}}}), dist::InvalidArgument);
  CHECK_THROWS_AS((ParameterServer<Local>{SimpleResolver{cluster, Task{TaskType::chief, 0}},
                                          {.wait_for_servers = dist::net::Milliseconds{50}}}),
                  dist::ServerUnavailable);
}

TEST_CASE("a function that runs on the coordinator causes a warning (spec J10)") {
  Job job(1, 1);
  const auto said = testing::stderr_of([&] {
    unsetenv("DIST_WARNINGS");
    CHECK(job.strategy().run([](auto& replica) { return replica.num_replicas_in_sync(); }) == 1);
  });
  CHECK(said.stderr_text.find("dist: strategy.run of a ParameterServer ran a function on the coordinator") == 0);
}
