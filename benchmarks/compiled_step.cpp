// Overhead of a compiled step's call over XLA's launch of the same program, and the time to compile a step and to
// load it from the cache. Uses Google Benchmark and the PJRT plugin DIST_PJRT_PLUGIN.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <dist/hlo/function.hpp>
#include <dist/tpu.hpp>

namespace {

namespace hlo = dist::hlo;
namespace pjrt = dist::pjrt;

/// The plain PJRT calls for a program that adds 1 to a donated argument.
void launch(benchmark::State& state) {
  const auto replicas = static_cast<std::size_t>(state.range(0));
  const pjrt::Client client = pjrt::process_client();
  const pjrt::Executable program{
      client, hlo::trace<hlo::Donated<hlo::Traced<float>>>(replicas, [](auto x) { return x + 1; }).module(), replicas};
  std::vector<pjrt::Buffer> start;
  std::vector<PJRT_Buffer*> arguments, results(replicas);
  std::vector<PJRT_Buffer* const*> argument_lists;
  std::vector<PJRT_Buffer**> result_lists;
  for (std::size_t replica = 0; replica < replicas; ++replica)
    arguments.push_back(start.emplace_back(pjrt::upload(client, replica, dist::Tensor<float>{dist::Shape{}})).get());
  for (std::size_t replica = 0; replica < replicas; ++replica) {
    argument_lists.push_back(&arguments[replica]);
    result_lists.push_back(&results[replica]);
  }
  const PJRT_Api& api = *client.api().get();
  bool is_first = true;
  for (auto _ : state) {
    auto options = DIST_PJRT_ARGUMENTS(PJRT_ExecuteOptions);
    auto call = DIST_PJRT_ARGUMENTS(PJRT_LoadedExecutable_Execute_Args);
    call.executable = program.get();
    call.options = &options;
    call.argument_lists = argument_lists.data();
    call.num_devices = replicas;
    call.num_args = 1;
    call.output_lists = result_lists.data();
    if (api.PJRT_LoadedExecutable_Execute(&call) != nullptr) {
      state.SkipWithError("the program failed");
      break;
    }
    for (std::size_t replica = 0; replica < replicas; ++replica) {
      auto of_buffer = DIST_PJRT_ARGUMENTS(PJRT_Buffer_Destroy_Args);
      of_buffer.buffer = std::exchange(arguments[replica], results[replica]);
      if (!is_first) api.PJRT_Buffer_Destroy(&of_buffer);
    }
    is_first = false;
  }
  if (is_first) return;
  for (PJRT_Buffer* const buffer : arguments) pjrt::Buffer{client, buffer}.wait();
}
BENCHMARK(launch)->ArgName("replicas")->Arg(1)->Arg(2)->UseRealTime();

/// The program of `launch` as a compiled step with one variable.
void call(benchmark::State& state) {
  dist::Tpu<> strategy{static_cast<std::size_t>(state.range(0))};
  auto count = strategy.variable<float, dist::OnRead, dist::Sum>({}, 0.0F);
  auto step = strategy.compile([&](auto& replica) { count.assign_add(replica, 1); });
  step();
  for (auto _ : state) step();
  benchmark::DoNotOptimize(count.value(strategy.scope()));
}
BENCHMARK(call)->ArgName("replicas")->Arg(1)->Arg(2)->UseRealTime();

/// A batch of 32 rows per replica, and a returned number.
void call_with_batch(benchmark::State& state) {
  dist::Tpu<> strategy{static_cast<std::size_t>(state.range(0))};
  auto step = strategy.compile(
      [](auto&, const auto& batch) { return hlo::reduce(dist::sum, batch.template as<hlo::batch, 16>()); });
  const dist::PerReplica<dist::Tensor<float>> batch(strategy.num_replicas_in_sync(), [](std::size_t) {
    return dist::Tensor<float>{{32, 16}};
  });
  for (auto _ : state) benchmark::DoNotOptimize(strategy.reduce(dist::sum, step(batch)));
}
BENCHMARK(call_with_batch)->ArgName("replicas")->Arg(1)->Arg(2)->UseRealTime();

/// The first call of a step: two layers, their gradients, the sum over the replicas, and gradient descent.
class FirstCall {
 public:
  explicit FirstCall(std::string cache) : options_{.cache = std::move(cache)} {}

  void operator()() {
    auto step = strategy_.compile(
        [this](auto& replica, const auto& batch) {
          const auto x = batch.template as<hlo::batch, 784>();
          const auto first = first_.read(replica).template as<784, 128>();
          const auto second = second_.read(replica).template as<128, 10>();
          const auto hidden = hlo::max(hlo::contract<1, 0>(x, first), 0.0F);
          const auto outputs = hlo::contract<1, 0>(hidden, second);
          const auto loss = hlo::reduce(dist::sum, outputs * outputs);
          const auto [of_first, of_second] = hlo::gradients(loss, std::tuple{first, second});
          first_.assign_sub(replica, of_first);
          second_.assign_sub(replica, of_second);
          return loss;
        },
        options_);
    benchmark::DoNotOptimize(strategy_.reduce(dist::sum, step(batch_)));
  }

 private:
  using Weights = dist::DistributedVariable<float, dist::OnWrite, dist::Sum, dist::Xla>;

  dist::Tpu<> strategy_{2};
  dist::CompileOptions options_;
  dist::PerReplica<dist::Tensor<float>> batch_{2, [](std::size_t) { return dist::Tensor<float>{{32, 784}}; }};
  Weights first_ = strategy_.variable<float, dist::OnWrite, dist::Sum>({784, 128}, 0.01F);
  Weights second_ = strategy_.variable<float, dist::OnWrite, dist::Sum>({128, 10}, 0.01F);
};

void compile(benchmark::State& state) {
  FirstCall first_call{""};
  for (auto _ : state) first_call();
}
BENCHMARK(compile)->UseRealTime()->Unit(benchmark::kMillisecond);

void load_from_cache(benchmark::State& state) {
  std::string folder = std::filesystem::temp_directory_path() / "dist_bench_compiled_step";
  {
    FirstCall first_call{folder};
    first_call();
    for (auto _ : state) first_call();
  }
  std::filesystem::remove_all(folder);
}
BENCHMARK(load_from_cache)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

int main(int count, char** arguments) {
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 1;
  try {
    pjrt::set_process_options({.values = {{"cpu_device_count", std::int64_t{2}}}});
    benchmark::RunSpecifiedBenchmarks();
  } catch (const dist::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
