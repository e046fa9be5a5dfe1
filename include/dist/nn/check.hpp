#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/text.hpp>

namespace dist::nn::detail {

/// The fewest digits that give `value` back: a tiny negative number must not be shown as zero.
[[nodiscard]] inline std::string digits_of(float value) {
  char characters[32];
  const std::to_chars_result written = std::to_chars(characters, characters + sizeof characters, value);
  return {characters, written.ptr};
}

/// Throws InvalidArgument unless `value` >= 0; "optimizer.field" is named.
inline void require_not_negative(std::string_view optimizer, std::string_view field, float value) {
  if (!(value >= 0))
    throw InvalidArgument(concat(optimizer, ".", field, " is out of range"), concat("it is ", digits_of(value)),
                          "Give a number of 0 or more");
}

/// Throws InvalidArgument unless `value` is a finite number above 0.
inline void require_positive(std::string_view optimizer, std::string_view field, float value) {
  if (!(value > 0) || !std::isfinite(value))
    throw InvalidArgument(concat(optimizer, ".", field, " is out of range"), concat("it is ", digits_of(value)),
                          "Give a finite number above 0");
}

/// Throws InvalidArgument unless 0 <= `value` < 1.
inline void require_decay(std::string_view optimizer, std::string_view field, float value) {
  if (!(value >= 0 && value < 1))
    throw InvalidArgument(concat(optimizer, ".", field, " is out of range"), concat("it is ", digits_of(value)),
                          "Give a number from 0 to below 1");
}

/// Throws InvalidArgument unless 0 <= `value` <= 1.
inline void require_part(std::string_view owner, std::string_view field, float value) {
  if (!(value >= 0 && value <= 1))
    throw InvalidArgument(concat(owner, ".", field, " is out of range"), concat("it is ", digits_of(value)),
                          "Give a number from 0 to 1");
}

/// Throws InvalidArgument unless `value` is a number of steps, 1 or more.
inline void require_positive_steps(std::string_view schedule, std::string_view field, std::int64_t value) {
  if (value < 1)
    throw InvalidArgument(concat(schedule, ".", field, " is out of range"), concat("it is ", value),
                          "Give a number of steps, 1 or more");
}

/// Throws InvalidArgument where the network to which an optimizer refers has ended.
inline void require_network(std::string_view optimizer, const std::weak_ptr<const void>& lifetime) {
  if (lifetime.expired())
    throw InvalidArgument(concat("Optimizer ", optimizer, " was used after its network had ended"),
                          "it refers to the network", "Keep the network as long as the optimizer");
}

/// Throws InvalidArgument for a variable that is not trained.
template <class Variable>
void require_trainable(const Variable& variable) {
  if (!variable.trainable())
    throw InvalidArgument(concat("An optimizer was given variable '", variable.name(), "', which is not trainable"),
                          "it was made with Trainable::no, or OnRead", "Make it with Trainable::yes to train it");
}

}  // namespace dist::nn::detail
