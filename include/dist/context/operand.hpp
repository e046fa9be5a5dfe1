/// Operands of collectives other than tensors: contiguous ranges of any library, and values of numbers of one type.
/// Both are detected by their members, without their headers.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/context/structure.hpp>
#include <dist/core/error.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/type_traits.hpp>

// Reasons to use the results of calls. Named ranges are changed in place, so these calls then return nothing.
/// The compiler's warning for an unused result of `all_reduce`.
#define DIST_ALL_REDUCE_RETURNS \
  "all_reduce of a value returns the reduction and leaves the operand unchanged: x = replica.all_reduce(op, x)"
/// The compiler's warning for an unused result of `broadcast`.
#define DIST_BROADCAST_RETURNS \
  "broadcast of a value returns the root's value and leaves the operand unchanged: x = replica.broadcast(x, root)"
/// The compiler's warning for an unused result of `all_gather`.
#define DIST_ALL_GATHER_RETURNS "all_gather returns the values of all replicas: all = replica.all_gather(mine, axis)"
/// The compiler's warning for an unused result of `reduce`.
#define DIST_REDUCE_RETURNS \
  "reduce returns the reduction and leaves the values unchanged: x = strategy.reduce(op, values)"
/// The compiler's warning for an unused result of `gather`.
#define DIST_GATHER_RETURNS "gather returns the values of all replicas: all = strategy.gather(values, axis)"

