#include <dist/nn/hlo/lowering.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>

#include <dist/nn/layers/named.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/sequential.hpp>
#include <hlo/run.hpp>

namespace hlo = dist::hlo;
namespace nn = dist::nn;
template <std::size_t... Extents>
using Floats = hlo::Traced<float, Extents...>;
using Numbers = dist::Tensor<float>;

namespace {

/// Multiplies each element by a factor and adds another parameter. In training it accumulates the added values in its
/// state.
struct Line {
  template <class In>
  struct On {
    using Layer = Line;
    using Output = In;
    static constexpr std::string_view name = "line";
    static constexpr std::array parameters{nn::ParameterSpec{"factor", dist::Shape{}},
                                           nn::ParameterSpec{"addend", In::shape()}};
    static constexpr std::array state{nn::StateSpec{"total", In::shape()}};
    static constexpr bool is_view = false;
    static constexpr bool uses_replica = true;
  };
};

}  // namespace

template <>
struct dist::nn::Lowering<Line> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments&, X x, const Parameters& parameters, State& state) {
    const auto& [factor, addend] = parameters;
    auto& [total] = state;
    if constexpr (Arguments::training) total += addend;
    return x * X{factor} + hlo::broadcast<X, 1>(addend);
  }
};

TEST_CASE("the layers of a network run in order, each with its parameters and its state") {
  using Net = nn::Sequential<nn::Input<2, 1>, nn::Flatten, Line, nn::Named<"second", Line>, nn::Reshape<1, 2>>;
  const auto [trained, first, second, inferred, kept] = testing::run<Floats<3, 2, 1>, Floats<>, Floats<2>, Floats<>,
                                                                     Floats<2>, Floats<2>, Floats<2>>(
      1,
      [](auto x, auto... tensors) {
        const std::tuple all{tensors...};
        const auto parameters = nn::detail::copied<0, 4>(all);
        std::tuple state{std::get<4>(all), std::get<5>(all)};
        const hlo::Traced<std::int32_t> rows{3}, none{0};
        const auto y = nn::emit_forward<Net>(nn::TraceArguments<nn::Training>{rows, none}, parameters, state, x);
        auto constant = state;
        const auto z = nn::emit_forward<Net>(nn::TraceArguments<nn::Inference>{rows, none}, parameters, constant, x);
        return std::tuple{y, std::get<0>(state), std::get<1>(state), z, std::get<1>(constant)};
      },
      Numbers{{3, 2, 1}, {1, 2, 3, 4, 5, 6}}, Numbers{{}, {2}}, Numbers{{2}, {10, 20}}, Numbers{{}, {-1}},
      Numbers{{2}, {100, 200}}, Numbers{{2}, {0, 1}}, Numbers{{2}, {0.5F, 0}});
  CHECK(trained == Numbers{{3, 1, 2}, {88, 176, 84, 172, 80, 168}});
  CHECK(first == Numbers{{2}, {10, 21}});
  CHECK(second == Numbers{{2}, {100.5F, 200}});
  CHECK(inferred == trained);
  CHECK(kept == second);
}
