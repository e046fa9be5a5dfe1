#pragma once

#include <cstddef>
#include <type_traits>

#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/vectors.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/kernels/vector.hpp>

namespace dist::nn::kernels {

/// Implements dense_input_gradient for vectors of at most `WidestBytes`.
///
/// Vectors hold inputs, which are Units apart in the kernel. So a panel of two vectors of inputs is transposed into the
/// L1 cache, and used by all rows. Several rows keep their sums in registers, so that two loads of the panel serve all
/// of them. If inputs or units are not a multiple of a vector, the last vector starts earlier and recomputes some.
template <std::size_t Inputs, std::size_t Units, class Before, class T>
struct DenseInputGradient {
  const T* dy;
  const T* kernel;
  const T* x;
  T* dx;
  std::size_t rows;

  template <std::size_t WidestBytes>
  DIST_ALWAYS_INLINE void operator()() const {
    if (rows == 0) return;
    using Of = Tiling<vector_bytes_within<T, WidestBytes>(Inputs)>;
    alignas(64) T panel[Of::panel_units * Of::width];
    for (std::size_t input = 0; input < Inputs; input += Of::width) {
      const std::size_t first = input + Of::width <= Inputs ? input : Inputs - Of::width;
      for (std::size_t part = 0; part < Of::parts; ++part) {
        const IndexRange units = shard_of(Units, part, Of::parts, Of::lanes);
        pack<Of>(first, units, panel);
        multiply<Of>(first, units, panel);
      }
    }
  }

 private:
  /// Sizes for a vector length. The panel uses half of an L1 cache of 32 KiB.
  template <std::size_t VectorBytes>
  struct Tiling {
    static constexpr std::size_t bytes = VectorBytes;
    static constexpr std::size_t lanes = bytes / sizeof(T);
    static constexpr std::size_t vectors = Inputs >= 2 * lanes ? 2 : 1;
    static constexpr std::size_t width = vectors * lanes;
    static constexpr std::size_t most_units = std::size_t{16384} / (width * sizeof(T));
    static constexpr std::size_t parts = (Units + most_units - 1) / most_units;
    static constexpr std::size_t panel_units = parts == 1 ? Units : most_units + lanes;
    static constexpr std::size_t tile_rows = vector_registers<bytes> == 32 ? 8 : 6;
  };

  /// Sets panel[unit, input] = kernel[first + input, units.begin + unit].
  template <class Of>
  DIST_ALWAYS_INLINE void pack(std::size_t first, IndexRange units, T* panel) const {
    constexpr std::size_t lanes = Of::lanes;
    for (std::size_t input = 0; input < Of::width; input += lanes) {
      const T* const from = kernel + (first + input) * Units;
      if constexpr (Units >= lanes) {
        for (std::size_t unit = units.begin; unit < units.end; unit += lanes) {
          const std::size_t at = unit + lanes <= units.end ? unit : units.end - lanes;
          transpose_square<Of, lanes>(from + at, panel + (at - units.begin) * Of::width + input);
        }
      } else if ((first + input + lanes - 1) * Units + lanes <= Inputs * Units) {
        transpose_square<Of, Units>(from, panel + input);  // reads into the next rows
      } else {
        for (std::size_t lane = 0; lane < lanes; ++lane)
          for (std::size_t unit = 0; unit < Units; ++unit)
            panel[unit * Of::width + input + lane] = from[lane * Units + unit];
      }
    }
  }

  template <class Of, std::size_t Stored>
  DIST_ALWAYS_INLINE static void transpose_square(const T* from, T* to) {
    Vector<T, Of::bytes> square[Of::lanes];
    unrolled<Of::lanes>([&]<std::size_t Row>()
                            DIST_INLINE_LAMBDA { load<Of::bytes>(square[Row], from + Row * Units); });
    transpose<T, Of::bytes>(square);
    unrolled<Stored>([&]<std::size_t Row>()
                         DIST_INLINE_LAMBDA { store<Of::bytes>(square[Row], to + Row * Of::width); });
  }

  /// Adds one panel's products, for all rows.
  template <class Of>
  DIST_ALWAYS_INLINE void multiply(std::size_t first, IndexRange units, const T* panel) const {
    for (std::size_t row = 0; row < rows;) {
      row += with_first_within<Of::tile_rows, 4, 2, 1>(rows - row, [&]<std::size_t Rows>() DIST_INLINE_LAMBDA {
        multiply_rows<Of, Rows>(row, first, units, panel);
      });
    }
  }

