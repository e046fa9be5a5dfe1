#pragma once

#include <array>
#include <concepts>
#include <cstddef>

#include <dist/core/config.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/layer_memory.hpp>

namespace dist::nn {

namespace detail {

template <class Half, class T>
struct RoundTo {
  const T* from;
  T* to;
  DIST_HD void operator()(std::size_t i) const { to[i] = static_cast<T>(static_cast<float>(Half(from[i]))); }
};

/// A layer's products with factors that are rounded before.
template <class Mixed, class Product, class T>
class RoundedProduct {
  using State = typename Mixed::State;
  template <class Element>
  using View = ViewOn<Mixed, Element>;

 public:
  void forward(State& state, View<const T> x, View<const T> kernel, View<const T> bias, View<T> y) {
    product_.forward(state, state.template rounded<0>(x), state.template rounded<1>(kernel), bias, y);
  }
  void parameter_gradients(State& state, View<const T> x, View<const T> dy, View<T> kernel_gradient,
                           View<T> bias_gradient) {
    product_.parameter_gradients(state, state.template rounded<0>(x), state.template rounded<1>(dy), kernel_gradient,
                                 bias_gradient);
  }
  void input_gradient(State& state, View<const T> dy, View<const T> kernel, View<T> dx) {
    product_.input_gradient(state, state.template rounded<0>(dy), state.template rounded<1>(kernel), dx);
  }

 private:
  Product product_;
};

}  // namespace detail

/// A back end whose dense layers and convolutions multiply 16-bit numbers, BFloat16 or Float16 (spec P22). Inputs, kernels and
/// gradients are rounded for the products, which `Backend` adds up in the network's own type; parameters, activations and
/// all that is not a product stay in that, and are what `Backend` has.
///
///     using Backend = dist::nn::MixedPrecision<dist::nn::OneDnn, dist::BFloat16>;
///
/// Float16 ends at 65504, and its smallest steps are of 6e-8: small gradients vanish, unless a LossScale makes them larger. An nn::Model has one.
/// nn::Cuda multiplies such factors by tensor cores for TF32, which take 11 bits of each: no bit is lost, and products are added
/// up in float. Other back ends give the numbers of 16-bit units, not their speed; Xla does so in compiled steps, too.
template <class BackendType, class Half>
struct MixedPrecision : BackendType {
  static_assert(Backend<BackendType>, "nn::MixedPrecision takes a back end, such as nn::OneDnn");
  static_assert(sizeof(Half) == 2, "nn::MixedPrecision rounds to dist::BFloat16 or dist::Float16");
  using Device = typename BackendType::Device;
  /// See RoundsFactors.
  using Factor = Half;
  /// Memory as the back end has it, where that is not the host's.
  template <class T>
  using Memory = detail::LayerMemory<BackendType, T>;

  class State : public BackendType::State {
   public:
    explicit State(const typename Device::Queue& queue) requires(
        std::constructible_from<typename BackendType::State, const typename Device::Queue&>)
        : BackendType::State(queue), queue_(queue) {
      tell_back_end();
    }
    explicit State(const typename Device::Queue& queue) requires(
        !std::constructible_from<typename BackendType::State, const typename Device::Queue&>)
        : queue_(queue) {
      tell_back_end();
    }

    /// A factor as Half has it, until the next one with the same number.
    template <std::size_t which, class T>
    [[nodiscard]] ViewOn<BackendType, const T> rounded(ViewOn<BackendType, const T> factor) {
      const std::size_t bytes = factor.size() * sizeof(T);
      if (bytes > bytes_[which]) {
        bytes_[which] = 0;
        memory_[which] = {};  // first, so that both need not fit
        memory_[which] = detail::make_layer_memory<BackendType, std::byte>(queue_, bytes);
        bytes_[which] = bytes;
      }
      T* const to = reinterpret_cast<T*>(memory_[which].data());
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
