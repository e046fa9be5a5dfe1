#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/random.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/initializer.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/row.hpp>

namespace dist::nn {

namespace detail {

/// Adds the table to `size` consecutive elements.
template <class T>
struct AddTable {
  const T* x;
  const T* table;
  std::size_t size;
  T* y;
  template <class Threads>
  DIST_HD void operator()(const Threads& threads, std::size_t row) const {
    const T* const from = x + row * size;
    T* const to = y + row * size;
    for_each_of(threads, [&](auto k) { to[k] = from[k] + table[k]; });
  }
};

/// The Operation of layers that add their only parameter, a table of `Size` elements, to each `Size` consecutive
/// elements of the batch.
template <class Backend, std::size_t Size, class T>
class TableOperation {
  using State = typename Backend::State;
  template <class Element>
  using View = ViewOn<Backend, Element>;
  template <class Element>
  using Table = ParameterViewsOn<Backend, Element, 1>;

 public:
  static constexpr bool skips_parameter_gradients = true;

  void forward(State& state, View<const T> x, const Table<const T>& table, View<T> y) {
    for_each_row<Backend>(state, x.size() / Size, Size, AddTable<T>{x.data(), table[0].data(), Size, y.data()});
  }
  template <bool InputGradient, bool ParameterGradients = true>
  void backward(State& state, View<const T>, const Table<const T>&, View<const T>, View<T> dy,
                const Table<T>& gradients, View<T> dx) {
    if constexpr (ParameterGradients)
      sum_columns<Backend>(state, dy.size() / Size, Size, SumOfElements<T>{dy.data(), Size}, gradients[0].data());
    if constexpr (InputGradient)
      queue_of<Backend>(state).copy(View<const T>{dy.data(), dy.shape()}.elements(), dx.elements());
  }
};

}  // namespace detail

/// Adds a trained vector along the last axis: y = x + bias. The parameter bias [channels] starts as `Initializer`. For
/// example, the bias of the words after nn::Unembed, or the vector of a text's only segment after an nn::Embedding.
template <class Initializer = Zeros>
struct Bias {
  /// The bound layer.
  template <class In>
  struct On {
    static_assert(In::rank > 0,
                  "nn::Bias adds a vector along the last axis, but its input has no axis: put nn::Reshape before it");
    using Layer = Bias;
    using Output = In;
    static constexpr std::string_view name = "bias";
    static constexpr std::array parameters{ParameterSpec{"bias", Shape{In::last_extent}}};
    static constexpr bool is_view = false;

    template <std::size_t, class T>
    static void initialize(TensorView<T> view, RandomStream stream) {
      Initializer::fill(view, Fans{In::last_extent, In::last_extent}, stream);
    }

    template <class Backend, class T>
    using Operation = detail::TableOperation<Backend, In::last_extent, T>;
  };
};

}  // namespace dist::nn
