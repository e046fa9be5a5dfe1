#pragma once

#include <charconv>
#include <cmath>

#include <dist/nn/check.hpp>

namespace dist::nn::detail {

DIST_INLINE std::string digits_of(float value) {
  char characters[32];
  const std::to_chars_result written = std::to_chars(characters, characters + sizeof characters, value);
  return {characters, written.ptr};
}

DIST_INLINE void require_in_range(std::string_view owner, std::string_view field, bool is_in_range, float value,
                                  const char* advice) {
  if (!is_in_range)
    throw InvalidArgument(concat(owner, ".", field, " is out of range"), concat("it is ", digits_of(value)), advice);
}

DIST_INLINE void require_not_negative(std::string_view optimizer, std::string_view field, float value) {
  require_in_range(optimizer, field, value >= 0, value, "Give a number of 0 or more");
}
DIST_INLINE void require_positive(std::string_view optimizer, std::string_view field, float value) {
  require_in_range(optimizer, field, value > 0 && std::isfinite(value), value, "Give a finite number above 0");
}
DIST_INLINE void require_decay(std::string_view optimizer, std::string_view field, float value) {
  require_in_range(optimizer, field, value >= 0 && value < 1, value, "Give a number from 0 to below 1");
}
DIST_INLINE void require_part(std::string_view owner, std::string_view field, float value) {
  require_in_range(owner, field, value >= 0 && value <= 1, value, "Give a number from 0 to 1");
}
DIST_INLINE void require_positive_steps(std::string_view schedule, std::string_view field, std::int64_t value) {
  if (value < 1)
    throw InvalidArgument(concat(schedule, ".", field, " is out of range"), concat("it is ", value),
                          "Give a number of steps, 1 or more");
}

DIST_INLINE void require_network(std::string_view optimizer, const std::weak_ptr<const void>& lifetime) {
  if (lifetime.expired())
    throw InvalidArgument(concat("Optimizer ", optimizer, " was used after its network was destroyed"),
                          "it refers to the network", "Keep the network alive as long as the optimizer");
}

[[nodiscard]] DIST_INLINE Shape without_trailing_ones(const Shape& shape) {
  std::size_t rank = shape.rank();
  while (rank > 0 && shape[rank - 1] == 1) --rank;
  return Shape{shape.extents().first(rank)};
}

DIST_INLINE Shape shape_of_labels(const Shape& outputs) {
  return outputs.rank() < 2 ? outputs : Shape{outputs.extents().first(outputs.rank() - 1)};
}
/// Returns the advice for a forgotten nn::Flatten, if outputs have more axes than their targets.
[[nodiscard]] DIST_INLINE std::string or_flatten(const Shape& outputs, std::size_t axes_of_targets) {
  if (outputs.rank() <= 2 || axes_of_targets >= outputs.rank()) return {};
  return concat(", or put nn::Flatten before the last nn::Dense: the outputs have rows ", to_string(outputs.row()));
}

DIST_INLINE bool are_labels(const Shape& outputs, const Shape& labels) {
  return without_trailing_ones(labels) == without_trailing_ones(shape_of_labels(outputs));
}
DIST_INLINE void refuse_labels(std::string_view reader, const Shape& outputs, const Shape& labels) {
  throw ShapeMismatch(concat(reader, " got labels that do not fit the outputs"),
                      concat("outputs ", to_string(outputs), ", labels ", to_string(labels)),
                      concat("Give one label per example, ", to_string(shape_of_labels(outputs)),
                             or_flatten(outputs, labels.rank() + 1)));
}

DIST_INLINE void refuse_targets(std::string_view reader, const Shape& outputs, const Shape& targets,
                                std::size_t expected, std::string_view otherwise) {
  throw ShapeMismatch(concat(reader, " got targets that do not fit the outputs"),
                      concat("outputs ", to_string(outputs), ", targets ", to_string(targets)),
                      concat("Give one row of ", expected, expected == 1 ? " element" : " elements",
                             " for each example", otherwise, or_flatten(outputs, targets.rank())));
}

DIST_INLINE void refuse_weights(std::string_view reader, const Shape& outputs, const Shape& weights) {
  throw ShapeMismatch(concat(reader, " got sample weights that do not fit the outputs"),
                      concat("outputs ", to_string(outputs), ", weights ", to_string(weights)),
                      "Give one weight per example, or none");
}

DIST_INLINE void require_places(std::string_view reader, std::size_t places, std::size_t rows) {
  if (places != rows)
    throw ShapeMismatch(concat(reader, " got memory for losses that does not fit the outputs"),
                        concat(places, " elements for ", rows, " rows"), "Give one element per example");
}

DIST_INLINE void require_rows_of_shape(const Shape& batch, const Shape& expected) {
  if (batch.rank() > 0 && batch[0] == 0) return;  // an empty replica leaves the error to the others
  if (batch.rank() == 0 || without_trailing_ones(batch.row()) != without_trailing_ones(expected))
    throw ShapeMismatch(
        "A batch does not fit the network's input",
        concat("the batch has shape ", to_string(batch), ", the network takes rows of shape ", to_string(expected)),
        "Give the batch as [rows, ...] with rows of that shape, or change nn::Input");
}

DIST_INLINE void require_gradient_of_shape(const Shape& gradient, const Shape& outputs) {
  if (gradient.elements() == 0 && outputs.elements() == 0) return;  // an empty dataset has no extents
  if (without_trailing_ones(gradient) != without_trailing_ones(outputs))
    throw ShapeMismatch("A gradient does not fit the network's outputs",
                        concat("the gradient has shape ", to_string(gradient), ", the outputs of the last forward ",
                               to_string(outputs)),
                        "Give backward the gradient of these outputs, with all rows of the batch");
}

DIST_INLINE const VariableTensor& parameter_named(std::span<const VariableTensor> layout, std::string_view name) {
  std::string names;
  for (const VariableTensor& parameter : layout) {
    if (parameter.name() == name) return parameter;
    names += concat(names.empty() ? "" : ", ", parameter.name());
  }
  throw InvalidArgument(concat("The network has no parameter '", name, "'"), concat("it has ", names),
                        "Use one of these names");
}

DIST_INLINE void refuse_gradients(std::size_t replica, bool has_computed, const char* advice) {
  throw InvalidArgument(
      "A network has no gradients to apply",
      concat("replica ", replica,
             has_computed ? " has already applied the gradients of its last backward" : " has not called backward yet"),
      advice);
}

}  // namespace dist::nn::detail
