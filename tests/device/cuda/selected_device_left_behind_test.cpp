#include <dist/device/cuda/selected_device.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

TEST_CASE("leaked objects stay alive") {
  const auto number = std::make_shared<int>(7);
  std::vector<std::thread> threads;
  for (int each = 0; each < 4; ++each)
    threads.emplace_back([number] {
      auto mine = number;
      dist::cuda::leave_behind(std::move(mine));
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(number.use_count() == 5);
}
