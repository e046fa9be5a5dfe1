#include <dist/nn/layer.hpp>

#include <dist/core/static_shape.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/flatten.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

struct Minimal {
  using Output = dist::StaticShape<1>;
  static constexpr std::string_view name = "minimal";
  static constexpr auto& parameters = nn::detail::no_parameters;
  static constexpr bool is_view = true;
};
struct WithoutName {
  using Output = dist::StaticShape<1>;
  [[maybe_unused]] static constexpr auto& parameters = nn::detail::no_parameters;
  [[maybe_unused]] static constexpr bool is_view = true;
};
struct WithoutOutput {
  [[maybe_unused]] static constexpr std::string_view name = "near miss";
  [[maybe_unused]] static constexpr auto& parameters = nn::detail::no_parameters;
  [[maybe_unused]] static constexpr bool is_view = true;
};
struct WithoutParameters {
  using Output = dist::StaticShape<1>;
  [[maybe_unused]] static constexpr std::string_view name = "near miss";
  [[maybe_unused]] static constexpr bool is_view = true;
};
struct WithoutView {
  using Output = dist::StaticShape<1>;
  [[maybe_unused]] static constexpr std::string_view name = "near miss";
  static constexpr auto& parameters = nn::detail::no_parameters;
};

}  // namespace

TEST_CASE("a placed layer has an output, a name, parameters and says whether it is a view") {
  CHECK(nn::PlacedLayer<Minimal>);
  CHECK(nn::PlacedLayer<nn::Dense<3>::On<dist::StaticShape<4>>>);
  CHECK(nn::PlacedLayer<nn::Flatten::On<dist::StaticShape<4, 2>>>);
  CHECK_FALSE(nn::PlacedLayer<WithoutName>);
  CHECK_FALSE(nn::PlacedLayer<WithoutOutput>);
  CHECK_FALSE(nn::PlacedLayer<WithoutParameters>);
  CHECK_FALSE(nn::PlacedLayer<WithoutView>);
  CHECK_FALSE(nn::PlacedLayer<nn::Flatten>);  // not in a place yet
}