namespace dist {

namespace detail {

/// A complex number: std::complex, or another type stored as its real and imaginary part.
template <class T>
concept ComplexNumber = std::is_trivially_copyable_v<T> && requires(const T& number) {
  requires Floating<typename T::value_type>;
  requires sizeof(T) == 2 * sizeof(typename T::value_type);
  number.real();
  number.imag();
};

/// The numbers in values of type `T`, consecutive in memory: `count` of `Type`; 0 for other types.
template <class T>
struct ValuesOf {
  using Type = void;
  static constexpr std::size_t count = 0;
  static constexpr bool is_complex = false;
};
template <Reducible T>
struct ValuesOf<T> {
  using Type = T;
  static constexpr std::size_t count = 1;
  static constexpr bool is_complex = false;
};
template <class T>
  requires(!Reducible<T> && ComplexNumber<T>)
struct ValuesOf<T> {
  using Type = typename T::value_type;
  static constexpr std::size_t count = 2;
  static constexpr bool is_complex = true;
};
/// `members` values of type `Member` without padding, such as a point's coordinates.
template <class T, class Member, std::size_t members>
struct NumbersOfMembers : ValuesOf<Member> {
  static constexpr std::size_t count = sizeof(T) == members * sizeof(Member) ? members * ValuesOf<Member>::count : 0;
};
template <class T, class Members>
struct NumbersOfAggregate : ValuesOf<void> {};
template <class T, class First, class... Others>
  requires(std::same_as<First&, Others&>&&...)
struct NumbersOfAggregate<T, std::tuple<First, Others...>>
    : NumbersOfMembers<T, std::remove_reference_t<First>, 1 + sizeof...(Others)> {};
template <class T, std::size_t size>
  requires(size > 0)
struct ValuesOf<std::array<T, size>> : NumbersOfMembers<std::array<T, size>, T, size> {};
template <class T>
  requires(!Reducible<T> && !ComplexNumber<T> && std::is_trivially_copyable_v<T> && Aggregate<T>)
struct ValuesOf<T> : NumbersOfAggregate<T, decltype(members_of(std::declval<T&>()))> {};

template <class R>
inline constexpr bool owns_tensor = is_specialization<R, Tensor>;

/// Members of std::mdspan, Eigen's matrices, and text views that describe where elements are, and whether they are
/// consecutive.
template <class R>
concept HasDataHandle = requires(R& range) {
  *range.data_handle();
};
template <class R>
concept HasIsExhaustive = requires(R& range) {
  range.is_exhaustive();
};
template <class R>
concept HasInnerAndOuterStride = requires(R& range) {
  range.innerStride() + range.outerStride() + range.innerSize() + range.outerSize();
};
template <class R>
concept HasRowsAndColumns = requires(R& range) {
  R::IsRowMajor + range.rows() + range.cols();
};
template <class R>
concept HasExtents = requires(R& range) {
  range.rank() + range.extent(0) + range.stride(0);
};
template <class R>
concept HasCharacters = requires {
  typename R::traits_type;
};

/// Returns a range's first element, from std::data (containers, views, C arrays) or data_handle (mdspan).
template <class R>
[[nodiscard]] constexpr auto* first_element(R& range) {
  if constexpr (HasDataHandle<R>)
    return range.data_handle();
  else
    return std::data(range);
}
template <class R>
concept HasData = MemorySpaceOf<R>::host_accessible && requires(R& range) {
  *std::data(range);
};
template <class R>
concept HasElements = (HasData<R> || HasDataHandle<R>)&&requires(R& range) {
  std::size(range);
};
template <HasElements R>
using ElementIn = std::remove_cvref_t<decltype(*first_element(std::declval<R&>()))>;

}  // namespace detail

/// A contiguous range of numbers, or of values that consist of numbers of one type: std::vector, std::span, C arrays,
/// Eigen's matrices and maps, mdspan, TensorView. Excludes values (Tensor, std::array), text, and device memory.
template <class R>
concept NumberRange = !Structure<R> && !detail::owns_tensor<std::remove_cv_t<R>> && detail::HasElements<R> &&
                      !detail::HasCharacters<R> && (detail::ValuesOf<detail::ElementIn<R>>::count > 0);

namespace detail {

/// A value that consists of numbers of one type: a complex number, a std::array of numbers, or a plain struct of these.
template <class T>
concept NumbersValue = !Reducible<T> && !NumberRange<T> && (ValuesOf<T>::count > 0);

/// Throws InvalidArgument if elements are not consecutive: a block of a matrix, an mdspan of every second element.
template <class R>
constexpr void require_no_gaps(const R& range) {
  bool dense = true;
  if constexpr (HasIsExhaustive<const R>)
    dense = range.is_exhaustive();
  else if constexpr (HasInnerAndOuterStride<const R>)
    dense = (range.innerSize() <= 1 || range.innerStride() == 1) &&
            (range.outerSize() <= 1 || range.outerStride() == range.innerSize());
  if (!dense)
    throw InvalidArgument("The elements of a view are not contiguous",
                          concat("there are gaps between its ", std::size(range), " elements"),
                          "Copy them to an array first");
}

template <class T, class E>
[[nodiscard]] auto* numbers_at(E* first) noexcept {
  using Number = typename ValuesOf<T>::Type;
  if constexpr (std::same_as<Number, T>)
    return first;
  else
    return reinterpret_cast<std::conditional_t<std::is_const_v<E>, const Number, Number>*>(first);
}

/// Returns a span of the numbers of a range or value, in place.
template <class V>
  requires NumberRange<V> || NumbersValue<std::remove_const_t<V>>
[[nodiscard]] auto numbers_in(V& value) {
  if constexpr (NumberRange<V>) {
    using Each = ElementIn<V>;
    require_no_gaps(value);
    return std::span{numbers_at<Each>(first_element(value)),
                     static_cast<std::size_t>(std::size(value)) * ValuesOf<Each>::count};
  } else {
    using Plain = std::remove_const_t<V>;
    return std::span{numbers_at<Plain>(&value), ValuesOf<Plain>::count};
  }
}

/// The numbers in a value, or in an element of a range.
template <class V>
struct OperandNumbers : ValuesOf<V> {};
template <NumberRange V>
struct OperandNumbers<V> : ValuesOf<ElementIn<V>> {};

/// Views the numbers as a tensor: a range has one axis, or two if its elements consist of several numbers.
template <class V>
[[nodiscard]] auto view_of_numbers(const V& value) {
  using Numbers = OperandNumbers<V>;
  const auto numbers = numbers_in(value);
  constexpr std::size_t row = NumberRange<V> ? Numbers::count : 1;
  const Shape shape = row == 1 ? Shape{numbers.size()} : Shape{numbers.size() / row, row};
  return TensorView<const typename Numbers::Type>{numbers, shape};
}

/// Returns the extents of a range: of a matrix, an mdspan, or one axis for a size. Throws InvalidArgument for several
/// axes that are not row-major.
template <NumberRange R>
[[nodiscard]] Shape shape_of_range(const R& range) {
  bool row_by_row = true;
  std::size_t extents[Shape::max_rank] = {static_cast<std::size_t>(std::size(range))};
  std::size_t rank = 1;
  if constexpr (HasRowsAndColumns<const R>) {  // Eigen
    if (range.rows() > 1 && range.cols() > 1) {
      extents[0] = static_cast<std::size_t>(range.rows());
      extents[rank++] = static_cast<std::size_t>(range.cols());
      row_by_row = R::IsRowMajor;
    }
  } else if constexpr (HasExtents<const R>) {  // mdspan
    static_assert(R::rank() <= Shape::max_rank, "a range has more axes than dist::Shape supports");
    rank = R::rank();
    std::size_t stride = 1;
    for (std::size_t axis = rank; axis-- > 0;) {
      extents[axis] = static_cast<std::size_t>(range.extent(axis));
      row_by_row = row_by_row && static_cast<std::size_t>(range.stride(axis)) == stride;
      stride *= extents[axis];
    }
  }
  if (!row_by_row)
    throw InvalidArgument("The elements of a matrix are not stored row by row",
                          "a tensor stores its elements row by row",
                          "Give a row-major matrix, or a function that fills the tensor");
  return Shape(std::span<const std::size_t>{extents, rank});
}

template <class V>
inline constexpr bool is_tensor_list = false;
template <class T>
inline constexpr bool is_tensor_list<std::span<const std::span<T>>> = true;

template <class V>
concept HasShape = requires(const V& value) {
  value.shape();
};
template <class V>
concept HasDenseShape = requires(const V& slices) {
  slices.dense_shape();
};

/// True for operands that collectives support; others get an error message.
template <class V>
concept CollectiveOperand = MemorySpaceOf<V>::host_accessible &&
    (Reducible<V> || NumberRange<V> || NumbersValue<V> || Structure<V> || Aggregate<V> || is_tensor_list<V> ||
     HasShape<V> || HasDenseShape<V>);

/// True for plain structs, pairs and tuples, and values of these. Ranges of structs of numbers count as lists of
/// numbers, which combine element by element.
template <class T>
[[nodiscard]] constexpr bool holds_records() {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (is_per_replica<Plain>)
    return holds_records<typename Plain::Value>();
  else if constexpr (Reducible<Plain> || ComplexNumber<Plain> || NumberRange<Plain>)
    return false;
  else if constexpr (is_optional<Plain> || is_array<Plain>)
    return holds_records<typename Plain::value_type>();
  else
    return Structure<Plain> || Aggregate<Plain>;
}

template <class Op>
concept NamesItself = requires {
  Op::name;
};

/// Checks that a reduction combines records member by member, with one error message.
template <class Op, class V>
[[nodiscard]] constexpr bool require_memberwise_op() {
  constexpr bool takes_extremes = std::same_as<Op, Min> || std::same_as<Op, Max>;
  constexpr bool is_memberwise = std::same_as<Op, Sum> || std::same_as<Op, Mean> || std::same_as<Op, Prod> ||
                                 std::same_as<Op, BitAnd> || std::same_as<Op, BitOr> || std::same_as<Op, BitXor>;
  constexpr bool is_own = !takes_extremes && !is_memberwise && NamesItself<Op>;
  constexpr bool has_records = (takes_extremes || is_own) && holds_records<V>();
  static_assert(!(has_records && takes_extremes),
                "min and max of a struct, pair or tuple would combine each member separately, and may give a value "
                "that no replica had: reduce the members one by one, or choose a whole value after an all_gather");
  static_assert(!(has_records && is_own),
                "a reduction of your own combines numbers, not whole structs, pairs or tuples: reduce the members one "
                "by one, or combine whole values after an all_gather");
  return !has_records;
}

/// Checks that a reduction suits the numbers of `V`, with one error message.
template <class Op, class V>
[[nodiscard]] constexpr bool require_reduce_op_of_numbers() {
  if constexpr (!require_memberwise_op<Op, V>()) {
    return false;
  } else if constexpr (OperandNumbers<V>::is_complex) {
    constexpr bool by_parts = std::same_as<Op, Sum> || std::same_as<Op, Mean>;
    static_assert(by_parts,
                  "complex numbers are reduced by sum or mean, part by part: for another reduction combine what "
                  "all_gather returns");
    return by_parts;
  } else {
    return require_reduce_op<Op, typename OperandNumbers<V>::Type>();
  }
}

}  // namespace detail

}  // namespace dist
