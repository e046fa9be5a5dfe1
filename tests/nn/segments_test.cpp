#include <dist/nn/segments.hpp>

#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <dist/nn/parameter.hpp>

using dist::nn::detail::for_each_segment;
using dist::nn::detail::Segment;
using dist::nn::detail::segments_of;

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
  std::string asked;
  const auto is_kernel = [&](const std::string& name) {
    asked += name + " ";
    return name == "dense/kernel";
  };
  const std::vector<Segment> segments = segments_of(network, is_kernel);
  REQUIRE(segments.size() == 2);
  CHECK(asked == "dense/kernel dense/bias ");
  CHECK(segments[0].end == 32);
  CHECK(segments[0].decays);
  CHECK(segments[1].end == 64);
  CHECK(!segments[1].decays);
  WithoutLayout plain;
  asked.clear();
  const std::vector<Segment> one = segments_of(plain, is_kernel);
  REQUIRE(one.size() == 1);
  CHECK(asked == "all ");
  CHECK(one[0].end == 64);
  CHECK(!one[0].decays);
}

TEST_CASE("an element's segment is found") {
  const std::vector<Segment> segments{{10}, {20}, {64}};
  for (std::size_t i = 0; i < 64; ++i)
    CHECK(dist::nn::detail::segment_at(segments.data(), segments.size(), i) == (i < 10 ? 0 : i < 20 ? 1 : 2));
}

TEST_CASE("a block is cut where segments end") {
  const std::vector<Segment> segments{{10}, {20}, {64}};
  const auto cut = [&](std::size_t first, std::size_t count) {
    std::string all;
    for_each_segment(segments, first, count, [&](std::size_t which, dist::IndexRange range) {
      all += std::string{"abc"[which]} + std::to_string(range.begin) + "-" + std::to_string(range.end) + " ";
    });
    return all;
  };
  CHECK(cut(0, 64) == "a0-10 b10-20 c20-64 ");
  CHECK(cut(10, 5) == "b10-15 ");
  CHECK(cut(9, 2) == "a9-10 b10-11 ");
  CHECK(cut(19, 45) == "b19-20 c20-64 ");
  CHECK(cut(30, 0) == "");
}
