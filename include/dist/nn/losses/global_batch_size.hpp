#pragma once

#include <concepts>
#include <cstddef>

#include <dist/core/error.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist::nn {

/// How many examples all replicas have together in a step: any integer of 0 or more (spec P01).
class GlobalBatchSize {
 public:
  /// Throws InvalidArgument for a negative number.
  template <Reducible Number>
  GlobalBatchSize(Number examples) : value_(static_cast<std::size_t>(examples)) {
    static_assert(std::integral<Number> && !std::same_as<Number, bool>,
                  "the global batch size is a number of examples: give an integer (spec P01)");
    if constexpr (std::signed_integral<Number>)
      if (examples < 0)
        throw InvalidArgument("The global batch size is negative", text("it is ", examples),
                              "Give the number of examples of all replicas together");
  }

  [[nodiscard]] std::size_t value() const noexcept { return value_; }

 private:
  std::size_t value_;
};

}  // namespace dist::nn
