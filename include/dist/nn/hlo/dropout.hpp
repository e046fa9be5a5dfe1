#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include <dist/hlo/operations.hpp>
#include <dist/hlo/philox.hpp>
#include <dist/nn/hlo/lowering.hpp>
#include <dist/nn/layer_random.hpp>
#include <dist/nn/layers/dropout.hpp>

namespace dist::nn {

namespace detail {

/// As LayerRandom::next: the numbers of the next step, from the state of a layer, which goes on.
template <class S>
[[nodiscard]] hlo::RandomStream next_random(hlo::Traced<S, 6>& state) {
  using Number = hlo::RandomStream::Number;
  const auto words = state.template as<std::uint64_t>();
  const Number seed = [&]<std::size_t... Part>(std::index_sequence<Part...>) {
    return ((hlo::reshape<>(hlo::slice<0, Part, 1>(words)) << Number{16 * Part}) | ...);
  }
  (std::make_index_sequence<4>{});
  const Number step =
      hlo::reshape<>(hlo::slice<0, 4, 1>(words)) | (hlo::reshape<>(hlo::slice<0, 5, 1>(words)) << Number{16});
  const Number next = step + Number{1};
  const auto part = [](Number bits) { return hlo::reshape<1>((bits & Number{0xffff}).template as<S>()); };
  state = hlo::concatenate<0>(hlo::slice<0, 0, 4>(state), hlo::concatenate<0>(part(next), part(next >> Number{16})));
  return hlo::RandomStream{seed, step};
}

}  // namespace detail

template <std::size_t Numerator, std::size_t Denominator>
struct Lowering<Dropout<Numerator, Denominator>> {
  template <class Bound, class Arguments, hlo::TracedArray X, class Parameters, class State>
  static auto forward(const Arguments& arguments, X x, const Parameters&, State& state) {
    if constexpr (!Arguments::training) {
      return x;
    } else {
      using T = typename X::Element;
      constexpr std::size_t in_row = Bound::Output::elements;
      using Numbers = hlo::Traced<std::uint64_t, X::extents[0], in_row>;
      const hlo::RandomStream random = detail::next_random(std::get<0>(state));
      const Numbers rows = hlo::iota<Numbers, 0>() + Numbers{arguments.first_row.template as<std::uint64_t>()};
      const Numbers element = rows * Numbers{in_row} + hlo::iota<Numbers, 1>();
      // One draw of 64 bits serves the two elements of an even and an odd number.
      const Numbers shift = (element & Numbers{1}) * Numbers{32};
      const Numbers bits = (random.bits(element >> Numbers{1}) >> shift) & Numbers{0xffffffff};
      constexpr std::uint64_t dropped = (std::uint64_t{Numerator} << 32) / Denominator;
      using Kept = typename X::template With<bool>;
      const Kept kept{hlo::untyped::reshape((bits >= Numbers{dropped}).value(), Kept::type().shape)};
      constexpr T scale = static_cast<T>(static_cast<double>(Denominator) / (Denominator - Numerator));
      return hlo::select(kept, x * X{scale}, X{0});
    }
  }
};

}  // namespace dist::nn
