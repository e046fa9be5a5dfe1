// Selection of a program's GPUs by name, CUDA_VISIBLE_DEVICES and launcher; errors without GPUs or after losing them;
// CPU strategies still work.
#include <dist/device/cuda/device.cuh>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dist/comm/cuda/policies.cuh>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>
#include <dist/variable/policies.hpp>
#include <support/fake_cuda/machine.hpp>
#include <support/what_throws.hpp>

using dist::Cuda;
using support::what_throws;
using Names = std::vector<std::string>;
using OnGpus = dist::Mirrored<dist::DirectAllReduce, Cuda>;
using OnHost = dist::Mirrored<dist::ThreadAllReduce>;

namespace {

fake_cuda::Options machine_of(int devices) {
  fake_cuda::Options options;
  options.devices = devices;
  return options;
}

/// The environment of one of several processes that a launcher started on this machine.
class Launched {
 public:
  Launched(const char* rank, const char* size) : Launched({{"LOCAL_RANK", rank}, {"LOCAL_WORLD_SIZE", size}}) {}
  explicit Launched(std::vector<std::pair<const char*, const char*>> variables) : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) setenv(name, value, 1);
  }
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;
  ~Launched() {
    for (const auto& [name, value] : variables_) unsetenv(name);
  }

 private:
  std::vector<std::pair<const char*, const char*>> variables_;
};

struct AddOne {
  float* values;
  DIST_HD void operator()(std::size_t i) const { values[i] += 1; }
};

/// Two steps of all replicas.
template <class Strategy>
float train(Strategy& strategy) {
  auto total = strategy.template variable<float, dist::OnRead, dist::Sum>({4}, 0.0F, "total");
  for (int step = 0; step < 2; ++step)
    strategy.run([&](auto& replica) { replica.for_each(4, AddOne{total.component(replica).data()}); });
  return total.read(strategy.scope())[0];
}

/// A program that computes on the host.
void check_host() {
  dist::OneDevice<dist::Cpu> one;
  CHECK(train(one) == 2);
  OnHost two{2};
  CHECK(train(two) == 4);
}

}  // namespace

TEST_CASE("GPU names have the same forms as CPU names (spec A01, A02)") {
  fake_cuda::restart(machine_of(4));
  for (const Names& names : {Names{"/gpu:2", "/gpu:0"}, Names{"GPU:2", "gpu:0"}, Names{"/device:GPU:2", "device:gpu:0"},
                             Names{"/job:localhost/replica:0/task:0/device:GPU:2", "/job:localhost/gpu:0"}}) {
    OnGpus strategy{names};
    CHECK(strategy.worker_devices() == Names{"/gpu:2", "/gpu:0"});
    CHECK(strategy.describe() == "Mirrored<DirectAllReduce, Cuda>: 2 replicas on /gpu:2 /gpu:0");
    CHECK(train(strategy) == 4);
  }
  CHECK(dist::OneDevice<Cuda>{"GPU:3"}.describe() == "OneDevice<Cuda>: 1 replica on /gpu:3");
  CHECK_THROWS_AS((OnGpus{Names{"/gpu:1", "GPU:1"}}), dist::InvalidArgument);
  CHECK_THROWS_AS((OnGpus{Names{"/cpu:0"}}), dist::InvalidArgument);
  CHECK_THROWS_AS((dist::OneDevice<Cuda>{"/cpu:0"}), dist::InvalidArgument);
  CHECK_THROWS_AS((dist::OneDevice<Cuda>{""}), dist::InvalidArgument);
  CHECK_THROWS_AS((OnHost{Names{"/gpu:0"}}), dist::InvalidArgument);
}

TEST_CASE("the error of a hidden or missing GPU lists the visible ones") {
  fake_cuda::Options machine = machine_of(4);
  machine.visible = "3,1";
  fake_cuda::restart(machine);
  CHECK(Cuda::count() == 2);
  const std::string expected =
      "Device '/gpu:3' does not exist (this process sees /gpu:0 (entry '3'), /gpu:1 (entry '1'); "
      "CUDA_VISIBLE_DEVICES='3,1'). Name a visible GPU, or change CUDA_VISIBLE_DEVICES before the program starts: the "
      "numbers in names count the visible GPUs, not all GPUs of the machine.";
  CHECK(what_throws<dist::InvalidArgument>([] { OnGpus{Names{"/gpu:3"}}; }) == expected);
  CHECK(what_throws<dist::InvalidArgument>([] { dist::OneDevice<Cuda>{"/gpu:3"}; }) == expected);
  check_host();
  fake_cuda::restart(machine_of(1));
  CHECK(what_throws<dist::InvalidArgument>([] {
          OnGpus{Names{"/gpu:1"}};
        }).find("this process sees /gpu:0; CUDA_VISIBLE_DEVICES is not set") != std::string::npos);
}

TEST_CASE("processes of a launcher share the visible GPUs by local rank (spec M17)") {
  fake_cuda::restart(machine_of(4));
  CHECK(Cuda::placement(8) == std::vector<std::size_t>{0, 1, 2, 3});
  {
    const Launched second{"1", "2"};
    CHECK(Cuda::placement(8) == std::vector<std::size_t>{2, 3});
    CHECK(Cuda::placement(1) == std::vector<std::size_t>{2});
    CHECK(OnGpus{}.worker_devices() == Names{"/gpu:2", "/gpu:3"});
    CHECK(dist::OneDevice<Cuda>{}.worker_devices() == Names{"/gpu:2"});
    CHECK(OnGpus{Names{"/gpu:0"}}.worker_devices() == Names{"/gpu:0"});  // names count all visible GPUs
  }
  {
    const Launched third{"2", "3"};
    CHECK(Cuda::placement(8) == std::vector<std::size_t>{2});
  }
  {
    const Launched by_srun{{{"SLURM_LOCALID", "1"}, {"SLURM_NODEID", "1"}, {"SLURM_STEP_TASKS_PER_NODE", "4,2"}}};
    CHECK(Cuda::placement(8) == std::vector<std::size_t>{2, 3});
  }
  {
    const Launched sixth{"5", "6"};
    CHECK(Cuda::placement(8) == std::vector<std::size_t>{1});
  }
  fake_cuda::Options own = machine_of(4);
  own.visible = "3";  // set by scripts between a launcher and its processes
  fake_cuda::restart(own);
  const Launched last{"3", "4"};
  CHECK(Cuda::placement(8) == std::vector<std::size_t>{0});
}

