#include <dist/nn/gradient_clipping.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>
#include <dist/dist.hpp>

namespace nn = dist::nn;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

TEST_CASE("norms within the limit stay, larger ones are scaled down, and NaN stays NaN") {
  using nn::detail::scale_of;
  constexpr double infinite = std::numeric_limits<double>::infinity();
  CHECK(scale_of(nn::ClipNorm{2}, 1.0) == 1);
  CHECK(scale_of(nn::ClipNorm{2}, 2.0) == 1);
  CHECK(scale_of(nn::ClipNorm{2}, 8.0) == 0.25);
  CHECK(std::isnan(scale_of(nn::ClipNorm{2}, NAN)));
  CHECK(scale_of(nn::GlobalClipNorm{2}, 1.0) == 1);
  CHECK(scale_of(nn::GlobalClipNorm{2}, 8.0) == 0.25);
  CHECK(std::isnan(scale_of(nn::GlobalClipNorm{2}, NAN)));
  CHECK(std::isnan(scale_of(nn::GlobalClipNorm{2}, infinite)));
}

namespace {

/// Replica r has gradient r + 1 in every element; two parameters of 48 and 16 elements.
template <class Clip>
void check_scales(std::size_t replicas, bool reduces) {
  CAPTURE(replicas);
  CAPTURE(reduces);
  constexpr std::size_t count = 64;
  const std::vector<nn::detail::Segment> segments{{48}, {64}};
  Mirrored strategy{replicas};
  const nn::GradientClipping<Mirrored, float, Clip> clipping{strategy, count, segments.size(), "Test"};
  strategy.run([&](auto& replica) {
    const auto mine = static_cast<float>(replica.local_index() + 1);
    std::vector<float> values(count, mine);
    const std::span<float> gradient{values};
    const auto clipped = reduces ? clipping.reduce(replica, gradient, segments, Clip{1.0f})
                                 : clipping.take(replica, gradient, segments, Clip{1.0f});
    const float applied = reduces ? static_cast<float>(replicas * (replicas + 1) / 2) : mine;
    const auto scale = [&](double elements) { return 1 / std::sqrt(elements * double{applied} * double{applied}); };
    if constexpr (std::is_same_v<Clip, nn::ClipNorm>) {
      REQUIRE(clipped.scales.size() == 2);
      CHECK(clipped.scales[0] == doctest::Approx(scale(48)).epsilon(1e-14));
      CHECK(clipped.scales[1] == doctest::Approx(scale(16)).epsilon(1e-14));
    } else {
      REQUIRE(clipped.scales.size() == 1);
      CHECK(clipped.scales[0] == doctest::Approx(scale(64)).epsilon(1e-14));
    }
    CHECK((clipped.gradients.data() == gradient.data()) == (!reduces || replicas == 1));
    const dist::IndexRange shard = replicas == 1 || !reduces
                                       ? dist::IndexRange{0, count}
                                       : dist::shard_of(count, replica.local_index(), replicas, 16);
    for (std::size_t i = shard.begin; i < shard.end; ++i) CHECK(clipped.gradients[i] == applied);
    CHECK(values == std::vector<float>(count, mine));
  });
}

}  // namespace

TEST_CASE_TEMPLATE("scales are computed from the norms of the sums, or of each replica's gradients", Clip, nn::ClipNorm,
                   nn::GlobalClipNorm) {
  for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}, std::size_t{3}})
    for (const bool reduces : {true, false}) check_scales<Clip>(replicas, reduces);
}
