/// Into how many shards a variable is divided along its first axis (spec J05, K01 to K04).
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

/// The bytes of so many elements; the greatest number where there is no such number.
[[nodiscard]] constexpr std::size_t saturated_bytes(std::size_t elements, std::size_t element_bytes) noexcept {
  std::size_t bytes = 0;
  return __builtin_mul_overflow(elements, element_bytes, &bytes) ? static_cast<std::size_t>(-1) : bytes;
}

/// `dividend / divisor`, rounded up.
[[nodiscard]] constexpr std::size_t ceiling(std::size_t dividend, std::size_t divisor) noexcept {
  return dividend / divisor + (dividend % divisor != 0 ? 1 : 0);
}

/// Throws InvalidArgument for an argument of a partitioner that is 0.
constexpr void require_positive(std::string_view partitioner, std::string_view argument, std::size_t value) {
  if (value == 0)
    throw InvalidArgument(concat("Argument ", argument, " of ", partitioner, " is 0"), "it must be positive",
                          concat("Give ", argument, " a value of 1 or more"));
}

}  // namespace detail

/// What divides variables: `partitioner(shape, element_bytes)` returns the number of shards of a variable of that shape, whose
/// elements have so many bytes. Only the first axis is divided, so there is one number (spec J05). FixedShards, MinSizeShards
/// and MaxSizeShards are partitioners, and so is a lambda (spec K04):
///
///     const auto by_row = [](const dist::Shape& shape, std::size_t) { return shape[0]; };
template <class P>
concept Partitioner = requires(const P& partitioner, const Shape& shape, std::size_t element_bytes) {
  { partitioner(shape, element_bytes) } -> std::integral;
};

namespace detail {

/// Refuses, in a sentence, what is no partitioner, and says whether it is one.
template <class P>
[[nodiscard]] constexpr bool require_partitioner() {
  static_assert(
      detail::satisfied<Partitioner<P>>,
      "a partitioner takes a shape and the bytes of an element, and returns one whole number, that of the shards of "
      "the first axis: no list, because other axes are not divided");
  return Partitioner<P>;
}

}  // namespace detail

/// Any partitioner, or none, which divides nothing: an option of strategies.
class AnyPartitioner {
 public:
  AnyPartitioner() = default;
  template <class P>
    requires(!std::same_as<P, AnyPartitioner>)
  AnyPartitioner(P partitioner) {
    if constexpr (detail::require_partitioner<P>())
      partition_ = [partitioner = std::move(partitioner)](const Shape& shape, std::size_t element_bytes) {
        return static_cast<std::int64_t>(partitioner(shape, element_bytes));
      };
  }

  /// Of a shape with rows.
  [[nodiscard]] std::int64_t operator()(const Shape& shape, std::size_t element_bytes) const {
    return partition_ ? partition_(shape, element_bytes) : 1;
  }

 private:
  detail::UniqueFunction<std::int64_t, const Shape&, std::size_t> partition_;
};

/// So many shards, or one for each row where there are fewer rows (spec K01).
struct FixedShards {
  std::size_t num_shards = 1;

  /// Throws InvalidArgument for a `num_shards` of 0.
  [[nodiscard]] constexpr std::size_t operator()(const Shape& shape, std::size_t) const {
    detail::require_positive("FixedShards", "num_shards", num_shards);
    return shape[0] < num_shards ? shape[0] : num_shards;
  }
};

/// As many shards of about `min_shard_bytes` as there are bytes for, rounded up, and at most `max_shards` (spec K02). Because
/// it rounds up, shards may be somewhat smaller.
struct MinSizeShards {
  std::size_t min_shard_bytes = std::size_t{256} << 10;
  std::size_t max_shards = 1;

  /// Throws InvalidArgument for an argument that is 0.
  [[nodiscard]] constexpr std::size_t operator()(const Shape& shape, std::size_t element_bytes) const {
    detail::require_positive("MinSizeShards", "min_shard_bytes", min_shard_bytes);
    detail::require_positive("MinSizeShards", "max_shards", max_shards);
    std::size_t shards = detail::ceiling(detail::saturated_bytes(shape.elements(), element_bytes), min_shard_bytes);
    if (max_shards < shards) shards = max_shards;
    if (shape[0] < shards) shards = shape[0];
    return shards == 0 ? 1 : shards;
  }
};

/// As few shards as there can be of at most `max_shard_bytes`, or of one row where a row has more; at most `max_shards` of
/// any size (spec K03).
struct MaxSizeShards {
  std::size_t max_shard_bytes;
  std::size_t max_shards = 0;  ///< 0: as many as it takes

  /// Throws InvalidArgument for a `max_shard_bytes` of 0.
  [[nodiscard]] constexpr std::size_t operator()(const Shape& shape, std::size_t element_bytes) const {
    detail::require_positive("MaxSizeShards", "max_shard_bytes", max_shard_bytes);
    const std::size_t row_bytes = detail::saturated_bytes(shape.row().elements(), element_bytes);
    if (row_bytes == 0) return 1;
    const std::size_t rows_of_shard = row_bytes < max_shard_bytes ? max_shard_bytes / row_bytes : 1;
    const std::size_t shards = detail::ceiling(shape[0], rows_of_shard);
    return max_shards != 0 && max_shards < shards ? max_shards : shards;
  }
};

/// The number of shards of the variable `name`: what the partitioner says, and no more than there are rows (spec J06). A
/// scalar is never divided, nor is what has no rows (spec J05). Throws InvalidArgument where the partitioner says less than 1.
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
