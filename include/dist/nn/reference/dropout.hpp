#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/random.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/layer_random.hpp>

namespace dist::nn::reference {

/// Drops Numerator / Denominator of all elements, and keeps from `forward` to `input_gradient` which ones. Other CPU back
/// ends use it too.
template <std::size_t Numerator, std::size_t Denominator, class T>
class Dropout {
 public:
  /// `values` are the state of a LayerRandom, which goes on to the next step; `first` is the number of the first element
  /// among those of the stream.
  template <class State, class S>
  void forward(State&, TensorView<S> values, std::uint64_t first, TensorView<const T> x, TensorView<T> y) {
    const RandomStream random = LayerRandom::next(values);
    if (kept_.size() < x.size()) kept_ = AlignedBuffer<unsigned char>(x.size());
    drops_ = true;
    // One draw of 64 bits serves the two elements of an even and an odd number.
    const std::size_t odd = first % 2 == 1 && x.size() > 0 ? 1 : 0;
    if (odd == 1) set(0, random.bits(first / 2) >> 32);
    const std::uint64_t first_pair = (first + odd) / 2;
    const std::size_t pairs = (x.size() - odd) / 2;
    DIST_INDEPENDENT_LOOP
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      const std::uint64_t bits = random.bits(first_pair + pair);
      set(odd + 2 * pair, bits);
      set(odd + 2 * pair + 1, bits >> 32);
    }
    if (odd + 2 * pairs < x.size()) set(x.size() - 1, random.bits(first_pair + pairs));
    scale_kept(x.data(), y.data(), x.size());
  }
  /// Without dropping anything.
  template <class State>
  void forward(State&, TensorView<const T> x, TensorView<T> y) {
    drops_ = false;
    std::copy_n(x.data(), x.size(), y.data());
  }

  template <class State>
  void input_gradient(State&, TensorView<const T> dy, TensorView<T> dx) {
    if (drops_) {
      scale_kept(dy.data(), dx.data(), dy.size());
    } else {
      std::copy_n(dy.data(), dy.size(), dx.data());
    }
  }

 private:
  static constexpr T scale = static_cast<T>(static_cast<double>(Denominator) / (Denominator - Numerator));
  /// Of 2^32 numbers, those that drop an element.
  static constexpr std::uint64_t dropped = (std::uint64_t{Numerator} << 32) / Denominator;

  void set(std::size_t i, std::uint64_t bits) { kept_.data()[i] = (bits & 0xffffffffU) >= dropped ? 1 : 0; }

  void scale_kept(const T* from, T* to, std::size_t size) const {
    const unsigned char* const kept = kept_.data();
    DIST_INDEPENDENT_LOOP
    for (std::size_t i = 0; i < size; ++i) to[i] = kept[i] != 0 ? from[i] * scale : T{0};
  }

  AlignedBuffer<unsigned char> kept_;
  bool drops_ = false;
};

}  // namespace dist::nn::reference
