#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>

#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/vectors.hpp>
#include <dist/nn/kernels/matrix_product.hpp>
#include <dist/nn/kernels/vector.hpp>

namespace dist::nn::kernels {

/// One replica's factors of a dense layer's gradients: the input x [rows, inputs], and the gradient dy [rows, units]
/// before the activation.
template <class T>
struct DenseBatch {
  const T* x = nullptr;
  const T* dy = nullptr;
  std::size_t rows = 0;
};

/// Implements dense_bias_gradient for vectors of at most `WidestBytes`.
template <std::size_t Units, class T>
struct DenseBiasGradient {
  std::span<const DenseBatch<T>> batches;
  T* gradient;

  template <std::size_t WidestBytes>
  DIST_ALWAYS_INLINE void operator()() const {
    constexpr std::size_t bytes = vector_bytes_within<T, WidestBytes>(Units);
    constexpr std::size_t lanes = bytes / sizeof(T);
    for (std::size_t unit = 0; unit < Units; unit += lanes) {
      const std::size_t at = std::min(unit, Units - lanes);
      Vector<T, bytes> sum = {};
      for (const DenseBatch<T>& batch : batches) {
        for (std::size_t row = 0; row < batch.rows; ++row) {
          Vector<T, bytes> term;
          load<bytes>(term, batch.dy + row * Units + at);
          sum += term;
        }
      }
      store<bytes>(sum, gradient + at);
    }
  }
};

/// Computes the gradient of a dense layer's bias [Units]: the sum of dy over all batches and rows, in order.
template <std::size_t Units, class T>
void dense_bias_gradient(std::span<const DenseBatch<T>> batches, T* gradient) {
  dist::detail::with_widest_vectors(DenseBiasGradient<Units, T>{batches, gradient});
}

/// The gradient of a dense layer's kernel for blocks of inputs and all units. Implements dense_kernel_gradient_block
/// for vectors of at most `WidestBytes`.
///
/// Vectors hold units. The block's columns of x, a cache line of each row, are packed, and sums of several inputs and
/// two vectors of units stay in registers over all rows. Elements are summed in the order of batches and rows. If units
/// are not a multiple of a vector, the last vector starts earlier and recomputes some.
template <std::size_t Units, class T>
struct DenseKernelGradientBlock {
  /// The last columns of a block fill a cache line.
  static constexpr std::size_t block_inputs = 16;
  /// A block uses up to 32 KiB.
  static constexpr std::size_t most_units = 32768 / block_inputs / sizeof(T);

  std::span<const DenseBatch<T>> batches;
  std::size_t row_size;  ///< inputs of the layer
  IndexRange inputs;
  IndexRange next;  ///< of the next block
  T* gradients;
  const T* kernel;  ///< if not null, its elements of the next block are prefetched

  /// The block of a layer with one unit: vectors hold inputs.
  void add_rows() const {
    T sums[block_inputs] = {};
    for (const DenseBatch<T>& batch : batches) {
      const T* x = batch.x + inputs.begin;
      for (std::size_t row = 0; row < batch.rows; ++row, x += row_size)
        for (std::size_t input = 0; input < inputs.size(); ++input) sums[input] += x[input] * batch.dy[row];
    }
    std::copy_n(sums, inputs.size(), gradients);
  }

  template <std::size_t WidestBytes>
  DIST_ALWAYS_INLINE void operator()() const {
    using Of = Tiling<vector_bytes_within<T, WidestBytes>(Units)>;
    alignas(64) T packed[Of::most_rows * block_inputs];
    alignas(64) T partial[Of::is_padded ? block_inputs * Of::padded_units : 1];
    std::size_t all_rows = 0;
    for (const DenseBatch<T>& batch : batches) all_rows += batch.rows;

    const std::size_t count = inputs.size();
    Ahead ahead{.element = next.begin * Units, .end = kernel == nullptr ? next.begin * Units : next.end * Units};
    ahead.lines = (next.size() * Units / Ahead::line + all_rows) / (all_rows + 1);
    std::size_t done = 0;
    for (const DenseBatch<T>& batch : batches) {
      for (std::size_t row = 0; row < batch.rows; row += Of::most_rows) {
        const std::size_t rows = std::min(Of::most_rows, batch.rows - row);
        const T* const x = batch.x + row * row_size + inputs.begin;
        pack<Of>(x, rows, count, packed);
        const Sums sums{done == 0, done + rows == all_rows, gradients, partial};
        ahead.x = next.size() > 0 ? x + next.end - inputs.begin - 1 : nullptr;
        ahead.rows = ahead.x ? rows : 0;
        multiply<Of>(batch.dy + row * Units, rows, packed, count, sums, ahead);
        done += rows;
      }
    }
    if (all_rows == 0) std::fill_n(gradients, count * Units, T{0});
  }

