/// Partitioners: the number of shards of a variable along its first axis (spec J05, K01 to K04).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/shape.hpp>

namespace dist {

namespace detail {

/// Returns the size of `elements` elements in bytes; the largest number on overflow.
[[nodiscard]] constexpr std::size_t saturated_bytes(std::size_t elements, std::size_t element_bytes) noexcept {
  std::size_t bytes = 0;
  return __builtin_mul_overflow(elements, element_bytes, &bytes) ? static_cast<std::size_t>(-1) : bytes;
}

[[nodiscard]] constexpr std::size_t ceiling(std::size_t dividend, std::size_t divisor) noexcept {
  return dividend / divisor + (dividend % divisor != 0 ? 1 : 0);
}

/// Throws InvalidArgument if an argument of a partitioner is 0.
constexpr void require_positive(std::string_view partitioner, std::string_view argument, std::size_t value) {
  if (value == 0)
    throw InvalidArgument(concat("Argument ", argument, " of ", partitioner, " is 0"), "it must be positive",
                          concat("Give ", argument, " a value of 1 or more"));
}

}  // namespace detail

/// A partitioner: `partitioner(shape, element_bytes)` returns the number of shards of a variable. Only the first axis
/// is divided (spec J05). FixedShards, MinSizeShards and MaxSizeShards are partitioners, and so are lambdas (spec K04):
///
///     const auto by_row = [](const dist::Shape& shape, std::size_t) { return shape[0]; };
template <class P>
concept Partitioner = requires(const P& partitioner, const Shape& shape, std::size_t element_bytes) {
  { partitioner(shape, element_bytes) } -> std::integral;
};

namespace detail {

/// True if `P` is a partitioner; otherwise a readable compile error.
template <class P>
[[nodiscard]] constexpr bool require_partitioner() {
  static_assert(detail::satisfied<Partitioner<P>>,
                "a partitioner must take a shape and the size of an element in bytes, and return the number of shards "
                "of the first axis: one integer and not a list, because other axes are not divided");
  return Partitioner<P>;
}

}  // namespace detail

/// A type-erased partitioner for options of strategies. By default returns one shard.
class AnyPartitioner {
 public:
  AnyPartitioner() = default;
  /// Stores a copy of `partitioner`. Anything other than a Partitioner is a compile error.
  template <class P>
    requires(!std::same_as<P, AnyPartitioner>)
  AnyPartitioner(P partitioner) {
    if constexpr (detail::require_partitioner<P>())
      partition_ = [partitioner = std::move(partitioner)](const Shape& shape, std::size_t element_bytes) {
        return static_cast<std::int64_t>(partitioner(shape, element_bytes));
      };
  }

  /// `shape` must have rows.
  [[nodiscard]] std::int64_t operator()(const Shape& shape, std::size_t element_bytes) const {
    return partition_ ? partition_(shape, element_bytes) : 1;
  }

 private:
  detail::UniqueFunction<std::int64_t, const Shape&, std::size_t> partition_;
};

/// Returns `num_shards`, at most the number of rows (spec K01).
struct FixedShards {
  /// The number of shards, unless the variable has fewer rows.
  std::size_t num_shards = 1;

  /// Throws InvalidArgument if `num_shards` is 0.
  [[nodiscard]] constexpr std::size_t operator()(const Shape& shape, std::size_t) const {
    detail::require_positive("FixedShards", "num_shards", num_shards);
    return shape[0] < num_shards ? shape[0] : num_shards;
  }
};

/// Returns the number of shards of `min_shard_bytes`, rounded up, at most `max_shards` (spec K02). Shards may be
/// somewhat smaller.
struct MinSizeShards {
  /// The minimum size of a shard, in bytes. Default: 256 KiB, like TensorFlow's.
  std::size_t min_shard_bytes = std::size_t{256} << 10;
  /// The maximum number of shards.
  std::size_t max_shards = 1;

  /// Throws InvalidArgument if an argument is 0.
  [[nodiscard]] constexpr std::size_t operator()(const Shape& shape, std::size_t element_bytes) const {
    detail::require_positive("MinSizeShards", "min_shard_bytes", min_shard_bytes);
    detail::require_positive("MinSizeShards", "max_shards", max_shards);
    std::size_t shards = detail::ceiling(detail::saturated_bytes(shape.elements(), element_bytes), min_shard_bytes);
    if (max_shards < shards) shards = max_shards;
    if (shape[0] < shards) shards = shape[0];
    return shards == 0 ? 1 : shards;
  }
};

/// Returns the smallest number of shards of at most `max_shard_bytes`, or of one row if a row is larger; at most
/// `max_shards` (spec K03).
struct MaxSizeShards {
  /// The maximum size of a shard, in bytes.
  std::size_t max_shard_bytes;
  std::size_t max_shards = 0;  ///< 0: unlimited

  /// Throws InvalidArgument if `max_shard_bytes` is 0.
  [[nodiscard]] constexpr std::size_t operator()(const Shape& shape, std::size_t element_bytes) const {
    detail::require_positive("MaxSizeShards", "max_shard_bytes", max_shard_bytes);
    const std::size_t row_bytes = detail::saturated_bytes(shape.row().elements(), element_bytes);
    if (row_bytes == 0) return 1;
    const std::size_t rows_of_shard = row_bytes < max_shard_bytes ? max_shard_bytes / row_bytes : 1;
    const std::size_t shards = detail::ceiling(shape[0], rows_of_shard);
    return max_shards != 0 && max_shards < shards ? max_shards : shards;
  }
};

/// Returns the number of shards of the variable `name`: the partitioner's result, at most the number of rows (spec
/// J06). Scalars and variables without rows are not divided (spec J05). Throws InvalidArgument if the partitioner
/// returns less than 1.
template <class P>
[[nodiscard]] constexpr std::size_t number_of_shards(const P& partitioner, std::string_view name, const Shape& shape,
                                                     std::size_t element_bytes) {
  if constexpr (detail::require_partitioner<P>()) {
    if (shape.rank() == 0 || shape[0] == 0) return 1;
    const auto shards = partitioner(shape, element_bytes);
    if (shards < 1)
      throw InvalidArgument(concat("A partitioner divides variable ", quoted(name), " into ", +shards, " shards"),
                            concat("the variable has shape ", to_string(shape)),
                            "Return the number of shards, which is 1 or more");
    const auto wanted = static_cast<std::size_t>(shards);
    return wanted < shape[0] ? wanted : shape[0];
  } else {
    return 1;
  }
}

}  // namespace dist
