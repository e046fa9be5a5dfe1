#include <dist/nn/hlo/sequence_layers.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <dist/core/float16.hpp>
#include <dist/nn/mixed_precision.hpp>
#include <dist/nn/sequential.hpp>
#include <nn/hlo/check_lowering.hpp>

namespace hlo = dist::hlo;
namespace nn = dist::nn;

TEST_CASE("attention in programs is that of plain loops, of all elements and of those so far, with its gradients") {
  using Both = nn::Sequential<nn::Input<4, 3>, nn::MultiHeadAttention<2, 3>,  //
                              nn::MultiHeadAttention<3, 2, nn::AttendToPast>, nn::Softmax>;
  dist_test::check_emitted<Both>({{3}});
}

TEST_CASE("attention in programs rounds the factors of its dense products as plain loops do (spec P22)") {
  using Net = nn::Sequential<nn::Input<3, 2>, nn::MultiHeadAttention<2, 2>>;
  dist_test::check_emitted<Net, true, nn::MixedPrecision<nn::Reference, dist::BFloat16>>({{2}});
}

TEST_CASE("embeddings in programs are those of plain loops, and ids have no gradient") {
  using Net = nn::Sequential<nn::Input<3>, nn::Embedding<5, 2>>;
  dist_test::check_emitted<Net>({{4}}, [](std::size_t count, std::uint64_t) {
    std::vector<double> ids(count);
    for (std::size_t i = 0; i < count; ++i) ids[i] = static_cast<double>(i * 7 % 5) + (i % 2 == 0 ? 0.75 : 0);
    return ids;
  });
}

TEST_CASE("the vector of an id that the table does not have is NaN") {
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
