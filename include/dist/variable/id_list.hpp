/// Row ids in tensors and ranges of any integer type.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include <dist/context/operand.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>

namespace dist {

namespace detail {
template <class T>
concept WholeNumber = std::integral<T> && !std::same_as<T, bool>;
template <class Ids>
concept IdTensor = HasShape<Ids> && HasData<const Ids> && WholeNumber<ElementIn<const Ids>>;
template <class Ids>
concept IdRange = !HasShape<Ids> && NumberRange<Ids> && WholeNumber<ElementIn<Ids>>;
}  // namespace detail

/// Row ids: a tensor of integers of any shape, or a contiguous range of them.
template <class Ids>
concept RowIds = detail::IdTensor<Ids> || detail::IdRange<Ids>;

namespace detail {

/// Ids as 64-bit integers, and their original shape. May refer to its source.
class IdList {
 public:
  template <class Ids>
  explicit IdList(const Ids& ids) {
    require_host_access<MemorySpaceOf<Ids>>();
    static_assert(satisfied < RowIds<Ids> || is_on_device < Ids >>,
                  "row indices must be integers: a tensor of them, or a contiguous range, such as a std::vector");
    if constexpr (IdTensor<Ids>) {
      shape_ = ids.shape();
      take(std::span{ids.data(), shape_.elements()});
    } else if constexpr (IdRange<Ids>) {
      shape_ = shape_of_range(ids);
      take(numbers_in(ids));
    }
  }
  IdList(const IdList&) = delete;
  IdList& operator=(const IdList&) = delete;

  [[nodiscard]] std::span<const std::int64_t> ids() const noexcept { return ids_; }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  /// Returns the shape of these rows of a variable with shape `variable`: the shape of the ids followed by the shape of
  /// a row. Throws InvalidArgument if a shape cannot have that many axes.
  [[nodiscard]] Shape shape_of_rows(const Shape& variable) const {
    std::size_t extents[2 * Shape::max_rank] = {};
    const std::size_t axes = shape_.rank();
    std::copy_n(shape_.extents().data(), axes, extents);
    for (std::size_t axis = 1; axis < variable.rank(); ++axis) extents[axes + axis - 1] = variable[axis];
    return Shape(std::span<const std::size_t>{extents, axes + variable.rank() - 1});
  }

 private:
  template <class T>
  void take(std::span<const T> ids) {
    if constexpr (std::same_as<T, std::int64_t>) {
      ids_ = ids;
    } else {
      converted_.resize(ids.size());
      for (std::size_t i = 0; i < ids.size(); ++i) converted_[i] = static_cast<std::int64_t>(ids[i]);
      ids_ = converted_;
    }
  }
  template <class T>
    requires(!std::is_const_v<T>)
  void take(std::span<T> ids) { take(std::span<const T>{ids}); }

  std::vector<std::int64_t> converted_;
  std::span<const std::int64_t> ids_;
  Shape shape_;
};

}  // namespace detail

}  // namespace dist