 private:
  /// Sizes for a vector length. A block is a cache line of every row of x, or less if gradients would exceed 32 KiB. At
  /// most 128 rows are packed at a time: 8 KiB of floats.
  template <std::size_t VectorBytes>
  struct Tiling {
    static constexpr std::size_t bytes = VectorBytes;
    static constexpr std::size_t lanes = bytes / sizeof(T);
    static constexpr std::size_t vectors = (Units + lanes - 1) / lanes;
    static constexpr std::size_t padded_units = vectors * lanes;
    static constexpr bool is_padded = padded_units != Units;
    static constexpr std::size_t tile_inputs = vector_registers<bytes> == 32 ? 8 : 6;
    static constexpr std::size_t most_rows = 128;
  };

  /// Prefetching for the next block; in x its last column, which is in a line that this block does not read if blocks
  /// straddle lines.
  struct Ahead {
    static constexpr std::size_t line = 64 / sizeof(T);
    const T* x = nullptr;
    std::size_t rows = 0;
    std::size_t element = 0;
    std::size_t end = 0;
    std::size_t lines = 0;
  };

  DIST_ALWAYS_INLINE void call_for(Ahead& ahead) const {
    if (ahead.rows > 0) {
      __builtin_prefetch(ahead.x);
      if (--ahead.rows > 0) ahead.x += row_size;
    }
    const std::size_t stop = std::min(ahead.element + ahead.lines * Ahead::line, ahead.end);
    for (; ahead.element < stop; ahead.element += Ahead::line) __builtin_prefetch(kernel + ahead.element, 1, 2);
  }

  /// The place of partial sums between rows: the block, or separate memory if vectors overlap in it.
  struct Sums {
    bool start;
    bool end;
    T* gradients;
    T* partial;
  };

  /// Sets packed[row, input] = x[row, first + input].
  template <class Of>
  DIST_ALWAYS_INLINE void pack(const T* x, std::size_t rows, std::size_t count, T* packed) const {
    for (std::size_t row = 0; row < rows; ++row) {
      const T* const from = x + row * row_size;
      T* const to = packed + row * block_inputs;
      if (count == block_inputs) {
        std::copy_n(from, block_inputs, to);
      } else {
        for (std::size_t input = 0; input < count; ++input) to[input] = from[input];
      }
    }
  }

  /// Adds the products of `rows` rows to a block of `count` inputs.
  template <class Of>
  DIST_ALWAYS_INLINE void multiply(const T* dy, std::size_t rows, const T* packed, std::size_t count, const Sums& sums,
                                   Ahead& ahead) const {
    // Rows between prefetches, such that all tiles together prefetch once per row.
    const std::size_t piece = (count + Of::tile_inputs - 1) / Of::tile_inputs * ((Of::vectors + 1) / 2);
    for (std::size_t vector = 0; vector < Of::vectors; vector += 2) {
      for (std::size_t input = 0; input < count;) {
        input +=
            with_first_within<Of::tile_inputs, 4, 2, 1>(count - input, [&]<std::size_t Count>() DIST_INLINE_LAMBDA {
              if constexpr (Count <= block_inputs) {
                if (vector + 2 <= Of::vectors) {
                  if constexpr (Of::vectors >= 2)
                    multiply_inputs<Of, Count, 2>(dy, rows, packed, input, vector, sums, ahead, piece);
                } else {
                  if constexpr (Of::vectors % 2 == 1)
                    multiply_inputs<Of, Count, 1>(dy, rows, packed, input, vector, sums, ahead, piece);
                }
              }
            });
      }
    }
  }

