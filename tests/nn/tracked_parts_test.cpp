#include <dist/nn/tracked_parts.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <support/saved.hpp>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/error.hpp>
#include <dist/core/track.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

namespace nn = dist::nn;

namespace {

/// A leaf that counts its calls.
struct Counted {
  using Element = float;

  [[nodiscard]] const dist::Shape& shape() const noexcept { return values.shape(); }
  [[nodiscard]] dist::Tensor<float> whole(const dist::InCrossReplica auto&) {
    ++asked;
    return values;
  }
  void restore(const dist::InCrossReplica auto&, dist::TensorView<const float> given) {
    ++restored;
    values = dist::Tensor<float>{given};
  }

  dist::Tensor<float> values{{32}};
  int asked = 0;
  int restored = 0;
};

constexpr std::array<nn::Parameter, 2> layout{nn::Parameter{"dense", 0, "kernel", {2, 3}, 0},
                                              nn::Parameter{"dense", 0, "bias", {3}, 16}};
using Names = std::vector<std::string>;

struct Slot {
  Counted leaf;
  std::span<const nn::Parameter> places = layout;
  void track(auto& visit) { nn::detail::visit_parts(visit, "momentum", leaf, places); }
};

}  // namespace

TEST_CASE("TrackedParts has a part for each tensor, and reads and writes its leaf once per walk") {
  dist::Default strategy;
  Slot slot;
  for (std::size_t i = 0; i < 32; ++i) slot.leaf.values[i] = static_cast<float>(i);
  const support::Saved saved{strategy, slot};
  CHECK(slot.leaf.asked == 1);
  CHECK(slot.leaf.restored == 0);
  CHECK(saved.keys() == Names{"momentum/dense/bias", "momentum/dense/kernel"});
  CHECK(saved.get<float>("momentum/dense/kernel") == dist::Tensor<float>{{2, 3}, {0, 1, 2, 3, 4, 5}});
  CHECK(saved.get<float>("momentum/dense/bias") == dist::Tensor<float>{{3}, {16, 17, 18}});

  Slot other;
  saved.restore(strategy, other);
  CHECK(other.leaf.asked == 1);
  CHECK(other.leaf.restored == 1);
  CHECK(other.leaf.values[5] == 5);
  CHECK(other.leaf.values[6] == 0);  // padding
  CHECK(other.leaf.values[18] == 18);
}

TEST_CASE("a part that is not restored keeps its value, and a restored part has its new value at once") {
  dist::Default strategy;
  Slot slot;
  slot.leaf.values[0] = 7;
  const dist::Tensor<float> bias{{3}, {1, 2, 3}};
  dist::walk(slot, [&](std::string_view key, auto& part) {
    if (key != "momentum/dense/bias") return;
    part.restore(strategy.scope(), bias);
    CHECK(part.whole(strategy.scope()) == bias);
    CHECK_THROWS_AS(part.restore(strategy.scope(), dist::Tensor<float>{{2}, {1, 2}}), dist::ShapeMismatch);
  });
  CHECK(slot.leaf.values[0] == 7);
  CHECK(slot.leaf.values[16] == 1);
  CHECK(slot.leaf.restored == 1);
  dist::walk(slot, [](std::string_view, auto&) {});
  CHECK(slot.leaf.asked == 1);
}

TEST_CASE("without a layout, a leaf is one tensor") {
  dist::Default strategy;
  Slot slot{.leaf = {}, .places = {}};
  CHECK(support::Saved{strategy, slot}.keys() == Names{"momentum"});
  CHECK(nn::detail::layout_of(slot).empty());
}

using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

TEST_CASE("TrackedBuffer saves numbers that are equal on all replicas once, and restores them on all") {
  Mirrored strategy{3};
  const auto counts = strategy.buffer<std::int64_t>({2});
  using Counts = std::remove_const_t<decltype(counts)>;
  const dist::nn::TrackedBuffer<Counts, dist::OnlyFirstReplica> tracked{counts};
  dist::Tensor<std::int64_t> values{{2}, {5, 6}};
  tracked.restore(strategy.scope(), values);
  for (std::size_t local = 0; local < 3; ++local) CHECK(counts.component(strategy.scope(), local)[1] == 6);
  CHECK(tracked.whole(strategy.scope()) == values);
}

TEST_CASE("TrackedBuffer saves the sum over the replicas, and restores it on one") {
  Mirrored strategy{3};
  const auto parts = strategy.buffer<float>({2});
  using Parts = std::remove_const_t<decltype(parts)>;
  const dist::nn::TrackedBuffer<Parts, dist::Sum> tracked{parts};
  for (std::size_t local = 0; local < 3; ++local)
    for (float& part : parts.component(strategy.scope(), local)) part = static_cast<float>(local + 1);
  const auto sum = tracked.whole(strategy.scope());
  CHECK(sum == dist::Tensor<float>{{2}, {6, 6}});
  tracked.restore(strategy.scope(), sum);
  CHECK(parts.component(strategy.scope(), 0)[1] == 6);
  CHECK(parts.component(strategy.scope(), 2)[1] == 0);
  CHECK(tracked.whole(strategy.scope()) == sum);
}
