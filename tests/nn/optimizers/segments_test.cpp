#include <dist/nn/optimizers/segments.hpp>

#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <dist/nn/parameter.hpp>

using dist::nn::detail::for_each_segment;
using dist::nn::detail::Segment;
using dist::nn::detail::segments_of;
using dist::nn::detail::sum_of_squares;

namespace {

struct Parameters {
  [[nodiscard]] std::string name() const { return "all"; }
  [[nodiscard]] std::size_t size() const { return 64; }
};
struct WithoutLayout {
  Parameters parameters() { return {}; }
};
struct WithLayout : WithoutLayout {
  static constexpr std::array<dist::nn::Parameter, 2> list{
      dist::nn::Parameter{"dense", 0, "kernel", dist::Shape{4, 5}, 0},
      dist::nn::Parameter{"dense", 0, "bias", dist::Shape{5}, 32}};
  static std::span<const dist::nn::Parameter> layout() { return list; }
};

}  // namespace

TEST_CASE("a segment is a parameter and the padding behind it") {
  WithLayout network;
  const std::vector<Segment> segments = segments_of(network);
  REQUIRE(segments.size() == 2);
  CHECK(segments[0].name == "dense/kernel");
  CHECK(segments[0].end == 32);
  CHECK(segments[1].name == "dense/bias");
  CHECK(segments[1].end == 64);
  WithoutLayout plain;
  REQUIRE(segments_of(plain).size() == 1);
  CHECK(segments_of(plain)[0].name == "all");
  CHECK(segments_of(plain)[0].end == 64);
}

TEST_CASE("a block is cut where segments end") {
  const std::vector<Segment> segments{{"a", 10}, {"b", 20}, {"c", 64}};
  const auto cut = [&](std::size_t first, std::size_t count) {
    std::string all;
    for_each_segment(segments, first, count, [&](std::size_t which, dist::IndexRange range) {
      all += segments[which].name + std::to_string(range.begin) + "-" + std::to_string(range.end) + " ";
    });
    return all;
  };
  CHECK(cut(0, 64) == "a0-10 b10-20 c20-64 ");
  CHECK(cut(10, 5) == "b10-15 ");
  CHECK(cut(9, 2) == "a9-10 b10-11 ");
  CHECK(cut(19, 45) == "b19-20 c20-64 ");
  CHECK(cut(30, 0) == "");
}

TEST_CASE("squares are added up, whatever their number") {
  std::vector<float> numbers;
  double expected = 0;
  for (int i = 0; i < 29; ++i) {
    CHECK(sum_of_squares(std::span<const float>{numbers}) == expected);
    numbers.push_back(static_cast<float>(i));
    expected += i * i;
  }
}
