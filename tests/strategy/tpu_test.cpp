#include <dist/strategy/tpu.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <dist/data/batch.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/tpu.hpp>

#include <support/environment_variable.hpp>
#include <support/fake_pjrt/fake_pjrt.hpp>
#include <support/stderr_of.hpp>
#include <support/what_throws.hpp>

using dist::PerReplica;

namespace {

using Variable = support::EnvironmentVariable;

template <class Error>
std::string refusal(const dist::TpuOptions& options) {
  return support::what_throws<Error>([&] { const dist::Tpu<> strategy{options}; });
}

}  // namespace

// These two must run first: the process has no client yet, and one thread.
TEST_CASE("without a valid plugin creating a strategy throws") {
  {
    const Variable plugin{"DIST_PJRT_PLUGIN", nullptr};
    const Variable tpu{"TPU_LIBRARY_PATH", nullptr};
    const Variable python{"VIRTUAL_ENV", nullptr};
    CHECK(refusal<dist::NoPlugin>({}).find("No PJRT plugin was found (neither DIST_PJRT_PLUGIN nor TPU_LIBRARY_PATH") ==
          0);
    const Variable library{"TPU_LIBRARY_PATH", "/nowhere/libtpu.so"};
    CHECK(refusal<dist::NoPlugin>({}).find("'/nowhere/libtpu.so' cannot be loaded") != std::string::npos);
  }
  CHECK(refusal<dist::NoPlugin>({.plugin = "/nowhere/plugin.so"}).find("'/nowhere/plugin.so' cannot be loaded") !=
        std::string::npos);
  const Variable version{"DIST_FAKE_PJRT_MAJOR_VERSION", "7"};
  CHECK(refusal<dist::NoPlugin>({.plugin = fake_pjrt::plugin()}).find("it implements version 7.") != std::string::npos);
}

TEST_CASE("compiling a step again is reported, once") {
  const testing::Ending ending = testing::stderr_of([] {
    dist::OneDevice<dist::Xla> strategy;
    auto step = strategy.compile([](auto&, const auto& rows) { return rows; });
    for (const std::size_t rows : {1U, 2U, 1U, 3U}) static_cast<void>(step(dist::Tensor<float>{{rows, 2}}));
  });
  const std::string said = "A step is compiled again, for [2, 2] instead of [1, 2].";
  CHECK(ending.says(said));
  CHECK(ending.stderr_text.find("is compiled again") == ending.stderr_text.rfind("is compiled again"));
}

TEST_CASE("a strategy has a replica on each device of the plugin, or on the first ones (spec A24)") {
  const Variable devices{"DIST_PJRT_VALUES", "cpu_device_count=4"};
  dist::Tpu<> strategy;
  CHECK(strategy.num_replicas_in_sync() == 4);
  CHECK(strategy.describe() == "Tpu<Xla>: 4 replicas on /xla:0 /xla:1 /xla:2 /xla:3, platform cpu");
  const dist::Tpu two{2};
  CHECK(two.worker_devices() == std::vector<std::string>{"/xla:0", "/xla:1"});
  const dist::Tpu<> named{{.plugin = std::getenv("DIST_PJRT_PLUGIN"), .devices = {"/xla:0", "XLA:1", "/device:XLA:2"}}};
  CHECK(named.num_replicas_in_sync() == 3);

  CHECK(refusal<dist::InvalidArgument>({.replicas = 5})
            .find("A Tpu has fewer devices than replicas (5 replicas were requested, and the platform 'cpu' has 4 "
                  "devices)") != std::string::npos);
  CHECK(refusal<dist::InvalidArgument>({.replicas = 0}) != "nothing was thrown");
  CHECK(refusal<dist::InvalidArgument>({.devices = {"/xla:4"}}).find("Device '/xla:4' does not exist") == 0);
  CHECK(
      refusal<dist::InvalidArgument>({.devices = {"/xla:1", "/xla:0"}})
          .find("replica 0 of Tpu<Xla>: 2 replicas on /xla:1 /xla:0, platform cpu is on /xla:1, but a program runs its "
                "replicas on the first devices") != std::string::npos);
  const std::string other = refusal<dist::InvalidArgument>({.plugin = fake_pjrt::plugin()});
  CHECK(other.find("A process has one PJRT plugin, but two were named") == 0);
  CHECK(other.find(fake_pjrt::plugin()) != std::string::npos);
}

