#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>
#include <dist/variable/layout.hpp>

namespace dist::nn::detail {

/// Returns `value` with the fewest digits that reproduce it, so that tiny numbers are not shown as zero.
[[nodiscard]] std::string digits_of(float value);

/// Throws InvalidArgument unless `value` >= 0. The message names "optimizer.field".
void require_not_negative(std::string_view optimizer, std::string_view field, float value);

/// Throws InvalidArgument unless `value` is a finite number above 0.
void require_positive(std::string_view optimizer, std::string_view field, float value);

/// Throws InvalidArgument unless 0 <= `value` < 1.
void require_decay(std::string_view optimizer, std::string_view field, float value);

/// Throws InvalidArgument unless 0 <= `value` <= 1.
void require_part(std::string_view owner, std::string_view field, float value);

/// Throws InvalidArgument unless `value` >= 1.
void require_positive_steps(std::string_view schedule, std::string_view field, std::int64_t value);

/// Throws InvalidArgument if the optimizer's network was destroyed.
void require_network(std::string_view optimizer, const std::weak_ptr<const void>& lifetime);

/// Returns the tensor of that name. Throws InvalidArgument if it is missing.
[[nodiscard]] const VariableTensor& parameter_named(std::span<const VariableTensor> layout, std::string_view name);

/// Throws an optimizer's error about missing gradients.
[[noreturn]] void refuse_gradients(std::size_t replica, bool has_computed, const char* advice);

/// Throws ShapeMismatch unless rows of `batch` have shape `expected`, except for trailing axes of extent 1, or there
/// are none.
void require_rows_of_shape(const Shape& batch, const Shape& expected);

/// Throws ShapeMismatch unless a gradient has the shape of a network's outputs, except for trailing axes of extent 1,
/// or both have no rows.
void require_gradient_of_shape(const Shape& gradient, const Shape& outputs);

/// Returns the shape of one label per row of the outputs' last axis.
[[nodiscard]] Shape shape_of_labels(const Shape& outputs);
/// True if `labels` have this shape, except for trailing axes of extent 1.
[[nodiscard]] bool are_labels(const Shape& outputs, const Shape& labels);

/// Throw ShapeMismatch; see require_labels, require_targets and row_weights.
[[noreturn]] void refuse_labels(std::string_view reader, const Shape& outputs, const Shape& labels);
[[noreturn]] void refuse_targets(std::string_view reader, const Shape& outputs, const Shape& targets,
                                 std::size_t expected, std::string_view otherwise);
[[noreturn]] void refuse_weights(std::string_view reader, const Shape& outputs, const Shape& weights);

/// Throws ShapeMismatch unless `places` equals `rows`.
void require_places(std::string_view reader, std::size_t places, std::size_t rows);

/// Throws InvalidArgument if the variable is not trainable.
template <class Variable>
void require_trainable(const Variable& variable) {
  if (!variable.trainable())
    throw InvalidArgument(concat("An optimizer was given variable '", variable.name(), "', which is not trainable"),
                          "it was made with Trainable::no, or OnRead", "Make it with Trainable::yes to train it");
}

}  // namespace dist::nn::detail

#ifndef DIST_COMPILED
#include <dist/nn/check.ipp>
#endif
