#pragma once

#include <cstddef>

#include <dist/data/batch_size.hpp>
#include <dist/data/cardinality.hpp>

namespace dist::data {

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
