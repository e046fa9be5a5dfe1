#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

#include <dist/core/text.hpp>
#include <dist/hlo/gradients.hpp>
#include <dist/hlo/untyped.hpp>

namespace dist::hlo::untyped {

DIST_INLINE std::vector<Value> gradients(Value of, std::span<const Value> by) {
  const Trace& trace = Trace::current();
  const std::size_t count = trace.operations();  // gradients add operations

  std::set<std::size_t> dependent;  // on values in `by`
  for (const Value value : by) {
    static_cast<void>(trace.type(value));  // throws for a value of another program
    dependent.insert(value.number);
  }
  const auto is_dependent = [&](Value value) { return dependent.contains(value.number); };
  for (std::size_t number = 0; number < count; ++number) {
    const Operation& operation = trace.operation(number);
    const auto depends = [&] {
      for (std::size_t i = 0; i < operation.operands.size(); ++i)
        if (is_dependent(operation.operands[i]) && (operation.pullbacks.empty() || operation.pullbacks[i])) return true;
      // A loop's body may depend on outer values. Its operations precede the loop, so they are checked already.
      return std::any_of(operation.regions.begin(), operation.regions.end(), [&](const Region& region) {
        return std::any_of(region.results.begin(), region.results.end(), is_dependent);
      });
    };
    if (depends())
      for (const Value result : operation.results) dependent.insert(result.number);
  }

  std::map<std::size_t, Value> gradient_of{{of.number, constant_like(of, 1)}};
  for (std::size_t number = count; number-- > 0;) {
    const Operation& operation = trace.operation(number);
    for (const Value result : operation.results) {
      const auto known = gradient_of.find(result.number);
      if (known == gradient_of.end() || !is_dependent(result)) continue;
      const Value gradient = known->second;
      if (operation.pullbacks.empty())
        throw InvalidArgument(concat("The gradient of the operation ", operation.name, " is not known"),
                              concat("the number to be differentiated depends on its result",
                                     operation.location == nullptr ? "" : concat("; it is in ", *operation.location)),
                              "Differentiate inside the body of a loop, stop the gradient with hlo::stop_gradient, or "
                              "compute the result with other operations");
      const Scope scope{operation};
      for (std::size_t i = 0; i < operation.operands.size(); ++i) {
        const Value operand = operation.operands[i];
        if (!operation.pullbacks[i] || !is_dependent(operand)) continue;
        const Value part = operation.pullbacks[i](result, gradient);
        const auto [place, is_first] = gradient_of.try_emplace(operand.number, part);
        if (!is_first) place->second = add(place->second, part);
      }
    }
  }

  std::vector<Value> gradients;
  for (const Value value : by) {
    const auto known = gradient_of.find(value.number);
    gradients.push_back(known == gradient_of.end() ? constant_like(value, 0) : known->second);
  }
  return gradients;
}

}  // namespace dist::hlo::untyped
