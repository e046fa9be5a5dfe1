#pragma once

#include <array>
#include <concepts>
#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/core/float16.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/vectors.hpp>
#include <dist/device/cpu.hpp>
#include <dist/nn/backend.hpp>

namespace dist::nn {

namespace detail {

template <class Half, class T>
struct RoundTo {
  const T* from;
  T* to;
  DIST_HD void operator()(std::size_t i) const { to[i] = static_cast<T>(static_cast<float>(Half(from[i]))); }
};

/// Rounds numbers in the host's memory to Half.
template <class Half, class T>
void round_to(const T* from, T* to, std::size_t count) {
  const RoundTo<Half, T> round{from, to};
  dist::detail::with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
    DIST_INDEPENDENT_LOOP
    for (std::size_t i = 0; i < count; ++i) round(i);
  });
}
#ifdef DIST_COMPILED
extern template void round_to<BFloat16>(const float*, float*, std::size_t);
extern template void round_to<Float16>(const float*, float*, std::size_t);
#endif

/// A layer's products with rounded factors.
template <class Mixed, class Product, class T>
class RoundedProduct {
  using State = typename Mixed::State;
  template <class Element>
  using View = ViewOn<Mixed, Element>;

 public:
  void forward(State& state, View<const T> x, View<const T> kernel, View<const T> bias, View<T> y) {
    product_.forward(state, state.rounded(0, x), state.rounded(1, kernel), bias, y);
  }
  void parameter_gradients(State& state, View<const T> x, View<const T> dy, View<T> kernel_gradient,
                           View<T> bias_gradient) {
    product_.parameter_gradients(state, state.rounded(0, x), state.rounded(1, dy), kernel_gradient, bias_gradient);
  }
  void input_gradient(State& state, View<const T> dy, View<const T> kernel, View<T> dx) {
    product_.input_gradient(state, state.rounded(0, dy), state.rounded(1, kernel), dx);
  }

 private:
  Product product_;
};

}  // namespace detail

/// A back end whose dense layers and convolutions multiply 16-bit numbers, BFloat16 or Float16 (spec P22). Inputs,
/// kernels and gradients are rounded for products, which `Backend` adds up in the network's type. All other operations
/// are the back end's.
///
///     using Backend = dist::nn::MixedPrecision<dist::nn::OneDnn, dist::BFloat16>;
///
/// Float16 ends at 65504, with a smallest step of 6e-8: small gradients vanish without a LossScale, which nn::Model
/// has. nn::Cuda multiplies with tensor cores for TF32, whose factors have 11 bits, so no bit is lost, and adds up in
/// float. Other back ends give the results of 16-bit units, not their speed; Xla does in compiled steps, too.
template <class BackendType, class Half>
struct MixedPrecision : BackendType {
  static_assert(Backend<BackendType>, "nn::MixedPrecision takes a back end, such as nn::OneDnn");
  static_assert(sizeof(Half) == 2, "nn::MixedPrecision rounds to dist::BFloat16 or dist::Float16");
  using Device = typename BackendType::Device;
  /// See RoundsFactors.
  using Factor = Half;
  /// The back end's memory, if it is not the host's.
  template <class T>
  using Memory = detail::LayerMemory<BackendType, T>;

  /// The back end's state, with memory for rounded factors.
  class State : public BackendType::State {
   public:
    /// For back ends whose state is made from the queue.
    explicit State(const typename Device::Queue& queue) requires(
        std::constructible_from<typename BackendType::State, const typename Device::Queue&>)
        : BackendType::State(queue), queue_(queue) {
      tell_back_end();
    }
    /// For back ends whose state does not take a queue.
    explicit State(const typename Device::Queue& queue) requires(
        !std::constructible_from<typename BackendType::State, const typename Device::Queue&>)
        : queue_(queue) {
      tell_back_end();
    }

    /// Returns a factor rounded to Half, until the next call with the same `which`, 0 or 1. All layers share the
    /// memory.
    template <class T>
    [[nodiscard, gnu::noinline]] ViewOn<BackendType, const T> rounded(std::size_t which,
                                                                      ViewOn<BackendType, const T> factor) {
      const std::size_t bytes = factor.size() * sizeof(T);
      if (bytes > bytes_[which]) {
        bytes_[which] = 0;
        memory_[which] = {};  // first, because both may not fit
        memory_[which] = detail::make_layer_memory<BackendType, std::byte>(queue_, bytes);
        bytes_[which] = bytes;
      }
      T* const to = reinterpret_cast<T*>(memory_[which].data());
      if constexpr (std::same_as<Device, Cpu>)
        detail::round_to<Half>(factor.data(), to, factor.size());
      else
        queue_.for_each({0, factor.size()}, detail::RoundTo<Half, T>{factor.data(), to});
      return {to, factor.shape()};
    }

   private:
    void tell_back_end() {
      if constexpr (TakesShortFactors<typename BackendType::State>) this->set_short_factors();
    }

    [[no_unique_address]] typename Device::Queue queue_;
    std::array<Memory<std::byte>, 2> memory_;
    std::array<std::size_t, 2> bytes_{};
  };

  template <class Geometry, class T>
  using Dense = detail::RoundedProduct<MixedPrecision, typename BackendType::template Dense<Geometry, T>, T>;
  template <class Geometry, class T>
  using Conv2D = detail::RoundedProduct<MixedPrecision, typename BackendType::template Conv2D<Geometry, T>, T>;
};

}  // namespace dist::nn
