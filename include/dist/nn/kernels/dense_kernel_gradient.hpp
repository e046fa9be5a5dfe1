#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/vectors.hpp>
#include <dist/nn/kernels/dense_bias_gradient.hpp>
#include <dist/nn/kernels/vector.hpp>

namespace dist::nn::kernels {

/// The body of dense_kernel_gradient_block, for vectors of `Bytes` bytes.
///
/// Vectors hold units. The block's columns of x, a cache line in each row, are copied to where they lie together, and
/// sums of several inputs and two vectors of units are kept in registers over all rows. Every element is summed in the
/// order of the batches and their rows. Where the units are no multiple of a vector, the last vector starts earlier and
/// computes some of them again.
template <std::size_t Inputs, std::size_t Units, class T>
struct DenseKernelGradientBlock {
  static_assert(Units * sizeof(T) <= std::size_t{1} << 21,
                "a dense layer with so many units is not computed: its gradient's block takes too much of the stack");
  /// Blocks take up to 32 KiB.
  static constexpr std::size_t block_inputs =
      std::bit_floor(std::clamp(std::size_t{32768} / (Units * sizeof(T)), std::size_t{1}, std::size_t{16}));

  std::span<const DenseBatch<T>> batches;
  IndexRange inputs;
  IndexRange next;  ///< the inputs of the next block
  T* gradients;
  const T* kernel;  ///< of which the elements of the next block are fetched ahead, if it is not null

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
        const T* const x = batch.x + row * Inputs + inputs.begin;
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
  /// Sizes that follow from a vector's. A block is a cache line of every row of x, less where that would be more than
  /// 32 KiB of gradients. At most 128 rows are copied at a time: 8 KiB of floats.
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

  /// What the next block will read, called for while this one is computed. Of x it is the block's last column, which
  /// where blocks straddle cache lines lies in the line that this block does not read.
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
      if (--ahead.rows > 0) ahead.x += Inputs;
    }
    const std::size_t stop = std::min(ahead.element + ahead.lines * Ahead::line, ahead.end);
    for (; ahead.element < stop; ahead.element += Ahead::line) __builtin_prefetch(kernel + ahead.element, 1, 2);
  }

  /// Where sums over some of the rows are kept until the next ones are added: in the block itself, or where vectors
  /// overlap in it, apart, each vector in a place of its own.
  struct Sums {
    bool start;
    bool end;
    T* gradients;
    T* partial;
  };

  /// packed[row, input] = x[row, first + input].
  template <class Of>
  DIST_ALWAYS_INLINE static void pack(const T* x, std::size_t rows, std::size_t count, T* packed) {
    for (std::size_t row = 0; row < rows; ++row) {
      const T* const from = x + row * Inputs;
      T* const to = packed + row * block_inputs;
      if (count == block_inputs) {
        std::copy_n(from, block_inputs, to);
      } else {
        for (std::size_t input = 0; input < count; ++input) to[input] = from[input];
      }
    }
  }

  /// What `rows` rows add to the sums of a block of `count` inputs.
  template <class Of>
  DIST_ALWAYS_INLINE void multiply(const T* dy, std::size_t rows, const T* packed, std::size_t count, const Sums& sums,
                                   Ahead& ahead) const {
    // Rows after which to call for more, such that the tiles call as often as there are rows.
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
    // Where the last vector lies: earlier than it would, where the units are no multiple of it.
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

/// A function of its own for each layer and type, however many optimizers there are.
template <std::size_t Inputs, std::size_t Units, class T>
[[gnu::noinline]] void dense_kernel_gradient_block(const DenseKernelGradientBlock<Inputs, Units, T>& block) {
  dist::detail::with_widest_vectors(block);
}

/// The gradient of a dense layer's kernel [Inputs, Units] over all batches, for the inputs of a range, in order and
/// block by block: `consume(first, gradients)` gets the sums over rows of x[r, i] * dy[r, u] for the elements first,
/// first + 1, … of the kernel, which lie in the first cache level and are gone after the call. There the optimizer
/// applies them; a lambda marked DIST_INLINE_LAMBDA is compiled for the processor's vectors. In all ranges that start
/// at a multiple of 16 inputs, and end at one or at the last input, an element has the same bits; with no rows they are
/// zeros. Where `consume` touches elements of `kernel`, those of the next block are fetched while one is computed.
template <std::size_t Inputs, std::size_t Units, class T, class Consume>
void dense_kernel_gradient(std::span<const DenseBatch<T>> batches, IndexRange inputs, Consume&& consume,
                           const T* kernel = nullptr) {
  using Block = DenseKernelGradientBlock<Inputs, Units, T>;
  alignas(64) T gradients[Block::block_inputs * Units];
  for (std::size_t first = inputs.begin; first < inputs.end; first += Block::block_inputs) {
    const std::size_t end = std::min(first + Block::block_inputs, inputs.end);
    const IndexRange next{end, std::min(end + Block::block_inputs, inputs.end)};
    dense_kernel_gradient_block(Block{batches, {first, end}, next, gradients, kernel});
    dist::detail::with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA {
      consume(first * Units, std::span<const T>(gradients, (end - first) * Units));
    });
  }
}

}  // namespace dist::nn::kernels
