#include <dist/core/algorithms.hpp>

#include <array>
#include <cstddef>

#include <doctest/doctest.h>

TEST_CASE("iterator algorithms are available") {
  std::array<int, 4> numbers{};
  std::iota(numbers.begin(), numbers.end(), 1);
  CHECK(std::accumulate(numbers.begin(), numbers.end(), 0) == 10);
  std::rotate(numbers.begin(), numbers.begin() + 1, numbers.end());
  CHECK(numbers == std::array<int, 4>{2, 3, 4, 1});
  std::sort(numbers.begin(), numbers.end());
  CHECK(std::find(numbers.begin(), numbers.end(), 3) == numbers.begin() + 2);
  CHECK(std::none_of(numbers.begin(), numbers.end(), [](int number) { return number > 4; }));
  CHECK(std::clamp(std::max<std::size_t>(3, 5), std::size_t{0}, std::size_t{4}) == 4);
}
