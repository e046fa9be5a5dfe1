/// What a dataset of batches knows of their sizes before the pass.
#pragma once

#include <concepts>
#include <cstddef>

#include <dist/core/contract.hpp>

namespace dist::data {

/// What knows the number of rows of its batches.
template <class D>
concept HasBatchSize = requires(const D& dataset) {
  dataset.batch_size();
};

/// The number of rows of every batch of a dataset except partial ones: what its member `batch_size()` says. 0
/// when it is not known, or there is no such member (spec I02).
template <class D>
[[nodiscard]] constexpr std::size_t known_batch_size(const D& dataset) {
  if constexpr (HasBatchSize<D>) return dataset.batch_size();
  return 0;
}

/// Which batches may have fewer rows than the batch size. Where `any` may, some may have no row at all.
enum class PartialBatches : unsigned char { none, last, any };

/// What knows which of its batches may be partial.
template <class D>
concept HasPartialBatches = requires(const D& dataset) {
  dataset.partial_batches();
};

/// What a dataset's member `partial_batches()` says; any may be partial where there is no such member.
template <class D>
[[nodiscard]] constexpr PartialBatches partial_batches_of(const D& dataset) {
  if constexpr (HasPartialBatches<D>) return dataset.partial_batches();
  return PartialBatches::any;
}

/// The same for batches in another order, or repeated: the last one may then be anywhere.
template <class D>
[[nodiscard]] constexpr PartialBatches reordered_partial_batches_of(const D& dataset) {
  return partial_batches_of(dataset) == PartialBatches::none ? PartialBatches::none : PartialBatches::any;
}

/// How many elements one pass over a dataset gives: a number, infinitely many, or unknown before the pass.
class Cardinality {
 public:
  [[nodiscard]] static constexpr Cardinality known(std::size_t count) { return {Kind::known, count}; }
  [[nodiscard]] static constexpr Cardinality infinite() { return {Kind::infinite, 0}; }
  [[nodiscard]] static constexpr Cardinality unknown() { return {Kind::unknown, 0}; }

  [[nodiscard]] constexpr bool is_known() const noexcept { return kind_ == Kind::known; }
  [[nodiscard]] constexpr bool is_infinite() const noexcept { return kind_ == Kind::infinite; }
  /// Only of a known cardinality.
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

/// What becomes of elements that do not fill the last batch.
enum class Remainder : bool { keep, drop };

namespace detail {

/// How many groups of `size` these elements make.
[[nodiscard]] inline Cardinality groups_of(Cardinality elements, std::size_t size, Remainder remainder) {
  if (!elements.is_known()) return elements;
  const std::size_t partial = remainder == Remainder::keep && elements.count() % size != 0 ? 1 : 0;
  return Cardinality::known(elements.count() / size + partial);
}
/// Which of the batches of `rows` may be partial.
[[nodiscard]] inline PartialBatches partial_batches_of_rows(Cardinality rows, std::size_t batch_size,
                                                            Remainder remainder) {
  const bool divisible = rows.is_infinite() || (rows.is_known() && rows.count() % batch_size == 0);
  return remainder == Remainder::drop || divisible ? PartialBatches::none : PartialBatches::last;
}

}  // namespace detail

}  // namespace dist::data
