/// Properties of batched datasets that are available before a pass.
#pragma once

#include <cstddef>

#include <dist/core/contract.hpp>

namespace dist::data {

/// A dataset that declares the number of rows of its batches.
template <class D>
concept HasBatchSize = requires(const D& dataset) {
  dataset.batch_size();
};

/// Returns the dataset's `batch_size()`, the number of rows of its full batches, or 0 (unknown) without such a member
/// (spec I02).
template <class D>
[[nodiscard]] constexpr std::size_t known_batch_size(const D& dataset) {
  if constexpr (HasBatchSize<D>) return dataset.batch_size();
  return 0;
}

/// The batches that may have fewer rows than the batch size. Under `any`, batches may also be empty.
enum class PartialBatches : unsigned char { none, last, any };

/// A dataset that declares which of its batches may be partial.
template <class D>
concept HasPartialBatches = requires(const D& dataset) {
  dataset.partial_batches();
};

/// Returns the dataset's `partial_batches()`, or `any` without such a member.
template <class D>
[[nodiscard]] constexpr PartialBatches partial_batches_of(const D& dataset) {
  if constexpr (HasPartialBatches<D>) return dataset.partial_batches();
  return PartialBatches::any;
}

/// Returns which batches may be partial after a change of order or a repetition: the last one may then be anywhere.
template <class D>
[[nodiscard]] constexpr PartialBatches reordered_partial_batches_of(const D& dataset) {
  return partial_batches_of(dataset) == PartialBatches::none ? PartialBatches::none : PartialBatches::any;
}

/// The number of elements of one pass over a dataset: a number, infinite, or unknown before the pass.
class Cardinality {
 public:
  /// A dataset whose passes all have `count` elements.
  [[nodiscard]] static constexpr Cardinality known(std::size_t count) { return {Kind::known, count}; }
  /// A dataset whose passes do not end.
  [[nodiscard]] static constexpr Cardinality infinite() { return {Kind::infinite, 0}; }
  /// A dataset whose number of elements only a pass shows.
  [[nodiscard]] static constexpr Cardinality unknown() { return {Kind::unknown, 0}; }

  /// True if `count()` is available.
  [[nodiscard]] constexpr bool is_known() const noexcept { return kind_ == Kind::known; }
  /// True if a pass does not end.
  [[nodiscard]] constexpr bool is_infinite() const noexcept { return kind_ == Kind::infinite; }
  /// Requires a known cardinality.
  [[nodiscard]] constexpr std::size_t count() const {
    DIST_EXPECT(is_known());
    return count_;
  }

  friend constexpr bool operator==(Cardinality, Cardinality) = default;

 private:
  enum class Kind : unsigned char { known, infinite, unknown };
  constexpr Cardinality(Kind kind, std::size_t count) : count_(count), kind_(kind) {}

  std::size_t count_;
  Kind kind_;
};

/// The treatment of elements that do not fill the last batch.
enum class Remainder : bool { keep, drop };

namespace detail {

/// Returns the number of groups of `size` elements.
[[nodiscard]] inline Cardinality groups_of(Cardinality elements, std::size_t size, Remainder remainder) {
  if (!elements.is_known()) return elements;
  const std::size_t partial = remainder == Remainder::keep && elements.count() % size != 0 ? 1 : 0;
  return Cardinality::known(elements.count() / size + partial);
}
/// Returns which batches may be partial if `rows` rows are batched.
[[nodiscard]] inline PartialBatches partial_batches_of_rows(Cardinality rows, std::size_t batch_size,
                                                            Remainder remainder) {
  const bool divisible = rows.is_infinite() || (rows.is_known() && rows.count() % batch_size == 0);
  return remainder == Remainder::drop || divisible ? PartialBatches::none : PartialBatches::last;
}

}  // namespace detail

}  // namespace dist::data
