#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <dist/context/contexts.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/variable/element_update.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/layout.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/queue_of.hpp>
#include <dist/variable/write.hpp>

namespace dist::nn {

/// One tensor that a network learns, or keeps, and where it lies among all of its kind.
using Parameter = VariableTensor;

/// Every parameter starts at a multiple of so many elements: a cache line of float.
inline constexpr std::size_t parameter_alignment = 16;

/// `elements`, and those up to where the next parameter may start.
[[nodiscard]] constexpr std::size_t padded(std::size_t elements) {
  return (elements + parameter_alignment - 1) / parameter_alignment * parameter_alignment;
}

namespace detail {

/// Throws InvalidArgument when no parameter of `layout` has that name.
[[nodiscard]] inline const Parameter& parameter_named(std::span<const Parameter> layout, std::string_view name) {
  std::string names;
  for (const Parameter& parameter : layout) {
    if (parameter.name() == name) return parameter;
    names += concat(names.empty() ? "" : ", ", parameter.name());
  }
  throw InvalidArgument(concat("The network has no parameter '", name, "'"), concat("it has ", names),
                        "Use one of these names");
}

/// The tensor of `parameter` in a variable that holds those of all parameters, whose copies are equal.
template <class Variable>
[[nodiscard]] auto part_of(const Variable& variable, const InCrossReplica auto& scope, const Parameter& parameter) {
  Tensor<typename Variable::Element> part{parameter.shape};
  dist::detail::copy_and_wait(variable.queue(scope, 0),
                              variable.component(scope, 0).subspan(parameter.offset, part.size()), part.elements());
  return part;
}

/// A parameter as something to be written.
template <class T>
struct NamedPart {
  using Element = T;
  std::string text;
  Shape extents;

  [[nodiscard]] const std::string& name() const noexcept { return text; }
  [[nodiscard]] const Shape& shape() const noexcept { return extents; }
};

}  // namespace detail

/// One parameter where it lies in the variable that holds those of all, with the verbs of a variable: a leaf of a walk.
/// The copies of the variable are equal; of others see TrackedParts. Refers to the variable.
template <class Variable>
class ParameterPart {
  static_assert(std::same_as<typename Variable::Synchronization, OnWrite>);

 public:
  using Element = typename Variable::Element;

  ParameterPart(Variable& variable, const Parameter& parameter) : variable_(&variable), parameter_(parameter) {}

  [[nodiscard]] const Shape& shape() const noexcept { return parameter_.shape; }

  /// See DistributedVariable::whole.
  [[nodiscard]] Tensor<Element> whole(const InCrossReplica auto& scope) const {
    return detail::part_of(*variable_, scope, parameter_);
  }
  /// Its inverse, for the elements of this parameter: `values` are a tensor of its shape, a contiguous range of as many
  /// numbers, or one number for all. Throws ShapeMismatch.
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