  template <class Of, std::size_t Count, std::size_t Vectors>
  DIST_ALWAYS_INLINE void multiply_inputs(const T* dy, std::size_t rows, const T* packed, std::size_t input,
                                          std::size_t vector, const Sums& places, Ahead& ahead,
                                          std::size_t piece) const {
    constexpr std::size_t bytes = Of::bytes;
    // The last vector starts earlier if the units are not a multiple of its length.
    const std::size_t unit = vector * Of::lanes;
    const std::size_t last = std::min(unit + (Vectors - 1) * Of::lanes, Units - Of::lanes);
    const auto column = [&](std::size_t v) DIST_INLINE_LAMBDA { return v + 1 == Vectors ? last : unit; };
    const auto kept = [&](std::size_t i, std::size_t v) DIST_INLINE_LAMBDA {
      return Of::is_padded ? places.partial + (input + i) * Of::padded_units + unit + v * Of::lanes
                           : places.gradients + (input + i) * Units + unit + v * Of::lanes;
    };

    Vector<T, bytes> sums[Count][Vectors] = {};
    if (!places.start) {
      unrolled<Count * Vectors>([&]<std::size_t At>() DIST_INLINE_LAMBDA {
        load<bytes>(sums[At / Vectors][At % Vectors], kept(At / Vectors, At % Vectors));
      });
    }
    const T* factors = packed + input;
    const T* left = dy + column(0);
    const T* right = dy + column(Vectors - 1);
    const T* const end = packed + rows * block_inputs + input;
    while (factors != end) {
      call_for(ahead);
      const T* const until = factors + std::min(piece * block_inputs, static_cast<std::size_t>(end - factors));
      for (; factors != until; factors += block_inputs, left += Units, right += Units) {
        Vector<T, bytes> units[Vectors];
        load<bytes>(units[0], left);
        if constexpr (Vectors == 2) load<bytes>(units[1], right);
        unrolled<Count>([&]<std::size_t Input>() DIST_INLINE_LAMBDA {
          const T factor = factors[Input];
          unrolled<Vectors>([&]<std::size_t V>() DIST_INLINE_LAMBDA { sums[Input][V] += units[V] * factor; });
        });
      }
    }
    unrolled<Count * Vectors>([&]<std::size_t At>() DIST_INLINE_LAMBDA {
      constexpr std::size_t i = At / Vectors;
      constexpr std::size_t v = At % Vectors;
      store<bytes>(sums[i][v], places.end ? places.gradients + (input + i) * Units + column(v) : kept(i, v));
    });
  }
};

/// Computes a block: one function for equal units, to save code.
template <std::size_t Units, class T>
[[gnu::noinline]] void dense_kernel_gradient_block(const DenseKernelGradientBlock<Units, T>& block) {
  if constexpr (Units > 1)
    dist::detail::with_widest_vectors(block);
  else
    block.add_rows();
}

/// The gradient of a wide dense layer's kernel, for a block of inputs and a panel of units. Factors are packed, at most
/// `most_rows` rows at a time, so that the block, the columns of x and a strip of dy stay in the L1 cache. Elements are
/// summed in the order of batches and rows.
template <class T>
struct DenseKernelGradientPanel {
  static constexpr std::size_t block_inputs = 48;  ///< whole tiles of products
  static constexpr std::size_t most_units = 512 / sizeof(T);
  static constexpr std::size_t strip_units = 128 / sizeof(T);
  static constexpr std::size_t most_rows = 64;

  /// Returns panel `index` of a layer's `count` panels.
  [[nodiscard]] static constexpr IndexRange panel(std::size_t index, std::size_t count, std::size_t all_units) {
    return shard_of(all_units, index, count, strip_units);
  }
  [[nodiscard]] static constexpr std::size_t panels(std::size_t all_units) {
    return (all_units + most_units - 1) / most_units;
  }

  std::span<const DenseBatch<T>> batches;
  std::size_t all_inputs;  ///< of the layer
  std::size_t all_units;   ///< of the layer
  IndexRange inputs;
  IndexRange units;
  T* gradients;  ///< [block_inputs, most_units]

