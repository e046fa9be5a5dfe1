#include <dist/nn/segment_squares.hpp>

#include <cstddef>
#include <span>
#include <vector>

#include <doctest/doctest.h>
#include <dist/device/cpu.hpp>

namespace detail = dist::nn::detail;

TEST_CASE("squares are added up by segment, or all together, of any part of the elements") {
  const std::vector<detail::Segment> segments{{3}, {5}, {8}};
  const std::vector<float> values{1, 2, 3, 4, 5, 6, 7, 8};
  const std::span<const float> all{values};
  std::vector<double> squares(3);
  detail::add_squares<true>(std::span{squares}, segments, 0, all.first(4));
  detail::add_squares<true>(std::span{squares}, segments, 4, all.subspan(4));
  CHECK(squares == std::vector<double>{1 + 4 + 9, 16 + 25, 36 + 49 + 64});
  double total = 0;
  detail::add_squares<false>(std::span{&total, 1}, segments, 2, all.subspan(2, 5));
  CHECK(total == 9 + 16 + 25 + 36 + 49);
}

TEST_CASE("a queue writes the same, and leaves segments outside of the range") {
  const std::vector<detail::Segment> segments{{3}, {5}, {8}};
  const std::vector<double> values{1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<double> squares{-1, -1, -1};
  detail::put_squares<true>(dist::Cpu::Queue{}, std::span{squares}, segments, {1, 5}, std::span{values});
  CHECK(squares == std::vector<double>{4 + 9, 16 + 25, -1});
  double total = 0;
  detail::put_squares<false>(dist::Cpu::Queue{}, std::span{&total, 1}, segments, {2, 7}, std::span{values});
  CHECK(total == 9 + 16 + 25 + 36 + 49);
}
