#include <dist/variable/slot_update.hpp>

#include <array>
#include <cstddef>
#include <string_view>

#include <doctest/doctest.h>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/sgd.hpp>

namespace nn = dist::nn;

namespace {

/// Counts in slot 0, and accumulates gradients in slot 1.
struct Counting {
  static constexpr std::array<std::string_view, 2> slots{"count", "sum"};
  float rate;
  float operator()(float weight, float gradient, float* slot) const {
    slot[0] += 1;
    slot[1] += gradient;
    return weight - rate * slot[1];
  }
};

using Update = dist::SlotUpdate<Counting, float>;
static_assert(dist::ElementUpdate<Update, float> && dist::PackUpdate<Update, float>);
static_assert(dist::PackUpdate<dist::SlotUpdate<nn::SGD::Plain<double>, double>, double>);

}  // namespace

TEST_CASE("an element's slots are loaded and stored") {
  std::array<float, 3> counts{0, 10, 20};
  std::array<float, 3> sums{1, 2, 3};
  const Update update{{0.5f}, {counts.data(), sums.data()}};
  CHECK(update(1, 8.0f, 4.0f) == 5.0f);
  CHECK(counts == std::array<float, 3>{0, 11, 20});
  CHECK(sums == std::array<float, 3>{1, 6, 3});
}

TEST_CASE("packs are bitwise equal to their elements, with any number of slots") {
  const auto check = [](const auto& functor) {
    using Functor = std::remove_cvref_t<decltype(functor)>;
    using SlotUpdate = dist::SlotUpdate<Functor, float>;
    alignas(16) std::array<std::array<float, 8>, 3> by_element{};
    for (std::size_t k = 0; k < 3; ++k)
      for (std::size_t i = 0; i < 8; ++i) by_element[k][i] = 0.1f * static_cast<float>(i + k + 1);
    auto by_pack = by_element;
    SlotUpdate one{functor, {}};
    SlotUpdate four{functor, {}};
    for (std::size_t k = 0; k < SlotUpdate::slot_count; ++k) {
      one.slots[k] = by_element[k].data();
      four.slots[k] = by_pack[k].data();
    }
    const dist::Pack<float> weights{{1, -2, 3, 0.25f}};
    const dist::Pack<float> gradients{{0.5f, 0.75f, -1, 0}};
    const dist::Pack<float> updated = four.pack(4, weights, gradients);
    for (std::size_t lane = 0; lane < 4; ++lane)
      CHECK(updated.element[lane] == one(4 + lane, weights.element[lane], gradients.element[lane]));
    CHECK(by_pack == by_element);
  };
  check(nn::SGD::Plain<float>{0.5f});
  check(nn::SGD::Momentum<float, false>{0.5f, 0.9f});
  check(nn::Adam::Update<float, true>{0.1f, 0.1f, 0.001f, 1e-7f});
}
