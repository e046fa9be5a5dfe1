#include <dist/nn/segments.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dist/device/cpu.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/variable/slot_update.hpp>

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

TEST_CASE("a segment is a parameter and the padding after it") {
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

TEST_CASE("segment_at finds an element's segment") {
  const std::vector<Segment> segments{{10}, {20}, {64}};
  for (std::size_t i = 0; i < 64; ++i)
    CHECK(dist::nn::detail::segment_at(segments.data(), segments.size(), i) == (i < 10 ? 0 : i < 20 ? 1 : 2));
}

TEST_CASE("for_each_segment splits a block at the ends of segments") {
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

namespace detail = dist::nn::detail;

TEST_CASE("add_squares adds by segment, or all together, for any part of the elements") {
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

TEST_CASE("put_squares writes the same sums by a queue, and skips segments out of range") {
  const std::vector<detail::Segment> segments{{3}, {5}, {8}};
  const std::vector<double> values{1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<double> squares{-1, -1, -1};
  detail::put_squares<true>(dist::Cpu::Queue{}, std::span{squares}, segments, {1, 5}, std::span{values});
  CHECK(squares == std::vector<double>{4 + 9, 16 + 25, -1});
  double total = 0;
  detail::put_squares<false>(dist::Cpu::Queue{}, std::span{&total, 1}, segments, {2, 7}, std::span{values});
  CHECK(total == 9 + 16 + 25 + 36 + 49);
}

namespace nn = dist::nn;

namespace {

/// Like an optimizer with options: decay and scale of each parameter.
struct Functor {
  static constexpr std::array<std::string_view, 0> slots{};
  float decay;
  float scale;
  float operator()(float weight, float gradient, float*) const { return weight - decay - gradient * scale; }
};
/// Functor with a slot.
struct Momentum {
  static constexpr std::array<std::string_view, 1> slots{"momentum"};
  float decay;
  float scale;
  float operator()(float weight, float gradient, float* slot) const {
    slot[0] = slot[0] / 2 + gradient * scale;
    return weight - decay - slot[0];
  }
};
using Update = nn::SegmentedUpdate<dist::SlotUpdate<Functor, float>>;

static_assert(dist::ElementUpdate<Update, float> && dist::UpdateOfParts<Update>);

}  // namespace

TEST_CASE("a pack has the options of each element's parameter, also across parameters") {
  const std::array<nn::detail::Segment, 4> segments{{{6, true}, {7, false}, {13, true}, {16, false}}};
  const std::array<double, 4> scales{2, 3, 4, 5};
  using OfPacks = nn::SegmentedUpdate<dist::SlotUpdate<Momentum, float>>;
  static_assert(dist::PackUpdate<OfPacks, float>);
  alignas(16) std::array<float, 16> one_by_one{}, in_packs{}, gradients{}, expected{}, weights{};
  for (std::size_t i = 0; i < 16; ++i) {
    one_by_one[i] = in_packs[i] = static_cast<float>(i % 5);
    gradients[i] = static_cast<float>(i) - 4;
    expected[i] = weights[i] = 10;
  }
  const OfPacks scalar{{{0.5F, 1}, {one_by_one.data(), nullptr}}, segments.data(), segments.size(), scales.data(), 1};
  const OfPacks packed{{{0.5F, 1}, {in_packs.data(), nullptr}}, segments.data(), segments.size(), scales.data(), 1};
  for (std::size_t i = 0; i < 16; ++i) expected[i] = scalar(i, expected[i], gradients[i]);
  for (std::size_t i = 0; i < 16; i += 4)
    packed.pack(i, dist::Pack<float>::load(weights.data() + i), dist::Pack<float>::load(gradients.data() + i))
        .store(weights.data() + i);
  CHECK(weights == expected);
  CHECK(in_packs == one_by_one);
}

TEST_CASE("decay and scale are the options of an element's parameter, in loops and for single elements") {
  const std::array<nn::detail::Segment, 3> segments{{{10, true}, {20, false}, {40, true}}};
  const std::array<double, 3> scales{2, 3, 4};
  const auto expected = [](std::size_t i, bool own_scales) {
    const float scale = !own_scales ? 1.0f : i < 10 ? 2.0f : i < 20 ? 3.0f : 4.0f;
    return 100 - (i >= 10 && i < 20 ? 0.0f : 0.5f) - static_cast<float>(i) * scale;
  };
  for (const bool own_scales : {false, true}) {
    CAPTURE(own_scales);
    const Update update{{{0.5f, 1}, {}}, segments.data(), segments.size(), own_scales ? scales.data() : nullptr, 1};
    std::vector<float> weights(40, 100);
    std::vector<float> gradients(40);
    for (std::size_t i = 0; i < 40; ++i) gradients[i] = static_cast<float>(i);
    dist::detail::update_range(update, 0, std::span{weights}.first(7), std::span<const float>{gradients}.first(7));
    dist::detail::update_range(update, 7, std::span{weights}.subspan(7), std::span<const float>{gradients}.subspan(7));
    for (std::size_t i = 0; i < 40; ++i) {
      CHECK(weights[i] == expected(i, own_scales));
      CHECK(update(i, 100.0f, gradients[i]) == expected(i, own_scales));
    }
  }
}
