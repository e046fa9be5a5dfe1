#pragma once

#include <utility>

#include <dist/hlo/scan.hpp>

namespace dist::hlo::untyped {

DIST_INLINE std::vector<Value> loop(const StateFunction& condition, const StateFunction& body,
                                    const std::vector<Value>& initial) {
  Trace& trace = Trace::current();
  std::vector<Type> types;
  for (const Value value : initial) types.push_back(type_of(value));
  Operation operation{"while", initial, "", {}};
  operation.regions = {trace.region(types, condition), trace.region(types, body)};
  return trace.add(std::move(operation), types);
}

}  // namespace dist::hlo::untyped
