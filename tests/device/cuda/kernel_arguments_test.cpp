#include <dist/device/cuda/kernel_arguments.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include <dist/device/cuda/buffer.hpp>
#include <dist/device/cuda/launch.cuh>
#include <support/fake_cuda/machines.hpp>
#include <support/what_throws.hpp>

using dist::cuda::DeviceBuffer;
using dist::cuda::MappedBuffer;
using dist::cuda::Stream;

namespace {

/// A body that does not use its members.
struct Holder {
  std::uint64_t number = 0;
  const void* address = nullptr;
  DIST_HD void operator()(std::size_t) const {}
};

void function() {}

void run(const Stream& stream, const Holder& holder) { dist::cuda::for_each(stream.ref(), {0, 1}, holder); }

}  // namespace

TEST_CASE("a kernel argument with an inaccessible host address is rejected") {
  fake_cuda::restart({});
  const Stream stream{0};
  const std::int64_t on_stack = 0;
  static std::int64_t global = 0;
  const auto on_heap = std::make_unique<std::int64_t>(0);
  for (const void* const address : {static_cast<const void*>(&on_stack), static_cast<const void*>(on_heap.get()),
                                    static_cast<const void*>(&global)})
    CHECK_THROWS_AS(run(stream, {3, address}), dist::HostPointer);
  const std::string message = support::what_throws<dist::HostPointer>([&] { run(stream, {3, on_heap.get()}); });
  CHECK(
      message.find("Holder, dist::IndexRange) for GPU 0 contains an address of host memory in byte 8 of argument 1") !=
      std::string::npos);
  CHECK(message.find("which GPU 0 cannot access") != std::string::npos);
  CHECK(message.find("such as component(replica)") != std::string::npos);
  CHECK(fake_cuda::counts().kernels == 0);
  CHECK_NOTHROW(run(stream, {}));  // the GPU is unaffected
  CHECK(fake_cuda::counts().kernels == 1);
}

TEST_CASE("device, mapped, null and constant addresses and numbers are accepted") {
  fake_cuda::restart({});
  const Stream stream{0};
  const DeviceBuffer there{0, 64};
  const MappedBuffer mapped{64};
  for (const void* const address :
       {static_cast<const void*>(there.data()), static_cast<const void*>(mapped.on_devices()),
        static_cast<const void*>(there.data() + 64), static_cast<const void*>(nullptr)})
    CHECK_NOTHROW(run(stream, {0x7fff'ffff'ffff'ffff, address}));
  const auto look_at = [](auto argument) {
    dist::cuda::require_no_host_pointers(0, dist::cuda::kernel_work<decltype(argument)>, 1, argument);
  };
  CHECK_NOTHROW(look_at(&function));
  CHECK_NOTHROW(look_at("a constant"));
  CHECK_NOTHROW(look_at(1.0));
  CHECK_NOTHROW(look_at('c'));
}

TEST_CASE("padding is ignored") {
  struct Padded {
    char first;
    std::int64_t others[3];  // copied in memory, including padding
  };
  fake_cuda::restart({});
  const std::int64_t on_stack[64] = {};
  const std::int64_t* const address = on_stack + 32;
  Padded padded{};
  std::memcpy(static_cast<void*>(&padded), &address, sizeof address);
  CHECK_NOTHROW(dist::cuda::require_no_host_pointers(0, dist::cuda::kernel_work<Padded>, 1, padded));
}

TEST_CASE("a GPU with access to all host memory accepts any address") {
  fake_cuda::Options machine;
  machine.pageable_access = true;
  fake_cuda::restart(machine);
  const Stream stream{0};
  const std::int64_t on_stack = 0;
  CHECK_NOTHROW(run(stream, {3, &on_stack}));
}

TEST_CASE("a launch reports the error of a failed pointer query") {
  fake_cuda::restart({});
  const Stream stream{0};
  const std::int64_t on_stack = 0;
  fake_cuda::break_context(cudaErrorIllegalAddress);
  CHECK_THROWS_AS(run(stream, {3, &on_stack}), dist::GpuLost);
}
