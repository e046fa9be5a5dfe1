#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/random.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/layer_random.hpp>
#include <dist/nn/reference/vectors.hpp>
#include <dist/nn/row.hpp>
#include <dist/nn/softmax.hpp>

namespace dist::nn::reference {

/// y = Function(x) by element. Limited by memory bandwidth, so other CPU back ends use it.
template <class Function, class T>
class Elementwise {
 public:
  template <class State>
  void forward(State&, TensorView<const T> x, TensorView<T> y) {
    const T* const from = x.data();
    T* const to = y.data();
    const std::size_t size = x.size();
    DIST_INDEPENDENT_LOOP
    for (std::size_t i = 0; i < size; ++i) to[i] = Function::apply(from[i]);
  }

  /// The identity in place is free.
  template <class State>
  void input_gradient(State&, TensorView<const T> value, TensorView<T> dy, TensorView<T> dx) {
    if (std::is_same_v<Function, Linear> && dx.data() == dy.data()) return;
    const T* const output_or_input = value.data();
    const T* const from = dy.data();
    T* const to = dx.data();
    const std::size_t size = value.size();
    DIST_INDEPENDENT_LOOP
    for (std::size_t i = 0; i < size; ++i) to[i] = detail::activation_gradient<Function>(output_or_input[i], from[i]);
  }
};

/// y = activation(x · kernel + bias). Inner loops run over units, contiguous in memory.
template <class Geometry, class T>
class Dense {
  static constexpr std::size_t inputs = Geometry::inputs;
  static constexpr std::size_t units = Geometry::units;

 public:
  template <class State>
  void forward(State&, TensorView<const T> x, TensorView<const T> kernel, [[maybe_unused]] TensorView<const T> bias,
               TensorView<T> y) {
    for (std::size_t row = 0; row < x.rows(); ++row) {
      const T* const in = x.data() + row * inputs;
      T* const out = y.data() + row * units;
      if constexpr (Geometry::has_bias)
        std::copy_n(bias.data(), units, out);
      else
        std::fill_n(out, units, T{0});
      for (std::size_t i = 0; i < inputs; ++i) add_scaled(in[i], kernel.data() + i * units, out, units);
      for (std::size_t unit = 0; unit < units; ++unit) out[unit] = Geometry::Activation::apply(out[unit]);
    }
  }

  template <class State>
  void parameter_gradients([[maybe_unused]] State& state, TensorView<const T> x, TensorView<const T> dy,
                           TensorView<T> kernel_gradient, [[maybe_unused]] TensorView<T> bias_gradient) {
    for (std::size_t i = 0; i < inputs; ++i) {
      T* const gradient = kernel_gradient.data() + i * units;
      std::fill_n(gradient, units, T{0});
      for (std::size_t row = 0; row < x.rows(); ++row)
        add_scaled(x.data()[row * inputs + i], dy.data() + row * units, gradient, units);
    }
    if constexpr (Geometry::has_bias) this->bias_gradient(state, dy, bias_gradient);
  }

  template <class State>
  void bias_gradient(State&, TensorView<const T> dy, TensorView<T> gradient) {
    std::fill_n(gradient.data(), units, T{0});
    for (std::size_t row = 0; row < dy.rows(); ++row) add(dy.data() + row * units, gradient.data(), units);
  }

  template <class State>
  void input_gradient(State&, TensorView<const T> dy, TensorView<const T> kernel, TensorView<T> dx) {
    for (std::size_t row = 0; row < dy.rows(); ++row)
      for (std::size_t i = 0; i < inputs; ++i)
        dx.data()[row * inputs + i] = dot(dy.data() + row * units, kernel.data() + i * units, units);
  }
};

/// Throws InvalidArgument for an id outside of 0 to `Words` - 1; `place` is its index in the batch.
template <std::size_t Words, class T>
[[noreturn]] void refuse_id(std::size_t place, T id) {
  throw InvalidArgument(
      "nn::Embedding was given an id outside its table",
      concat("element ", place, " of the batch is ", static_cast<double>(id), ", ids are 0 to ", Words - 1),
      "Give ids in that range, or use an nn::Embedding with more words");
}

/// Rows of a table by id. Other CPU back ends use it.
template <std::size_t Words, std::size_t Width, class T>
class Embedding {
 public:
  /// Throws InvalidArgument for an id out of range.
  template <class State>
  void forward(State&, TensorView<const T> ids, TensorView<const T> table, TensorView<T> y) {
    for (std::size_t i = 0; i < ids.size(); ++i)
      std::copy_n(table.data() + row_of(ids.data()[i], i) * Width, Width, y.data() + i * Width);
  }

