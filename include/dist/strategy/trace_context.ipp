#pragma once

#include <dist/core/algorithms.hpp>
#include <dist/hlo/untyped.hpp>
#include <dist/strategy/trace_context.hpp>

namespace dist::detail {

template <class WorkerCollectives>
hlo::Value TracedVariable::joined(std::span<const VariableArray> places, std::span<const hlo::Value> values,
                                  const WorkerCollectives& between) const {
  std::vector<hlo::Value> pieces;
  std::size_t end = 0;
  const auto fill_to = [&](std::size_t limit) {
    if (limit > end) pieces.push_back(between(end, limit));
  };
  for (std::size_t i = 0; i < places.size(); ++i) {
    fill_to(places[i].offset);
    pieces.push_back(flat(values[i]));
    end = places[i].offset + places[i].shape.elements();
  }
  fill_to(type_.shape.elements());
  return hlo::untyped::reshape(hlo::untyped::concatenate(pieces, 0), type_.shape);
}

DIST_INLINE hlo::Value TracedVariable::read() const {
  if (is_whole()) return parts_[0].after;
  const auto zeros = [&](std::size_t first, std::size_t limit) {
    return hlo::untyped::constant({type_.element, Shape{limit - first}}, 0.0);
  };
  return joined(places(), after(), zeros);
}

DIST_INLINE void TracedVariable::write(hlo::Value value) {
  if (is_whole()) return set(parts_[0], value);
  for (Part& part : parts_) set(part, part_of(value, part.place));
}

DIST_INLINE std::vector<hlo::Value> TracedVariable::read(std::span<const VariableArray> of) const {
  if (has(of)) return after();
  const hlo::Value whole = read();
  std::vector<hlo::Value> values;
  for (const VariableArray& place : of) values.push_back(part_of(whole, place));
  return values;
}

DIST_INLINE void TracedVariable::write(std::span<const VariableArray> of, std::span<const hlo::Value> values) {
  if (!has(of)) {
    const hlo::Value old = flat(read());
    return write(joined(of, values, [&](std::size_t first, std::size_t limit) {
      return hlo::untyped::slice_along(old, 0, first, limit);
    }));
  }
  for (std::size_t i = 0; i < values.size(); ++i) set(parts_[i], values[i]);
}

DIST_INLINE hlo::Value TracedVariable::part_of(hlo::Value whole, const VariableArray& place) {
  const std::size_t limit = place.offset + place.shape.elements();
  return hlo::untyped::reshape(hlo::untyped::slice_along(flat(whole), 0, place.offset, limit), place.shape);
}

DIST_INLINE hlo::Value TracedVariable::flat(hlo::Value x) {
  return hlo::untyped::reshape(x, Shape{hlo::untyped::type_of(x).shape.elements()});
}

DIST_INLINE std::vector<VariableArray> TracedVariable::places() const {
  std::vector<VariableArray> places;
  for (const Part& part : parts_) places.push_back(part.place);
  return places;
}

DIST_INLINE std::vector<hlo::Value> TracedVariable::after() const {
  std::vector<hlo::Value> values;
  for (const Part& part : parts_) values.push_back(part.after);
  return values;
}

DIST_INLINE bool TracedVariable::has(std::span<const VariableArray> places) const {
  return std::equal(places.begin(), places.end(), parts_.begin(), parts_.end(),
                    [](const VariableArray& place, const Part& part) { return place == part.place; });
}

}  // namespace dist::detail
