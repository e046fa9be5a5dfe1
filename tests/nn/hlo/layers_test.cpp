#include <dist/nn/hlo/layers.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <dist/core/float16.hpp>
#include <dist/nn/layers/named.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/mixed_precision.hpp>
#include <dist/nn/sequential.hpp>

#include "nn/hlo/check_lowering.hpp"

namespace nn = dist::nn;

namespace {

/// Moving statistics that change quickly.
struct Fast : nn::BatchNormalizationOptions {
  static constexpr double momentum = 0.25;
};
struct FastSample : Fast {
  static constexpr bool sample_variance = true;
  static constexpr double epsilon = 0.01;
};

}  // namespace

TEST_CASE("batch normalization in a program uses statistics of valid rows only, and updates moving statistics") {
  using Net = nn::Sequential<nn::Input<2, 3, 2>, nn::BatchNormalization<nn::PerReplicaStatistics, FastSample>>;
  dist_test::check_emitted<Net>({{6, 2}, {4, 0}});  // a replica without rows keeps its own
}

TEST_CASE("synchronized statistics in a program include all replicas' rows, also in gradients") {
  using Net = nn::Sequential<nn::Input<3>, nn::BatchNormalization<nn::SynchronizedStatistics, FastSample>,
                             nn::BatchNormalization<nn::SynchronizedStatistics, Fast>>;
  dist_test::check_emitted<Net>({{5, 2}, {0, 4}, {0, 0}, {3, 3}});
}

TEST_CASE("branches in a program receive their own parameters and state, and are joined") {
  using Normalize = nn::BatchNormalization<>;
  using Inner = nn::Concatenate<nn::Sequential<Normalize, Normalize>, nn::Sequential<>, Normalize>;
  using Net = nn::Sequential<nn::Input<2, 2>, nn::Residual<Normalize>, nn::Named<"inside", Inner>, Normalize,
                             nn::Add<nn::Sequential<>, nn::Sequential<nn::Reshape<12>, Normalize, nn::Reshape<2, 6>>>,
                             nn::Multiply<Normalize, nn::Sequential<>, Normalize>>;
  // Up to five successive normalizations of a few rows amplify rounding errors; the largest observed difference was
  // 3.1e-6.
  dist_test::check_emitted<Net>({{6}, {4}}, dist_test::numbers, 1e-5);
}

TEST_CASE("Dropout in programs drops the same elements as on the host, in each step and on all replicas") {
  // Two elements share a draw; with an odd row size, adjacent rows share one.
  dist_test::check_emitted<nn::Sequential<nn::Input<7>, nn::Dropout<25>, nn::Dropout<1, 3>>>({{3, 2}, {1, 3}, {0, 2}});
  dist_test::check_emitted<nn::Sequential<nn::Input<2, 3>, nn::Dropout<50>>>({{3}});
}

TEST_CASE("the step count of Dropout continues beyond 16 bits") {
  using State = dist::hlo::Traced<float, 6>;
  const auto [step, states] = testing::run<State>(
      1,
      [](State state) {
        const dist::hlo::RandomStream random = nn::detail::next_random(state);
        return std::tuple{random.bits(dist::hlo::Traced<std::uint64_t>{5}), state};
      },
      dist::Tensor<float>{{6}, {0xCDEF, 0x89AB, 0x4567, 0x0123, 0xFFFF, 2}});
  CHECK(step[0] == dist::RandomStream{0x0123'4567'89AB'CDEF, 0x2FFFF}.bits(5));
  CHECK(states == dist::Tensor<float>{{6}, {0xCDEF, 0x89AB, 0x4567, 0x0123, 0, 3}});
}

namespace hlo = dist::hlo;

TEST_CASE("attention in programs matches the plain loops, causal and not, with gradients") {
  using Both = nn::Sequential<nn::Input<4, 3>, nn::MultiHeadAttention<2, 3>,  //
                              nn::MultiHeadAttention<3, 2, nn::AttendToPast>, nn::Softmax>;
  dist_test::check_emitted<Both>({{3}});
}

namespace {
struct LikeLlama : nn::AttendToPast {
  static constexpr std::size_t key_heads = 2;
  using Positions = nn::RotaryPositions<>;
};
}  // namespace

TEST_CASE("attention with grouped heads and rotary positions in programs matches the plain loops, with gradients") {
  using Net = nn::Sequential<nn::Input<4, 3>, nn::MultiHeadAttention<4, 2, LikeLlama, nn::GlorotUniform, nn::NoBias>,
                             nn::Softmax>;
  dist_test::check_emitted<Net>({{3}});
}

TEST_CASE("attention in programs rounds the factors of its projections like the plain loops (spec P22)") {
  using Net = nn::Sequential<nn::Input<3, 2>, nn::MultiHeadAttention<2, 2>>;
  dist_test::check_emitted<Net, true, nn::MixedPrecision<nn::Reference, dist::BFloat16>>({{2}});
}

TEST_CASE("embeddings in programs match the plain loops, and ids have no gradient") {
  using Net = nn::Sequential<nn::Input<3>, nn::Embedding<5, 2>>;
  dist_test::check_emitted<Net>({{4}}, [](std::size_t count, std::uint64_t) {
    std::vector<double> ids(count);
    for (std::size_t i = 0; i < count; ++i) ids[i] = static_cast<double>(i * 7 % 5) + (i % 2 == 0 ? 0.75 : 0);
    return ids;
  });
}

TEST_CASE("the vector of an id out of range is NaN") {
  using Ids = hlo::Traced<float, 4, 1>;
  using Table = hlo::Traced<float, 2, 2>;
  using Bound = nn::Embedding<2, 2>::On<dist::StaticShape<1>>;
  const auto vectors = testing::run<Ids, Table>(
      1,
      [](Ids ids, Table table) {
        const nn::TraceArguments<nn::Inference> arguments{4, 0};
        std::tuple<> state;
        return nn::Lowering<nn::Embedding<2, 2>>::forward<Bound>(arguments, ids, std::tuple{table}, state);
      },
      dist::Tensor<float>{{4, 1}, {1.5F, 2, -1, std::nanf("")}}, dist::Tensor<float>{{2, 2}, {1, 2, 3, 4}});
  CHECK(vectors[0] == 3);
  CHECK(vectors[1] == 4);
  for (std::size_t i = 2; i < 8; ++i) CHECK(std::isnan(vectors[i]));
}
