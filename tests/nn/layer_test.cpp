#include <dist/nn/layer.hpp>

#include <array>

#include <dist/core/static_shape.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

struct Minimal {
  using Output = dist::StaticShape<1>;
  static constexpr std::string_view name = "minimal";
  static constexpr auto& parameters = nn::detail::no_parameters;
  static constexpr bool is_view = true;
};
struct WithState : Minimal {
  static constexpr std::array state{nn::StateSpec{"steps", dist::Shape{2}}};
  static constexpr bool uses_replica = true;
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

TEST_CASE("a BoundLayer has an output, a name, parameters and is_view") {
  CHECK(nn::BoundLayer<Minimal>);
  CHECK(nn::BoundLayer<nn::Dense<3>::On<dist::StaticShape<4>>>);
  CHECK(nn::BoundLayer<nn::Flatten::On<dist::StaticShape<4, 2>>>);
  CHECK_FALSE(nn::BoundLayer<WithoutName>);
  CHECK_FALSE(nn::BoundLayer<WithoutOutput>);
  CHECK_FALSE(nn::BoundLayer<WithoutParameters>);
  CHECK_FALSE(nn::BoundLayer<WithoutView>);
  CHECK_FALSE(nn::BoundLayer<nn::Flatten>);  // not placed yet
}

TEST_CASE("uses_replica and state of a layer are optional") {
  CHECK(nn::BoundLayer<WithState>);
  CHECK(nn::detail::uses_replica<WithState>);
  CHECK_FALSE(nn::detail::uses_replica<Minimal>);
  CHECK(nn::detail::state_of<WithState>().size() == 1);
  CHECK(nn::detail::state_of<Minimal>().empty());
}

TEST_CASE("a LayerCall has the mode as a constant") {
  CHECK(nn::LayerCall<int, nn::Training, double, 1>::training);
  CHECK_FALSE(nn::LayerCall<int, nn::Inference, const double, 1>::training);
}