  void operator()() const {
    alignas(64) T x[most_rows * block_inputs];
    alignas(64) T dy[most_rows * most_units] = {};  // strip by strip
    bool adds = false;
    for (const DenseBatch<T>& batch : batches) {
      for (std::size_t first = 0; first < batch.rows; first += most_rows) {
        const std::size_t rows = std::min(most_rows, batch.rows - first);
        for (std::size_t row = 0; row < rows; ++row) {
          std::copy_n(batch.x + (first + row) * all_inputs + inputs.begin, inputs.size(), x + row * block_inputs);
          const T* const units_of_row = batch.dy + (first + row) * all_units;
          for_each_strip([&](IndexRange strip) {
            std::copy_n(units_of_row + strip.begin, strip.size(),
                        dy + (strip.begin - units.begin) * most_rows + row * strip_units);
          });
        }
        for_each_strip([&](IndexRange strip) {
          const std::size_t at = strip.begin - units.begin;
          dist::detail::with_widest_vectors(MatrixProduct<T>{.rows = inputs.size(),
                                                             .depth = rows,
                                                             .columns = strip.size(),
                                                             .a = x,
                                                             .a_row = 1,
                                                             .a_k = block_inputs,
                                                             .b = dy + at * most_rows,
                                                             .b_row = strip_units,
                                                             .c = gradients + at,
                                                             .c_row = most_units,
                                                             .adds = adds});
        });
        adds = true;
      }
    }
    if (!adds) std::fill_n(gradients, inputs.size() * most_units, T{0});
  }

 private:
  template <class Visit>
  void for_each_strip(const Visit& visit) const {
    for (std::size_t unit = units.begin; unit < units.end; unit += strip_units)
      visit(IndexRange{unit, std::min(unit + strip_units, units.end)});
  }
};

template <class T>
[[gnu::noinline]] void dense_kernel_gradient_panel(const DenseKernelGradientPanel<T>& panel) {
  panel();
}

/// Computes the gradient of a dense layer's kernel [Inputs, Units] over all batches, in order, for a range of inputs,
/// block by block. `consume(first, gradients)` gets the sums over rows of x[r, i] * dy[r, u] for the kernel's elements
/// from `first` on, in the L1 cache, valid during the call, where an optimizer applies them. It gets each element once:
/// in ascending order for few units, panel by panel for more. A lambda marked DIST_INLINE_LAMBDA is compiled for the
/// processor's vectors.
///
/// Bits do not depend on the range if it starts and ends at multiples of 16 inputs, or ends at the last input. Empty
/// batches give 0. If `consume` accesses `kernel`, pass it for prefetching.
template <std::size_t Inputs, std::size_t Units, class T, class Consume>
void dense_kernel_gradient(std::span<const DenseBatch<T>> batches, IndexRange inputs, Consume&& consume,
                           const T* kernel = nullptr) {
  using Block = DenseKernelGradientBlock<Units, T>;
  if constexpr (Units <= Block::most_units) {
    alignas(64) T gradients[Block::block_inputs * Units];
    for (std::size_t first = inputs.begin; first < inputs.end; first += Block::block_inputs) {
      const std::size_t end = std::min(first + Block::block_inputs, inputs.end);
      const IndexRange next{end, std::min(end + Block::block_inputs, inputs.end)};
      dense_kernel_gradient_block(Block{batches, Inputs, {first, end}, next, gradients, kernel});
      dist::detail::with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
        consume(first * Units, std::span<const T>(gradients, (end - first) * Units));
      });
    }
  } else {
    using Panel = DenseKernelGradientPanel<T>;
    alignas(64) T gradients[Panel::block_inputs * Panel::most_units];
    constexpr std::size_t panels = Panel::panels(Units);
    for (std::size_t index = 0; index < panels; ++index) {
      const IndexRange units = Panel::panel(index, panels, Units);
      for (std::size_t first = inputs.begin; first < inputs.end; first += Panel::block_inputs) {
        const IndexRange block{first, std::min(first + Panel::block_inputs, inputs.end)};
        dense_kernel_gradient_panel(Panel{batches, Inputs, Units, block, units, gradients});
        dist::detail::with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
          for (std::size_t input = 0; input < block.size(); ++input)
            consume((first + input) * Units + units.begin,
                    std::span<const T>(gradients + input * Panel::most_units, units.size()));
        });
      }
    }
  }
}

}  // namespace dist::nn::kernels
