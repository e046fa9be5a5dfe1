#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/core/float16.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/vectors.hpp>
#include <dist/device/cpu.hpp>
#include <dist/nn/backend.hpp>

namespace dist::nn {

namespace detail {

/// Rounds numbers to Half, and stores them as Half or as T.
template <class Half, class T, class To>
struct RoundTo {
  const T* from;
  To* to;
  DIST_HD void operator()(std::size_t i) const {
    const Half rounded(from[i]);
    if constexpr (std::same_as<To, Half>)
      to[i] = rounded;
    else
      to[i] = static_cast<To>(static_cast<float>(rounded));
  }
};

/// Rounds numbers in the host's memory to Half.
template <class Half, class T, class To>
void round_to(const T* from, To* to, std::size_t count) {
  const RoundTo<Half, T, To> round{from, to};
  dist::detail::with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
    DIST_INDEPENDENT_LOOP
    for (std::size_t i = 0; i < count; ++i) round(i);
  });
}
#ifdef DIST_COMPILED
extern template void round_to<BFloat16>(const float*, float*, std::size_t);
extern template void round_to<BFloat16>(const float*, BFloat16*, std::size_t);
extern template void round_to<Float16>(const float*, float*, std::size_t);
#endif

/// A back end without operations on Half.
struct NoShortProducts {};
template <class Backend, class Half>
struct ShortProductsOf {
  using Type = NoShortProducts;
};
template <class Backend, class Half>
  requires MultipliesShort<Backend, Half>
struct ShortProductsOf<Backend, Half> {
  using Type = typename Backend::template Short<Half>;
};

/// The operation `Asked::From<Short>`; without such operations an empty type.
template <class Short, class Asked>
struct ShortProductOf {
  using Type = typename Asked::template From<Short>;
};
template <class Asked>
struct ShortProductOf<NoShortProducts, Asked> {
  using Type = NoShortProducts;
};

/// A layer's products with rounded factors, by units for these factors if the processor has them. `Asked` is the
/// operation of `Backend`.
template <class Mixed, class Backend, class Asked, class T>
class RoundedProduct {
  using State = typename Mixed::State;
  using Half = typename Mixed::Factor;
  using Short = typename ShortProductsOf<Backend, Half>::Type;
  template <class Element>
  using View = ViewOn<Mixed, Element>;

 public:
  void forward(State& state, View<const T> x, View<const T> kernel, View<const T> bias, View<T> y) {
    with_product([&](auto& product, auto factor) {
      product.forward(state, state.rounded(0, x, factor), state.rounded(1, kernel, factor), bias, y);
    });
  }
  void parameter_gradients(State& state, View<const T> x, View<const T> dy, View<T> kernel_gradient,
                           View<T> bias_gradient) {
    with_product([&](auto& product, auto factor) {
      product.parameter_gradients(state, state.rounded(0, x, factor), state.rounded(1, dy, factor), kernel_gradient,
                                  bias_gradient);
    });
  }
  void input_gradient(State& state, View<const T> dy, View<const T> kernel, View<T> dx) {
    with_product([&](auto& product, auto factor) {
      product.input_gradient(state, state.rounded(0, dy, factor), state.rounded(1, kernel, factor), dx);
    });
  }

 private:
  /// Calls `use(product, type of the factors in memory)`.
  template <class Use>
  void with_product(const Use& use) {
    if constexpr (!std::same_as<Short, NoShortProducts>)
      if (Short::is_available()) return use(short_product_, std::type_identity<Half>{});
    use(product_, std::type_identity<T>{});
  }

  typename Asked::template From<Backend> product_;
  [[no_unique_address]] typename ShortProductOf<Short, Asked>::Type short_product_;
};

/// The operations of RoundedProduct.
template <class Geometry, class T>
struct DenseProduct {
  template <class Backend>
  using From = typename Backend::template Dense<Geometry, T>;
};
template <class Geometry, class T>
struct Conv2DProduct {
  template <class Backend>
  using From = typename Backend::template Conv2D<Geometry, T>;
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
/// float. nn::OneDnn multiplies BFloat16 on AMD's processors with AVX512-BF16, where the order of sums is another one;
/// DIST_MAX_ISA=avx512 hides these units. Other back ends give the results of 16-bit units, not their speed;
/// Xla does in compiled steps, too.
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

    /// Returns a factor rounded to Half, with elements of type `To`, until the next call with the same `which`, 0 or 1.
    /// All layers share the memory.
    template <class T, class To>
    [[nodiscard, gnu::noinline]] ViewOn<BackendType, const To> rounded(std::size_t which,
                                                                       ViewOn<BackendType, const T> factor,
                                                                       std::type_identity<To>) {
      const std::size_t bytes = factor.size() * sizeof(To);
      if (bytes > bytes_[which]) {
        bytes_[which] = 0;
        memory_[which] = {};  // first, because both may not fit
        memory_[which] = detail::make_layer_memory<BackendType, std::byte>(queue_, bytes);
        bytes_[which] = bytes;
      }
      To* const to = reinterpret_cast<To*>(memory_[which].data());
      if constexpr (std::same_as<Device, Cpu>)
        detail::round_to<Half>(factor.data(), to, factor.size());
      else
        queue_.for_each({0, factor.size()}, detail::RoundTo<Half, T, To>{factor.data(), to});
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
  using Dense = detail::RoundedProduct<MixedPrecision, BackendType, detail::DenseProduct<Geometry, T>, T>;
  template <class Geometry, class T>
  using Conv2D = detail::RoundedProduct<MixedPrecision, BackendType, detail::Conv2DProduct<Geometry, T>, T>;
};

}  // namespace dist::nn