namespace {

/// Three calls of one step, written like a replica function: the mean of the replicas' values, the gathered values, and
/// the total.
template <class S>
void check_step(S& strategy) {
  auto total = strategy.template variable<float, dist::OnRead, dist::Sum>({}, 1.0F);
  auto mean = strategy.template variable<float, dist::OnWrite, dist::Mean>({}, 0.0F);
  auto step = strategy.compile([&](auto& replica, auto x, auto factor) {
    const auto square = x * x * factor;
    total.assign_add(replica, square);
    mean.assign(replica, total.value(replica));
    return std::pair{replica.all_reduce(dist::sum, square), mean.value(replica) - total.value(replica)};
  });
  for (int call = 1; call <= 3; ++call) {
    const auto [sum, difference] = step(PerReplica<float>::of(1.0F, 2.0F), 2.0F);
    CHECK(strategy.reduce(dist::max, sum) == 10);
    // for totals 1 + 2n and 1 + 8n
    CHECK(strategy.reduce(dist::min, difference) == -3.0F * static_cast<float>(call));
    CHECK(total.value(strategy.scope()) == static_cast<float>(2 + 10 * call));
    CHECK(mean.value(strategy.scope()) == static_cast<float>(1 + 5 * call));
  }
}

}  // namespace

TEST_CASE("a step is compiled on Xla devices of any strategy, and run on others") {
  dist::Tpu<> tpu{2};
  check_step(tpu);
  dist::Mirrored<dist::XlaAllReduce> mirrored{2};
  check_step(mirrored);
  dist::Mirrored<dist::ThreadAllReduce, dist::Cpu> of_host{2};
  check_step(of_host);
}

TEST_CASE("replica functions of run and compiled steps share variables") {
  dist::Tpu<> strategy{2};
  auto count = strategy.variable<float, dist::OnRead, dist::Sum>({}, 0.0F);
  auto step = strategy.compile([&](auto& replica) { count.assign(replica, 2 * count.value(replica)); });
  for (int pass = 0; pass < 3; ++pass) {
    strategy.run([&](auto& replica) { count.assign_add(replica, static_cast<float>(replica.local_index() + 1)); });
    step();
  }
  // ((1 + ...) 2 + ...) 2: 14 times 1 and 14 times 2.
  CHECK(strategy.run([&](auto& replica) { return count.value(replica); })[1] == 28);
  CHECK(count.value(strategy.scope()) == 42);
}

TEST_CASE(
    "batches of a distributed dataset, also the last partial one, are arguments of a compiled step (spec C17, I24)") {
  dist::Tensor<float> x{{10, 2}};
  dist::Tensor<std::int32_t> y{{10}};
  for (std::size_t row = 0; row < 10; ++row) {
    x(row, 0) = 1;
    x(row, 1) = static_cast<float>(row);
    y[row] = static_cast<std::int32_t>(row + 1);
  }
  for (const std::size_t replicas : {1U, 2U, 4U}) {
    CAPTURE(replicas);
    dist::Tpu<> strategy{replicas};
    auto rows = strategy.variable<std::int32_t, dist::OnRead, dist::Sum>({}, 0);
    auto step = strategy.compile([&](auto& replica, const auto& batch) {
      namespace hlo = dist::hlo;
      rows.assign_add(replica, replica.rows());
      const auto factors = batch.y.template as<hlo::batch>().template as<float>();
      return hlo::reduce<0>(dist::sum, batch.x.template as<hlo::batch, 2>() *
                                           hlo::broadcast<hlo::Traced<float, hlo::batch, 2>, 0>(factors));
    });
    dist::Tensor<float> total{{2}};
    auto batches = strategy.distribute_dataset(dist::data::tensor_slices(x, y) | dist::data::batch(4));
    for (auto& batch : batches) {
      const dist::Tensor<float> sums = strategy.reduce(dist::sum, step(batch));
      for (std::size_t i = 0; i < 2; ++i) total[i] += sums[i];
    }
    CHECK(total == dist::Tensor<float>{{2}, {55, 330}});  // 1 + 2 + ... + 10, and 0 1 + 1 2 + ... + 9 10
    CHECK(rows.value(strategy.scope()) == 10);
    CHECK(step.programs() == 1);
  }
}

TEST_CASE("compile is refused for shared devices, or devices in another order") {
  dist::Mirrored<dist::XlaAllReduce> shared{5};
  CHECK(support::what_throws<dist::InvalidArgument>([&] {
          static_cast<void>(shared.compile([](auto&) {}));
        }).find("replica 4 of Mirrored<XlaAllReduce, Xla>: 5 replicas on") != std::string::npos);
}
