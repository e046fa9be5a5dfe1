#pragma once

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>

namespace dist {

template <class T>
class Tensor;

/// A typed, non-owning view of a dense, row-major array in `Where`: a pointer and a shape. The host accesses elements
/// in host-accessible memory only.
template <class T, MemorySpace Where = HostMemory>
class TensorView {
 public:
  /// The type of the elements, const for a view that does not change them.
  using Element = T;
  /// True if the host can access the elements.
  static constexpr bool is_host_accessible = Where::host_accessible;

  TensorView() : shape_{0} {}
  /// `data` must point to `shape.elements()` elements that outlive the view.
  TensorView(T* data, Shape shape) : data_(data), shape_(shape) {}
  /// Throws ShapeMismatch unless there are `shape.elements()` elements.
  TensorView(SpanIn<T, Where> elements, Shape shape) : data_(elements.data()), shape_(shape) {
    if (elements.size() != shape.elements()) detail::refuse_elements(elements.size(), shape);
  }
  /// A view of mutable elements converts to a view of constant elements.
  template <class Mutable>
    requires(std::is_const_v<T>&& std::is_same_v<const Mutable, T>)
  TensorView(TensorView<Mutable, Where> other) : data_(other.data()), shape_(other.shape()) {}

  /// A tensor converts to a view of itself.
  TensorView(Tensor<T>& tensor) requires Where::host_accessible : data_(tensor.data()), shape_(tensor.shape()) {}
  /// A tensor converts to a view of itself.
  TensorView(const Tensor<std::remove_const_t<T>>& tensor) requires(std::is_const_v<T>&& Where::host_accessible)
      : data_(tensor.data()), shape_(tensor.shape()) {}

  /// The address of the first element, on the device if the elements are there.
  [[nodiscard]] DIST_HD T* data() const noexcept { return data_; }
  /// The extents.
  [[nodiscard]] DIST_HD const Shape& shape() const noexcept { return shape_; }
  /// The number of elements.
  [[nodiscard]] DIST_HD std::size_t size() const noexcept { return shape_.elements(); }
  /// The elements in row-major order.
  [[nodiscard]] SpanIn<T, Where> elements() const noexcept { return {data_, size()}; }

  /// Returns a view that function bodies on the elements' device can index.
  [[nodiscard]] TensorView<T, BodyMemory> in_body() const noexcept { return {data_, shape_}; }

  /// The outermost extent: the batch size of a batch.
  [[nodiscard]] DIST_HD std::size_t rows() const noexcept { return shape_.rank() == 0 ? 1 : shape_[0]; }
  /// Returns a view of `count` rows from row `first` on.
  [[nodiscard]] TensorView rows(std::size_t first, std::size_t count) const {
    DIST_EXPECT(shape_.rank() > 0 && first + count <= shape_[0]);
    return {data_ + first * row_size(), shape_.with_rows(count)};
  }
  /// Returns row `index`, with one axis less.
  [[nodiscard]] TensorView row(std::size_t index) const {
    DIST_EXPECT_INNER(shape_.rank() > 0 && index < shape_[0]);
    return {data_ + index * row_size(), shape_.row()};
  }
  /// The number of elements of a row: 1 if there is at most one axis.
  [[nodiscard]] DIST_HD std::size_t row_size() const noexcept {
    std::size_t product = 1;
    for (std::size_t axis = 1; axis < shape_.rank(); ++axis) product *= shape_[axis];
    return product;
  }

  /// Takes one index per axis.
  template <class... Indices>
    requires(std::is_convertible_v<Indices, std::size_t>&&...)
  [[nodiscard]] DIST_HD T& operator()(Indices... indices) const {
    detail::require_host_access<Where>();
    DIST_EXPECT_INNER(sizeof...(indices) == shape_.rank());
    std::size_t offset = 0;
    std::size_t axis = 0;
    ((offset = offset * shape_[axis++] + static_cast<std::size_t>(indices)), ...);
    DIST_EXPECT_INNER(offset < size());
    return data_[offset];
  }
  /// Element `index` in row-major order.
  [[nodiscard]] DIST_HD T& operator[](std::size_t index) const {
    detail::require_host_access<Where>();
    DIST_EXPECT_INNER(index < size());
    return data_[index];
  }

 private:
  T* data_ = nullptr;
  Shape shape_;
};

namespace detail {
template <class T, class Where>
inline constexpr bool is_on_device<TensorView<T, Where>> = !Where::host_accessible;
}  // namespace detail

/// An owning, dense, row-major array, aligned to a cache line. `resize` reuses the memory if it is large enough.
template <class T>
class Tensor {
 public:
  /// The type of the elements.
  using Element = T;

