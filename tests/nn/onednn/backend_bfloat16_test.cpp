#include <dist/nn/onednn/backend.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/float16.hpp>
#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/depthwise_conv2d.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/mixed_precision.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>
#include <support/spawned.hpp>

#include <doctest/doctest.h>
#include <oneapi/dnnl/dnnl.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

namespace {

/// oneDNN with BFloat16 factors wherever the processor has the units, also if they are slow.
struct WithUnits : nn::OneDnn {
  template <class Half>
    requires std::same_as<Half, dist::BFloat16>
  struct Short : nn::OneDnn::Short<Half> {
    [[nodiscard]] static bool is_available() { return nn::onednn::multiplies_bfloat16(); }
  };
};

/// Compares a layer with rounded factors with the same layer in float64, which is close to exact. A layer without rounding
/// differs more.
template <class B, class Net>
void check_products(std::size_t rows) {
  CAPTURE(Net::template Layer<0>::name);
  CAPTURE(rows);
  const auto floats = [](std::size_t count, std::uint64_t stream) {
    const auto numbers = dist_test::converted<float>(dist_test::numbers(count, stream));
    return std::vector<double>(numbers.begin(), numbers.end());
  };
  const auto parameters = floats(Net::padded_count, 1);
  const auto batch = floats(rows * Net::InputShape::elements, 2);
  nn::Workspace<Net, nn::MixedPrecision<B, dist::BFloat16>, float> rounded;
  nn::Workspace<Net, nn::MixedPrecision<nn::Reference, dist::BFloat16>, double> reference;
  nn::Workspace<Net, nn::Reference, double> unrounded;
  const auto pass = dist_test::pass(rounded, parameters, batch);
  const auto expected = dist_test::pass(reference, parameters, batch);
  const auto other = dist_test::pass(unrounded, parameters, batch);
  CHECK(dist_test::difference(pass.outputs, expected.outputs) < 1e-5);
  CHECK(dist_test::difference(other.outputs, expected.outputs) > 1e-4);
  // A slope that is close to the middle of two BFloat16 numbers may be rounded to the other one.
  CHECK(dist_test::difference(pass.gradients, expected.gradients) < 2e-3);
}

template <class B>
void check_layers() {
  for (const std::size_t rows : {1U, 5U, 16U}) {
    check_products<B, nn::Sequential<nn::Input<70>, nn::Dense<33, nn::Relu>>>(rows);
    check_products<B, nn::Sequential<nn::Input<4, 24>, nn::Dense<600, nn::Linear, nn::GlorotUniform, nn::NoBias>>>(
        rows);
    check_products<B, nn::Sequential<nn::Input<4100>, nn::Dense<3>>>(rows);
    check_products<B, nn::Sequential<nn::Input<9, 8, 5>, nn::Conv2D<7, 3, nn::Gelu, 2, nn::Same>>>(rows);
    check_products<B, nn::Sequential<nn::Input<6, 6, 16>,
                                     nn::Conv2D<32, 3, nn::Relu, 1, nn::Valid, nn::GlorotUniform, nn::NoBias>>>(rows);
    check_products<B, nn::Sequential<nn::Input<6, 6, 8>, nn::DepthwiseConv2D<3, nn::Linear, 1, nn::Same>>>(rows);
  }
}

}  // namespace

TEST_CASE("oneDNN multiplies BFloat16 numbers with the processor's units for them") {
  static_assert(nn::MultipliesShort<nn::OneDnn, dist::BFloat16>);
  static_assert(!nn::MultipliesShort<nn::OneDnn, dist::Float16>);
  static_assert(!nn::MultipliesShort<nn::Reference, dist::BFloat16>);
  using Short = nn::OneDnn::Short<dist::BFloat16>;
  CHECK((nn::onednn::multiplies_bfloat16() || !Short::is_available()));
#ifdef __x86_64__
  if (std::getenv("DIST_MAX_ISA") == nullptr) {
    const bool has_units = __builtin_cpu_supports("avx512bf16");
    const bool is_fast = has_units && __builtin_cpu_is("amd");
    CHECK(nn::onednn::multiplies_bfloat16() == has_units);
    CHECK(Short::is_available() == is_fast);
  }
#endif
  check_layers<WithUnits>();
  check_layers<nn::OneDnn>();
}

TEST_CASE("a process without these units" * doctest::skip()) {
  if (std::getenv("DIST_MAX_ISA") == nullptr) return;
  REQUIRE_FALSE(nn::onednn::multiplies_bfloat16());
  check_layers<WithUnits>();
}

TEST_CASE("a process that has used oneDNN before" * doctest::skip()) {
  if (std::getenv("DIST_MAX_ISA") == nullptr) return;
  static_cast<void>(dnnl_get_effective_cpu_isa());
  CHECK_THROWS_WITH_AS(nn::OneDnn::State{},
                       "DIST_MAX_ISA cannot limit oneDNN (this program has used oneDNN before dist). Set "
                       "ONEDNN_MAX_CPU_ISA in the environment, too.",
                       dist::InvalidArgument);
}

TEST_CASE("DIST_MAX_ISA is refused if it comes too late for oneDNN") {
  support::Spawned process{"a process that has used oneDNN before", {"DIST_MAX_ISA=avx512"}};
  CHECK(process.exit_status_within(std::chrono::seconds{120}) == 0);
}

TEST_CASE("the results are the same if the units are hidden") {
  support::Spawned process{"a process without these units", {"DIST_MAX_ISA=avx512"}};
  CHECK(process.exit_status_within(std::chrono::seconds{120}) == 0);
}
