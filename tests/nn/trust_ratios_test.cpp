#include <dist/nn/trust_ratios.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <dist/dist.hpp>

namespace nn = dist::nn;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

namespace {

/// The direction is twice the gradient, and the slot counts the calls.
struct Functor {
  static constexpr std::array<std::string_view, 1> slots{"calls"};
  static float direction(float gradient, float* slot) {
    slot[0] += 1;
    return 2 * gradient;
  }
};

}  // namespace

TEST_CASE("a parameter's ratio is the norm of its weights over the norm of its direction") {
  constexpr std::size_t count = 96;
  const std::vector<nn::detail::Segment> segments{{48}, {64, false}, {80}, {96}};
  for (const std::size_t replicas : {1U, 2U, 3U})
    for (const bool reduces : {true, false}) {
      CAPTURE(replicas);
      CAPTURE(reduces);
      Mirrored strategy{replicas};
      const nn::TrustRatios<Mirrored, float> ratios{strategy, count, segments.size(), "Test"};
      strategy.run([&](auto& replica) {
        std::vector<float> weights(count, 3), values(count, 0.5F), calls(count);
        for (std::size_t i = 64; i < 80; ++i) values[i] = 0;   // no direction
        for (std::size_t i = 80; i < 96; ++i) weights[i] = 0;  // no weights
        const auto update = dist::detail::direction_of(dist::SlotUpdate<Functor, float>{{}, {calls.data(), nullptr}});
        const nn::ScaledGradients<Mirrored, float> own{values, {}, 0, {0, count}};
        const std::span<const float> of_weights{weights};
        const auto scaled =
            reduces
                ? ratios.of_sums(replica, std::span<float>{values}, of_weights, segments, segments.data(), 0.25, update)
                : ratios.template of_share<false>(replica, own, of_weights, segments, segments.data(), 0.25, update);
        const float sum = reduces ? 0.5F * static_cast<float>(replicas) : 0.5F;
        REQUIRE(scaled.scales.size() == 4);
        CHECK(scaled.stride == 1);
        CHECK(scaled.scales[0] == doctest::Approx(3 * 0.75 / (2 * static_cast<double>(sum))).epsilon(1e-14));
        CHECK(scaled.scales[1] == doctest::Approx(3 / (2 * static_cast<double>(sum))).epsilon(1e-14));
        CHECK(scaled.scales[2] == 1);
        CHECK(scaled.scales[3] == 1);
        const dist::IndexRange mine = replicas == 1 || !reduces
                                          ? dist::IndexRange{0, count}
                                          : dist::shard_of(count, replica.local_index(), replicas, 16);
        CHECK(scaled.share.begin == mine.begin);
        CHECK(scaled.share.end == mine.end);
        for (std::size_t i = 0; i < count; ++i) {
          const bool is_mine = i >= mine.begin && i < mine.end;
          CHECK(calls[i] == (is_mine ? 1 : 0));
          if (is_mine) CHECK(scaled.gradients[i] == (i >= 64 && i < 80 ? 0 : 2 * sum));
        }
      });
    }
}