TEST_CASE("a process has no context on the GPUs of others") {
  for (const int rank : {0, 1, 2}) {
    fake_cuda::restart(machine_of(3));
    const Launched launched{std::to_string(rank).c_str(), "3"};
    static_cast<void>(Cuda::count());
    static_cast<void>(Cuda::placement(1));
    CHECK(fake_cuda::contexts().empty());
    // In a thread that has not selected a GPU.
    std::thread{[] {
      OnGpus strategy;
      CHECK(train(strategy) == 2);
      dist::OneDevice<Cuda> one;
      CHECK(train(one) == 2);
    }}.join();
    CHECK(fake_cuda::contexts() == std::set<int>{rank});
  }
}

TEST_CASE("without a GPU, every strategy gives the reason, and the host still computes") {
  fake_cuda::Options no_driver = machine_of(2), old_driver = machine_of(2), hidden = machine_of(2);
  no_driver.driver = 0;
  old_driver.driver = 11040;
  hidden.visible = "";
  for (const auto& [machine, why] : {std::pair{no_driver, "no NVIDIA driver was found"},
                                     {old_driver, "the driver is too old: it is for CUDA 11.4"},
                                     {hidden, "this process sees no GPU; CUDA_VISIBLE_DEVICES='' hides all"},
                                     {machine_of(0), "this process sees no GPU; CUDA_VISIBLE_DEVICES is not set"}}) {
    fake_cuda::restart(machine);
    CHECK(Cuda::count() == 0);
    for (const std::string& said :
         {what_throws<dist::NoGpu>([] { dist::OneDevice<Cuda>{}; }), what_throws<dist::NoGpu>([] { OnGpus{}; }),
          what_throws<dist::NoGpu>([] { OnGpus{2}; }), what_throws<dist::NoGpu>([] { OnGpus{Names{"/gpu:0"}}; }),
          what_throws<dist::NoGpu>([] { dist::OneDevice<Cuda>{"/gpu:0"}; }),
          what_throws<dist::NoGpu>([] { Cuda::Memory{std::array<std::size_t, 1>{0}}; })}) {
      CHECK(said.find(dist::concat("No replica can run on a GPU (", why)) == 0);
      CHECK(said.find("use OneDevice<Cpu>, Mirrored<ThreadAllReduce> or CentralStorage<Cpu>") != std::string::npos);
    }
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    check_host();
  }
  fake_cuda::restart({});
}

TEST_CASE("a missing kernel image throws at the first kernel, and the host still computes") {
  fake_cuda::restart(machine_of(1));
  dist::OneDevice<Cuda> strategy;
  fake_cuda::fail_call("cudaLaunchKernelEx", cudaErrorNoKernelImageForDevice);
  const std::string said = what_throws<dist::NoKernelImage>([&] { train(strategy); });
  CHECK(said.find("CUDA refuses 'cudaLaunchKernelEx of a kernel (") == 0);
  CHECK(said.find("on GPU 0 in ") != std::string::npos);
  check_host();
  CHECK(train(strategy) == 2);
}

TEST_CASE("without memory, the error gives the free memory, and GPU and host still compute") {
  fake_cuda::Options small = machine_of(1);
  small.memory = 100'000;
  fake_cuda::restart(small);
  dist::OneDevice<Cuda> strategy;
  const std::string said =
      what_throws<dist::OutOfMemory>([&] { static_cast<void>(strategy.variable<float>({1'000'000})); });
  CHECK(said.find("An allocation on GPU 0 of 4000000 bytes failed") == 0);
  CHECK(said.find(" of 100000 bytes are free") != std::string::npos);
  CHECK(train(strategy) == 2);
  check_host();
}

TEST_CASE("after a lost GPU, the error names the last work, strategies end, and the host still computes") {
  fake_cuda::restart(machine_of(2));
  {
    OnGpus strategy;
    dist::OneDevice<Cuda> one;
    CHECK(train(strategy) == 4);
    auto values = one.variable<float>({4}, 0.0F, "values");
    one.run([&](auto& replica) { replica.for_each(4, AddOne{values.component(replica).data()}); });
    fake_cuda::break_context(cudaErrorIllegalAddress);
    const std::string said = what_throws<dist::GpuLost>([&] { static_cast<void>(values.read(one.scope())); });
    CHECK(said.find("on GPU 0 in ") != std::string::npos);
    CHECK(said.find("the last work submitted to this GPU is a kernel (") != std::string::npos);
    CHECK(said.find("AddOne") != std::string::npos);
    CHECK(said.find("Start the process again") != std::string::npos);
    check_host();
    CHECK(what_throws<dist::ReplicaError>([&] {
            strategy.run([&](auto& replica) {
              auto queue = replica.queue();
              queue.wait();
            });
          }).find("Start the process again") != std::string::npos);
  }
  check_host();
  fake_cuda::restart({});
}