  /// Prefetches, a little with every row: a share of the kernel's next panel, and x and dx of the row `Of::tile_rows`
  /// ahead, whose lines are far apart.
  template <class Of>
  DIST_ALWAYS_INLINE void prefetch(std::size_t row, std::size_t first, IndexRange units) const {
    constexpr std::size_t line = 64 / sizeof(T);
    const bool has_next = first + 2 * Of::width <= Inputs;
    if (has_next) {
      const T* const next = kernel + (first + Of::width) * Units + Of::width * units.begin;
      const IndexRange share = shard_of(Of::width * units.size(), row, rows, line);
      for (std::size_t i = share.begin; i < share.end; i += line) __builtin_prefetch(next + i, 0, 2);
    }
    const std::size_t far = row + std::min(Of::tile_rows, rows);
    if (far >= rows && !has_next) return;
    const std::size_t at = far < rows ? far * Inputs + first : (far - rows) * Inputs + first + Of::width;
    for (std::size_t i = 0; i < Of::width; i += line) {
      if constexpr (!std::is_same_v<Before, Linear>) __builtin_prefetch(x + at + i);
      __builtin_prefetch(dx + at + i, 1);
    }
  }

  template <class Of, std::size_t Rows>
  DIST_ALWAYS_INLINE void multiply_rows(std::size_t row, std::size_t first, IndexRange units, const T* panel) const {
    constexpr std::size_t bytes = Of::bytes;
    constexpr std::size_t vectors = Of::vectors;
    const T* masks = nullptr;
    if constexpr (!std::is_same_v<Before, Linear>) masks = x + row * Inputs + first;
    T* const to = dx + row * Inputs + first;
    const bool starts = Of::parts == 1 || units.begin == 0;
    const bool ends = Of::parts == 1 || units.end == Units;

    Vector<T, bytes> sums[Rows][vectors] = {};
    if (!starts) {
      unrolled<Rows * vectors>([&]<std::size_t At>() DIST_INLINE_LAMBDA {
        load<bytes>(sums[At / vectors][At % vectors], to + At / vectors * Inputs + At % vectors * Of::lanes);
      });
    }
    const T* factors = dy + row * Units + units.begin;
    for (std::size_t piece = 0; piece < Rows; ++piece) {
      prefetch<Of>(row + piece, first, units);
      const T* const until = panel + shard_of(units.size(), piece, Rows).size() * Of::width;
      for (; panel != until; ++factors, panel += Of::width) {
        Vector<T, bytes> inputs[vectors];
        unrolled<vectors>([&]<std::size_t V>() DIST_INLINE_LAMBDA { load<bytes>(inputs[V], panel + V * Of::lanes); });
        unrolled<Rows>([&]<std::size_t Row>() DIST_INLINE_LAMBDA {
          const T factor = factors[Row * Units];
          unrolled<vectors>([&]<std::size_t V>() DIST_INLINE_LAMBDA { sums[Row][V] += inputs[V] * factor; });
        });
      }
    }
    if (std::is_same_v<Before, Linear> || !ends) {
      unrolled<Rows * vectors>([&]<std::size_t At>() DIST_INLINE_LAMBDA {
        store<bytes>(sums[At / vectors][At % vectors], to + At / vectors * Inputs + At % vectors * Of::lanes);
      });
    } else {
      alignas(64) T gradients[Rows * Of::width];
      unrolled<Rows * vectors>([&]<std::size_t At>() DIST_INLINE_LAMBDA {
        store<bytes>(sums[At / vectors][At % vectors], gradients + At * Of::lanes);
      });
      for (std::size_t r = 0; r < Rows; ++r) {
        DIST_INDEPENDENT_LOOP
        for (std::size_t i = 0; i < Of::width; ++i)
          to[r * Inputs + i] = Before::gradient(masks[r * Inputs + i], gradients[r * Of::width + i]);
      }
    }
  }
};

/// Computes dx[r, i] = Before::gradient(x[r, i], sum over u of dy[r, u] * kernel[i, u]): the gradient of the input of
/// the previous activation `Before`, whose output is x [rows, Inputs]. dy [rows, Units], kernel [Inputs, Units]. With
/// nn::Linear x may be null. dx must not overlap other arguments; rows may be 0.
template <std::size_t Inputs, std::size_t Units, class Before, class T>
void dense_input_gradient(const T* dy, const T* kernel, const T* x, T* dx, std::size_t rows) {
  if constexpr (Units > 1) {
    dist::detail::with_widest_vectors(DenseInputGradient<Inputs, Units, Before, T>{dy, kernel, x, dx, rows});
  } else {  // each element is one product
    for (std::size_t at = 0; at < rows * Inputs; at += Inputs) {
      const T factor = *dy++;
      DIST_INDEPENDENT_LOOP
      for (std::size_t i = 0; i < Inputs; ++i) {
        const T gradient = T{0} + factor * kernel[i];
        dx[at + i] = std::is_same_v<Before, Linear> ? gradient : Before::gradient(x[at + i], gradient);
      }
    }
  }
}

}  // namespace dist::nn::kernels
