#pragma once

#include <array>
#include <cstring>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/core/transpose.hpp>

namespace dist::detail {

DIST_INLINE Shape transposed(const Shape& shape, std::span<const std::size_t> axes) {
  const std::size_t rank = shape.rank();
  std::array<std::size_t, Shape::max_rank> extents{};
  std::array<bool, Shape::max_rank> seen{};
  bool is_order = axes.size() == rank;
  for (std::size_t i = 0; is_order && i < rank; ++i) {
    is_order = axes[i] < rank && !std::exchange(seen[axes[i]], true);
    if (is_order) extents[i] = shape[axes[i]];
  }
  if (!is_order)
    throw InvalidArgument("A tensor cannot be transposed in this order of axes",
                          concat("its shape is ", to_string(shape), ", the order of axes is {", joined(axes), "}"),
                          "Name each axis once, counted from 0, such as {1, 0} for a matrix");
  return Shape{std::span<const std::size_t>{extents.data(), rank}};
}

DIST_INLINE AlignedBuffer<std::byte> transposed(const void* elements, std::size_t size, const Shape& shape,
                                                std::span<const std::size_t> axes) {
  const Shape to = transposed(shape, axes);
  const std::size_t rank = to.rank();
  std::array<std::size_t, Shape::max_rank> strides{};
  for (std::size_t axis = rank, stride = size; axis-- > 0; stride *= shape[axis]) strides[axis] = stride;
  AlignedBuffer<std::byte> result(to.elements() * size);
  const auto copy = [&]<std::size_t constant>() {
    const std::byte* from = static_cast<const std::byte*>(elements);
    std::array<std::size_t, Shape::max_rank> place{};
    for (std::size_t at = 0; at < result.size(); at += size) {
      std::memcpy(result.data() + at, from, constant == 0 ? size : constant);
      for (std::size_t axis = rank; axis-- > 0;) {
        const std::size_t step = strides[axes[axis]];
        from += step;
        if (++place[axis] < to[axis]) break;
        from -= step * to[axis];
        place[axis] = 0;
      }
    }
  };
  switch (size) {
    case 1:
      copy.template operator()<1>();
      break;
    case 2:
      copy.template operator()<2>();
      break;
    case 4:
      copy.template operator()<4>();
      break;
    case 8:
      copy.template operator()<8>();
      break;
    default:
      copy.template operator()<0>();
  }
  return result;
}

}  // namespace dist::detail
