#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>

namespace dist {

namespace detail {

/// Returns the shape with permuted axes. Throws like `transpose`.
[[nodiscard]] Shape transposed(const Shape& shape, std::span<const std::size_t> axes);
/// Returns the transposed elements, of `size` bytes each.
[[nodiscard]] AlignedBuffer<std::byte> transposed(const void* elements, std::size_t size, const Shape& shape,
                                                  std::span<const std::size_t> axes);

}  // namespace detail

/// Returns `from` with permuted axes, as numpy.transpose: axis i of the result is axis `axes[i]` of `from`. Throws
/// InvalidArgument unless `axes` names each axis of `from` once.
template <class T>
[[nodiscard]] Tensor<std::remove_const_t<T>> transpose(TensorView<T> from, std::span<const std::size_t> axes) {
  return {detail::transposed(from.shape(), axes), detail::transposed(from.data(), sizeof(T), from.shape(), axes)};
}
/// Returns `from` with permuted axes, as numpy.transpose: axis i of the result is axis `axes[i]` of `from`. Throws
/// InvalidArgument unless `axes` names each axis of `from` once.
template <class T>
[[nodiscard]] Tensor<T> transpose(const Tensor<T>& from, std::span<const std::size_t> axes) {
  return transpose(TensorView<const T>{from}, axes);
}

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/core/transpose.ipp>
#endif
