#pragma once

#include <cstddef>

#include <dist/core/text.hpp>
#include <dist/hlo/traced.hpp>

namespace dist::hlo {

/// An array of a program whose shape is known when the program is traced, not when C++ compiles, such as a part of the
/// user's batch. `x.as<hlo::batch, 10>()` is the traced array.
template <class T>
class Dynamic {
 public:
  using Element = T;

  /// A value with elements of this type.
  explicit Dynamic(Value value) noexcept : value_(value) {}
  template <std::size_t... Extents>
  Dynamic(Traced<T, Extents...> array) noexcept : value_(array.value()) {}

  [[nodiscard]] Value value() const noexcept { return value_; }
  /// Throws InvalidArgument where another program is traced than that of the array.
  [[nodiscard]] Shape shape() const { return Trace::current().type(value_).shape; }

  /// Throws ShapeMismatch unless it has these extents, of which hlo::batch is the number of rows.
  template <std::size_t... Extents>
  [[nodiscard]] Traced<T, Extents...> as() const {
    require_shape(Traced<T, Extents...>::type().shape);
    return Traced<T, Extents...>{value_};
  }

 private:
  void require_shape(const Shape& wanted) const {
    if (shape() == wanted) return;
    throw ShapeMismatch("An array of a program has another shape", text("it is ", shape(), ", and not ", wanted),
                        "Give the program arrays of the shape for which its step is written");
  }

  Value value_;
};

}  // namespace dist::hlo