  Tensor() : shape_{0} {}
  /// Allocates elements of value 0.
  explicit Tensor(Shape shape) : shape_(shape), buffer_(shape.elements()) {}
  /// Takes ownership of `bytes`, which hold `shape.elements()` elements.
  Tensor(Shape shape, AlignedBuffer<std::byte> bytes) : shape_(shape), buffer_(std::move(bytes)) {
    DIST_EXPECT(buffer_.size() >= shape_.elements());
  }
  /// Copies the elements of a view.
  explicit Tensor(TensorView<const T> view) : Tensor(view.shape()) { copy_elements(view.data()); }
  /// Does not compile: the host cannot access the elements. Copy them by a queue.
  template <class U, MemorySpace Where>
    requires(!Where::host_accessible)
  explicit Tensor(TensorView<U, Where> view) : Tensor(view.shape()) { detail::require_host_access<Where>(); }
  /// The elements in row-major order: `Tensor<float>{{2, 2}, {1, 2, 3, 4}}`. Throws ShapeMismatch unless there are
  /// `shape.elements()` of them.
  Tensor(Shape shape, std::span<const T> elements) : Tensor(TensorView<const T>{elements, shape}) {}
  /// The elements in row-major order. Throws ShapeMismatch unless there are `shape.elements()` of them.
  Tensor(Shape shape, std::initializer_list<T> elements)
      : Tensor(shape, std::span<const T>{elements.begin(), elements.size()}) {}
  /// A moved-from tensor has unspecified elements or none, and stays usable.
  Tensor(Tensor&& other) noexcept : shape_(std::exchange(other.shape_, Shape{0})), buffer_(std::move(other.buffer_)) {}
  /// Exchanges both tensors.
  Tensor& operator=(Tensor&& other) noexcept {
    std::swap(shape_, other.shape_);
    buffer_ = std::move(other.buffer_);  // a swap
    return *this;
  }
  /// Copies the elements.
  Tensor(const Tensor& other) : Tensor(other.shape_) { copy_elements(other.data()); }
  /// Copies the elements, and reuses the memory if it is large enough.
  Tensor& operator=(const Tensor& other) {
    if (this != &other) {
      resize(other.shape_);
      copy_elements(other.data());
    }
    return *this;
  }
  ~Tensor() = default;

  /// Changes the shape. If the number of elements does not grow, the remaining elements keep their values; otherwise
  /// all elements are unspecified.
  void resize(Shape shape) {
    if (shape.elements() > buffer_.size()) buffer_ = AlignedBuffer<T>(shape.elements());
    shape_ = shape;  // last, as the allocation may throw
  }

  /// The address of the first element, valid until the next `resize` or assignment.
  [[nodiscard]] T* data() noexcept { return buffer_.data(); }
  /// The address of the first element, valid until the next `resize` or assignment.
  [[nodiscard]] const T* data() const noexcept { return buffer_.data(); }
  /// The extents.
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  /// The number of elements.
  [[nodiscard]] std::size_t size() const noexcept { return shape_.elements(); }
  /// The elements in row-major order.
  [[nodiscard]] std::span<T> elements() noexcept { return {data(), size()}; }
  /// The elements in row-major order.
  [[nodiscard]] std::span<const T> elements() const noexcept { return {data(), size()}; }
  /// The outermost extent, the batch size of a batch; 1 for a scalar.
  [[nodiscard]] std::size_t rows() const noexcept { return shape_.rank() == 0 ? 1 : shape_[0]; }

  /// Returns the memory of the elements, which may be larger than the elements, and empties the tensor.
  [[nodiscard]] AlignedBuffer<std::byte> take_bytes() && {
    shape_ = Shape{0};
    return AlignedBuffer<std::byte>(std::move(buffer_));
  }

  /// A view of the elements, valid until the next `resize` or assignment.
  [[nodiscard]] TensorView<T> view() noexcept { return {data(), shape_}; }
  /// A view of the elements, valid until the next `resize` or assignment.
  [[nodiscard]] TensorView<const T> view() const noexcept { return {data(), shape_}; }
  /// Element `index` in row-major order.
  [[nodiscard]] T& operator[](std::size_t index) { return view()[index]; }
  /// Element `index` in row-major order.
  [[nodiscard]] const T& operator[](std::size_t index) const { return view()[index]; }
  /// Takes one index per axis.
  template <class... Indices>
    requires(std::is_convertible_v<Indices, std::size_t>&&...)
  [[nodiscard]] T& operator()(Indices... indices) { return view()(indices...); }
  /// Takes one index per axis.
  template <class... Indices>
    requires(std::is_convertible_v<Indices, std::size_t>&&...)
  [[nodiscard]] const T& operator()(Indices... indices) const { return view()(indices...); }

  [[nodiscard]] friend bool operator==(const Tensor& a, const Tensor& b) noexcept {
    if (a.shape_ != b.shape_) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!(a.data()[i] == b.data()[i])) return false;
    return true;
  }

 private:
  void copy_elements(const T* from) {
    if (size() > 0) std::memcpy(data(), from, size() * sizeof(T));
  }

  Shape shape_;
  AlignedBuffer<T> buffer_;
};

/// Formats a tensor as "[[1, 2], [3, 4]]", a scalar as its number.
template <class T, MemorySpace Where>
[[nodiscard]] std::string to_string(TensorView<T, Where> tensor) {
  detail::require_host_access<Where>();
  if (tensor.shape().rank() == 0) return concat(*tensor.data());
  std::string joined = "[";
  for (std::size_t row = 0; row < tensor.rows(); ++row)
    joined += concat(row == 0 ? "" : ", ", to_string(tensor.row(row)));
  return joined + "]";
}
/// Formats a tensor as "[[1, 2], [3, 4]]", a scalar as its number.
template <class T>
[[nodiscard]] std::string to_string(const Tensor<T>& tensor) {
  return to_string(tensor.view());
}

}  // namespace dist
