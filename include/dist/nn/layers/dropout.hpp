#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <dist/core/tensor.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layer_random.hpp>

namespace dist::nn {

/// Sets a share `Numerator` / `Denominator` of the elements to zero in training: `Dropout<25>` drops a quarter. The
/// others are divided by the share that is kept, which preserves the mean. The identity in inference (Srivastava,
/// Hinton, Krizhevsky, Sutskever and Salakhutdinov, "Dropout: a simple way to prevent neural networks from
/// overfitting", JMLR 2014).
///
/// The choice depends on the network's seed, the step and the element's index in the global batch, not on the number
/// of replicas. See LayerRandom.
template <std::size_t Numerator, std::size_t Denominator = 100>
struct Dropout {
  static_assert(Numerator < Denominator,
                "nn::Dropout drops a fraction below 1: Dropout<25> drops 25 %, Dropout<1, 3> a third");

  /// The bound layer.
  template <class In>
  struct On {
    using Layer = Dropout;
    using Output = In;
    static constexpr std::string_view name = "dropout";
    static constexpr auto& parameters = detail::no_parameters;
    static constexpr std::array state{LayerRandom::state};
    static constexpr bool is_view = false;
    static constexpr bool uses_replica = true;
    static constexpr bool uses_global_rows = true;

    /// Selects the kernel.
    template <class T>
    struct Asked {
      template <class Backend>
      using From = typename Backend::template Dropout<Numerator, Denominator, T>;
    };
    /// Computes the layer.
    template <class Backend, class T>
    class Operation {
     public:
      template <class Call>
      void forward(const Call& call, typename Backend::State& engine, ViewOn<Backend, const T> x,
                   const ParameterViewsOn<Backend, const T, 0>&, ViewOn<Backend, T> y) {
        if constexpr (Call::training) {
          kernel_.forward(engine, call.state[0], std::uint64_t{call.first_row} * In::elements, x, y);
        } else {
          kernel_.forward(engine, x, y);
        }
      }
      template <bool InputGradient>
      void backward(const auto&, typename Backend::State& engine, ViewOn<Backend, const T>,
                    const ParameterViewsOn<Backend, const T, 0>&, ViewOn<Backend, const T>, ViewOn<Backend, T> dy,
                    const ParameterViewsOn<Backend, T, 0>&, ViewOn<Backend, T> dx) {
        if constexpr (InputGradient) kernel_.input_gradient(engine, dy, dx);
      }

     private:
      detail::KernelFrom<Backend, Asked<T>> kernel_;
    };
  };
};

}  // namespace dist::nn
