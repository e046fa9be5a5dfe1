#pragma once

#include <concepts>
#include <cstddef>

#include <dist/core/error.hpp>
#include <dist/core/log.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/text.hpp>

namespace dist::nn {

/// The examples of all replicas in a step: any integer of 0 or more (spec P01).
class GlobalBatchSize {
 public:
  /// Throws InvalidArgument for a negative number.
  template <Reducible Number>
  GlobalBatchSize(Number examples) : value_(static_cast<std::size_t>(examples)) {
    static_assert(std::integral<Number> && !std::same_as<Number, bool>,
                  "the global batch size is a number of examples: give an integer (spec P01)");
    if constexpr (std::signed_integral<Number>)
      if (examples < 0)
        throw InvalidArgument("The global batch size is negative", concat("it is ", examples),
                              "Give the number of examples of all replicas together");
  }

  /// The number of examples of all replicas.
  [[nodiscard]] std::size_t value() const noexcept { return value_; }

 private:
  std::size_t value_;
};

namespace detail {

/// Returns the part of losses with this sum in the mean over a global batch; 0 for an empty one (spec P01).
template <std::floating_point T>
[[nodiscard]] T part_of_global_batch(double total, std::size_t global_batch) noexcept {
  return global_batch == 0 ? T{0} : static_cast<T>(total / static_cast<double>(global_batch));
}

inline constinit dist::detail::Warning batch_size_of_one_replica{};

/// Throws InvalidArgument if replica `rank` of `replicas` has more examples than the global batch. Warns once if the
/// last replica has as many: the library's datasets give a small batch's rows to the first replicas, so `global` is
/// probably one replica's batch size.
void require_global_batch_size(GlobalBatchSize global, std::size_t examples, std::size_t rank, std::size_t replicas);

}  // namespace detail

}  // namespace dist::nn

#ifndef DIST_COMPILED
#include <dist/nn/losses/global_batch_size.ipp>
#endif
