/// Rows named by their numbers, in whatever a program has them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include <dist/context/operand.hpp>
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

/// What names rows of a variable: a tensor of whole numbers of any shape, or a contiguous range of them.
template <class Ids>
concept RowIds = detail::IdTensor<Ids> || detail::IdRange<Ids>;

namespace detail {

/// Ids as numbers of 64 bits, and the shape that they were given in. Refers to what it was made of.
class IdList {
 public:
  template <class Ids>
  explicit IdList(const Ids& ids) {
    require_host_access<MemorySpaceOf<Ids>>();
    static_assert(satisfied < RowIds<Ids> || is_on_device < Ids >>,
                  "rows are named by whole numbers: a tensor of them, or a contiguous range, such as a std::vector");
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
  /// Of the rows themselves, where a variable has the shape `variable`: that of the ids, and behind it that of a row. Throws
  /// InvalidArgument for more axes than a shape has.
  [[nodiscard]] Shape shape_of_rows(const Shape& variable) const;

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

#ifndef DIST_COMPILED
#include <dist/variable/id_list.ipp>
#endif