  /// Adds to the gradient of the table.
  template <class State>
  void add_table_gradient(State&, TensorView<const T> ids, TensorView<const T> dy, TensorView<T> gradient) {
    for (std::size_t i = 0; i < ids.size(); ++i)
      add(dy.data() + i * Width, gradient.data() + row_of(ids.data()[i], i) * Width, Width);
  }

 private:
  [[nodiscard]] static std::size_t row_of(T id, std::size_t place) {
    // Written so that NaN is rejected.
    if (!(id >= T{0} && id < static_cast<T>(Words))) refuse_id<Words>(place, id);
    return static_cast<std::size_t>(id);
  }
};

/// Drops elements with probability Numerator / Denominator. `forward` stores the mask for `input_gradient`. Other CPU
/// back ends use it.
template <std::size_t Numerator, std::size_t Denominator, class T>
class Dropout {
 public:
  /// Drops elements in training. `values` is the state of a LayerRandom, which advances a step; `first` is the first
  /// element's index in the stream.
  template <class State, class S>
  void forward(State&, TensorView<S> values, std::uint64_t first, TensorView<const T> x, TensorView<T> y) {
    const RandomStream random = LayerRandom::next(values);
    if (kept_.size() < x.size()) kept_ = AlignedBuffer<unsigned char>(x.size());
    drops_ = true;
    // A draw of 64 bits serves two elements, an even and the next odd one.
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
  /// Copies x to y in inference.
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
  /// 32-bit values that drop an element.
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

/// Scaled dot-product attention with several heads, each on its columns of queries, keys and values: outputs =
/// softmax(queries · keysᵀ / sqrt(width)) · values. `forward` keeps the log-sums of the softmaxes, from which the
/// gradient computes the softmaxes again.
template <class Geometry, class T>
class Attention {
 public:
  template <class State>
  void forward(State&, TensorView<const T> queries, TensorView<const T> keys, TensorView<const T> values,
               TensorView<T> outputs) {
    for_each_sequence(queries, keys, values,
                      [&](const AttentionInputs<T>& inputs, std::size_t first, std::size_t, T* log_sums) {
                        attend(inputs, outputs.data() + first, log_sums);
                      });
  }

  /// Overwrites the three gradients.
  template <class State>
  void input_gradients(State&, TensorView<const T> queries, TensorView<const T> keys, TensorView<const T> values,
                       TensorView<const T> /*outputs*/, TensorView<const T> output_gradients,
                       TensorView<T> query_gradients, TensorView<T> key_gradients, TensorView<T> value_gradients) {
    for_each_sequence(queries, keys, values,
                      [&](const AttentionInputs<T>& inputs, std::size_t first, std::size_t first_key, T* log_sums) {
                        compute_gradients(inputs, log_sums,
                                          {output_gradients.data() + first, query_gradients.data() + first,
                                           key_gradients.data() + first_key, value_gradients.data() + first_key});
                      });
  }

 protected:
  static constexpr AttentionSizes sizes = Geometry::sizes;

  /// Calls `visit(inputs, first, first_key, log_sums)` for each sequence, with the offsets of its queries and keys.
  template <class Visit>
  void for_each_sequence(TensorView<const T> queries, TensorView<const T> keys, TensorView<const T> values,
                         Visit&& visit) {
    constexpr std::size_t rows = sizes.length * sizes.heads;
    const std::size_t sequences = queries.rows() / sizes.length;
    if (log_sums_.size() < sequences * rows) log_sums_ = AlignedBuffer<T>(sequences * rows);
    for (std::size_t i = 0; i < sequences; ++i) {
      const std::size_t first = i * rows * sizes.width;
      const std::size_t first_key = i * sizes.length * sizes.key_columns();
      visit(AttentionInputs<T>{queries.data() + first, keys.data() + first_key, values.data() + first_key}, first,
            first_key, log_sums_.data() + i * rows);
    }
  }

  static void attend(const AttentionInputs<T>& inputs, T* outputs, T* log_sums) {
    std::fill_n(outputs, sizes.length * sizes.columns(), T{0});
    for_each_query([&](std::size_t query, std::size_t first_key, std::size_t reach, std::size_t row) {
      T weight[sizes.length];
      multiply(inputs, query, first_key, reach, weight);
      const T largest = *std::max_element(weight, weight + reach);
      T sum{0};
      for (std::size_t j = 0; j < reach; ++j) {
        weight[j] = std::exp(weight[j] - largest);
        sum += weight[j];
      }
      const T share = 1 / sum;
      for (std::size_t j = 0; j < reach; ++j)
        add_scaled(share * weight[j], inputs.values + first_key + j * sizes.key_columns(), outputs + query,
                   sizes.width);
      log_sums[row] = largest + std::log(sum);
    });
  }

  static void compute_gradients(const AttentionInputs<T>& inputs, const T* log_sums,
                                const AttentionGradients<T>& gradients) {
    std::fill_n(gradients.queries, sizes.length * sizes.columns(), T{0});
    std::fill_n(gradients.keys, sizes.length * sizes.key_columns(), T{0});
    std::fill_n(gradients.values, sizes.length * sizes.key_columns(), T{0});
    const T scale = scale_of_products();
    for_each_query([&](std::size_t query, std::size_t first_key, std::size_t reach, std::size_t row) {
      const T* const slope = gradients.outputs + query;
      T weight[sizes.length];
      T of_weight[sizes.length];
      multiply(inputs, query, first_key, reach, weight);
      T mean{0};
      for (std::size_t j = 0; j < reach; ++j) {
        weight[j] = std::exp(weight[j] - log_sums[row]);
        of_weight[j] = dot(slope, inputs.values + first_key + j * sizes.key_columns(), sizes.width);
        mean += weight[j] * of_weight[j];
      }
      for (std::size_t j = 0; j < reach; ++j) {
        const std::size_t key = first_key + j * sizes.key_columns();
        const T of_product = scale * weight[j] * (of_weight[j] - mean);
        add_scaled(of_product, inputs.keys + key, gradients.queries + query, sizes.width);
        add_scaled(of_product, inputs.queries + query, gradients.keys + key, sizes.width);
        add_scaled(weight[j], slope, gradients.values + key, sizes.width);
      }
    });
  }

 private:
  [[nodiscard]] static T scale_of_products() { return T{1} / std::sqrt(static_cast<T>(sizes.width)); }

  /// Sets products[j] = scale * query · key j.
  static void multiply(const AttentionInputs<T>& inputs, std::size_t query, std::size_t first_key, std::size_t reach,
                       T* products) {
    const T scale = scale_of_products();
    for (std::size_t j = 0; j < reach; ++j)
      products[j] = scale * dot(inputs.queries + query, inputs.keys + first_key + j * sizes.key_columns(), sizes.width);
  }

  /// Calls `visit(query, first_key, reach, row)` for each query of each head: offsets of the query and of the head's
  /// first key, how many keys it attends to, and its place among the log-sums.
  template <class Visit>
  static void for_each_query(Visit&& visit) {
    for (std::size_t head = 0; head < sizes.heads; ++head)
      for (std::size_t i = 0; i < sizes.length; ++i)
        visit(i * sizes.columns() + head * sizes.width, head / (sizes.heads / sizes.key_heads) * sizes.width,
              sizes.is_causal ? i + 1 : sizes.length, head * sizes.length + i);
  }

  AlignedBuffer<T> log_sums_;
};

}  // namespace dist::nn::reference
