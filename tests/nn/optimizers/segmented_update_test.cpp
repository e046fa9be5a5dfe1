#include <dist/nn/optimizers/segmented_update.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <dist/variable/slot_update.hpp>

namespace nn = dist::nn;

namespace {

/// As an optimizer with options: what is told for each parameter, decay and scale.
struct Functor {
  static constexpr std::array<std::string_view, 0> slots{};
  float decay;
  float scale;
  float operator()(float weight, float gradient, float*) const { return weight - decay - gradient * scale; }
};
/// The same with a slot.
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

TEST_CASE("a pack has the elements of its parameters, also where several meet in it") {
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

TEST_CASE("decay and scale are those of an element's parameter, in a loop of each and asked one by one") {
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
