#pragma once

#include <concepts>
#include <cstddef>
#include <string>

#include <dist/context/contexts.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/check.hpp>
#include <dist/variable/copies.hpp>
#include <dist/variable/element_update.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/layout.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/queue_of.hpp>

namespace dist::nn {

/// A tensor of a network's parameters or state, and its place in their variable.
using Parameter = VariableTensor;

/// The alignment of parameters in elements: a cache line of float.
inline constexpr std::size_t parameter_alignment = 16;

/// Returns `elements`, rounded up to this alignment.
[[nodiscard]] constexpr std::size_t padded(std::size_t elements) {
  return (elements + parameter_alignment - 1) / parameter_alignment * parameter_alignment;
}

namespace detail {

/// Returns one parameter from the variable of all, whose copies are equal.
template <class Variable>
[[nodiscard]] auto part_of(const Variable& variable, const InCrossReplica auto& scope, const Parameter& parameter) {
  Tensor<typename Variable::Element> part{parameter.shape};
  dist::detail::copy_and_wait(variable.queue(scope, 0),
                              variable.component(scope, 0).subspan(parameter.offset, part.size()), part.elements());
  return part;
}

/// A parameter as the destination of an assignment.
template <class T>
struct NamedPart {
  using Element = T;
  std::string text;
  Shape extents;

  [[nodiscard]] const std::string& name() const noexcept { return text; }
  [[nodiscard]] const Shape& shape() const noexcept { return extents; }
};

}  // namespace detail

/// One parameter of the variable of all, with a variable's interface: a leaf of a walk (Trackable). Copies must be
/// equal; for others see TrackedParts. Refers to the variable.
template <class Variable>
class ParameterPart {
  static_assert(std::same_as<typename Variable::Synchronization, OnWrite>);

 public:
  /// The type of the elements.
  using Element = typename Variable::Element;

  /// The part of `variable` that belongs to `parameter`.
  ParameterPart(Variable& variable, const Parameter& parameter) : variable_(&variable), parameter_(parameter) {}

  /// The shape of the parameter.
  [[nodiscard]] const Shape& shape() const noexcept { return parameter_.shape; }

  /// See DistributedVariable::whole.
  [[nodiscard]] Tensor<Element> whole(const InCrossReplica auto& scope) const {
    return detail::part_of(*variable_, scope, parameter_);
  }
  /// Assigns this parameter in every copy, from a tensor of its shape, a contiguous range of as many numbers, or one
  /// number for all elements. Throws ShapeMismatch.
  template <class Values>
  void restore(const InCrossReplica auto& scope, const Values& values) const {
    const auto given = dist::detail::given_to(detail::NamedPart<Element>{parameter_.name(), parameter_.shape}, values);
    const IndexRange range{parameter_.offset, parameter_.offset + parameter_.shape.elements()};
    dist::detail::update_every_copy(*variable_, scope, range, given, dist::detail::Assign{});
  }

 private:
  Variable* variable_;
  Parameter parameter_;
};

}  // namespace dist::nn
