#pragma once

#include <cstddef>
#include <cstdint>

#include <dist/core/config.hpp>
#include <dist/core/random.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/cuda/elementwise.cuh>
#include <dist/nn/cuda/memory.cuh>
#include <dist/nn/cuda/state.cuh>
#include <dist/nn/layer_random.hpp>

namespace dist::nn::cuda {

/// Draws the random stream of the next step.
template <class S>
struct TakeStream {
  S* values;
  RandomStream* to;
  DIST_HD void operator()(std::size_t) const { *to = LayerRandom::next(values); }
};

/// Drops elements 2n and 2n + 1 of the stream, which share one draw of 64 bits.
template <std::size_t Numerator, std::size_t Denominator, class T>
struct DropPair {
  const RandomStream* random;
  std::uint64_t first;  // the first element's index in the stream
  std::size_t size;
  const T* from;
  T* to;

  DIST_HD void operator()(std::size_t pair) const {
    constexpr T scale = static_cast<T>(static_cast<double>(Denominator) / (Denominator - Numerator));
    constexpr std::uint64_t dropped = (std::uint64_t{Numerator} << 32) / Denominator;  // of 2^32 values
    const std::uint64_t draw = first / 2 + pair;
    const std::uint64_t bits = random->bits(draw);
    for (std::uint64_t half = 0; half < 2; ++half) {
      const std::uint64_t i = 2 * draw + half - first;  // wraps around before the first element
      if (i < size) to[i] = (bits >> (32 * half) & 0xffffffffU) >= dropped ? from[i] * scale : T{0};
    }
  }
};

/// Drops Numerator / Denominator of all elements. The gradient draws the same numbers again, which saves a mask.
template <std::size_t Numerator, std::size_t Denominator, class T>
class Dropout {
 public:
  /// `values` is the state of a LayerRandom, which advances to the next step; `first` is the first element's index in
  /// the stream.
  template <class S>
  void forward(State& state, View<S> values, std::uint64_t first, View<const T> x, View<T> y) {
    random_.reserve(state.queue(), 1);
    state.queue().for_each({0, 1}, TakeStream<S>{values.data(), random_.data()});
    first_ = first;
    drops_ = true;
    drop(state, x, y);
  }
  /// Drops nothing, for inference.
  void forward(State& state, View<const T> x, View<T> y) {
    drops_ = false;
    state.queue().copy(x.elements(), y.elements());
  }

  void input_gradient(State& state, View<const T> dy, View<T> dx) {
    if (drops_) {
      drop(state, dy, dx);
    } else {
      state.queue().copy(dy.elements(), dx.elements());
    }
  }

 private:
  void drop(State& state, View<const T> from, View<T> to) const {
    const std::size_t pairs = (first_ % 2 + from.size() + 1) / 2;
    state.queue().for_each(
        {0, pairs}, DropPair<Numerator, Denominator, T>{random_.data(), first_, from.size(), from.data(), to.data()});
  }

  Memory<RandomStream> random_;
  std::uint64_t first_ = 0;
  bool drops_ = false;
};

}  // namespace dist::nn::cuda
