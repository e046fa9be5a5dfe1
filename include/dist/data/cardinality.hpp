#pragma once

#include <cstddef>

#include <dist/core/contract.hpp>

namespace dist::data {

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

}  // namespace dist::data
