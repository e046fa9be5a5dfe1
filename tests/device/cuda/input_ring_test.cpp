#include <dist/device/cuda/input_ring.cuh>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include <dist/device/cuda/device.cuh>
#include <dist/device/cuda/last_work.hpp>
#include <support/fake_cuda/machines.hpp>

using dist::Cuda;

TEST_CASE("batches of growing size pass through the slots of a ring in order") {
  constexpr std::array<std::size_t, 1> one{0};
  for (const fake_cuda::Options& machine : fake_cuda::every_schedule()) {
    CAPTURE(fake_cuda::to_string(machine));
    fake_cuda::restart(machine);
    {
      const Cuda::Queues queues{one};
      Cuda::InputRing ring{queues[0], 2};
      ring.retire(queues[0]);  // nothing to retire yet
      std::array<int, 8> received{};
      for (int batch = 0; batch < 8; ++batch) {
        std::byte* const host = ring.prepare(sizeof(int) * static_cast<std::size_t>(batch + 1));
        std::memcpy(host, &batch, sizeof(int));
        const Cuda::Span<const int> there{reinterpret_cast<const int*>(ring.destination()), 1};
        dist::cuda::note_work(0, dist::cuda::fill_work);
        ring.upload(queues[0]);
        CHECK(dist::cuda::last_work(0) == &dist::cuda::copy_work);
        queues[0].copy(there, std::span<int>{received}.subspan(static_cast<std::size_t>(batch), 1));
        ring.retire(queues[0]);
      }
      queues[0].wait();
      CHECK(received == std::array{0, 1, 2, 3, 4, 5, 6, 7});
    }
    CHECK(fake_cuda::live() == fake_cuda::Live{});
  }
}
