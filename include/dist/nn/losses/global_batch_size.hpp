#pragma once

#include <concepts>
#include <cstddef>

#include <dist/core/error.hpp>
#include <dist/core/log.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/text.hpp>

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
        throw InvalidArgument("The global batch size is negative", concat("it is ", examples),
                              "Give the number of examples of all replicas together");
  }

  [[nodiscard]] std::size_t value() const noexcept { return value_; }

 private:
  std::size_t value_;
};

namespace detail {

/// What losses with this sum contribute to the mean over a global batch; 0 for an empty one (spec P01).
template <std::floating_point T>
[[nodiscard]] T part_of_global_batch(double total, std::size_t global_batch) noexcept {
  return global_batch == 0 ? T{0} : static_cast<T>(total / static_cast<double>(global_batch));
}

inline constinit dist::detail::Warning batch_size_of_one_replica{};

/// Throws InvalidArgument when one replica, `rank` of `replicas`, has more examples than all replicas together are said to
/// have. Warns, once, when the last replica has as many as all: our datasets give the rows of a small batch to the first
/// replicas, so the size is probably that of each replica.
inline void require_global_batch_size(GlobalBatchSize global, std::size_t examples, std::size_t rank,
                                      std::size_t replicas) {
  if (examples < global.value() || examples == 0) return;
  if (examples > global.value())
    throw InvalidArgument(
        "A loss was given a global batch size that is too small",
        replicas == 1 ? concat("it is ", global.value(), ", and there are ", examples, " examples")
                      : concat("it is ", global.value(), ", and replica ", rank, " of ", replicas, " alone has ",
                               examples, " examples"),
        "Give the number of examples of all replicas together, which is what distribute_dataset divides");
  if (replicas > 1 && rank == replicas - 1 && !batch_size_of_one_replica.was_given())
    batch_size_of_one_replica.emit(concat(
        "replica ", rank, " of ", replicas, " has all ", examples, " examples of the global batch: if every replica ",
        "has as many, a loss was given the size of one replica's batch, and gradients are ", replicas,
        " times too large. DIST_WARNINGS=0 silences this."));
}

}  // namespace detail

}  // namespace dist::nn
