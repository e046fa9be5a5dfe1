#include <dist/device/cuda/staging.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include <support/fake_cuda/machines.hpp>

using dist::cuda::DeviceBuffer;
using dist::cuda::Staging;
using dist::cuda::Stream;

TEST_CASE("an upload's source may change at once, a download arrives in deliver") {
  for (const fake_cuda::Options& machine : fake_cuda::every_schedule()) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    {
      const Stream stream{0};
      Staging staging;
      const DeviceBuffer memory{0, 200'000};
      for (const std::size_t bytes : {1UL, 100UL, 70'000UL, 200'000UL}) {
        std::vector<std::byte> up(bytes, std::byte{1}), down(bytes);
        staging.upload(up.data(), memory.data(), bytes, stream.ref());
        up.assign(bytes, std::byte{2});
        staging.download(memory.data(), down.data(), bytes, stream.ref());
        stream.ref().wait();
        CHECK(down == std::vector<std::byte>(bytes));
        staging.deliver();
        CHECK(down == std::vector<std::byte>(bytes, std::byte{1}));
      }
      CHECK(fake_cuda::live().pinned_allocations == 1);  // the largest is kept
    }
    CHECK(fake_cuda::live() == fake_cuda::Live{});
  }
}

TEST_CASE("pending copies use bounded memory") {
  fake_cuda::restart({});
  const Stream stream{0};
  Staging staging;
  const DeviceBuffer memory{0, Staging::most};
  CHECK(staging.has_room_for(Staging::most));
  CHECK_FALSE(staging.has_room_for(Staging::most + 1));
  const std::vector<std::byte> half(Staging::most / 2);
  staging.upload(half.data(), memory.data(), half.size(), stream.ref());
  CHECK(staging.has_room_for(half.size()));
  CHECK_FALSE(staging.has_room_for(half.size() + 1));
  stream.ref().wait();
  staging.deliver();
  CHECK(staging.has_room_for(Staging::most));
}
