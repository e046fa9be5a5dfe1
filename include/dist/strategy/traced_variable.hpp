#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <dist/core/shape.hpp>
#include <dist/device/pjrt/managed_memory.hpp>
#include <dist/hlo/trace.hpp>
#include <dist/hlo/type.hpp>
#include <dist/hlo/untyped.hpp>

namespace dist::detail {

/// Elements of a variable that are an array of their own in a program, from `offset` on.
struct VariablePart {
  std::size_t offset;
  Shape shape;
  friend bool operator==(const VariablePart&, const VariablePart&) = default;
};

/// A variable that a program uses: its elements before the step are arguments, and where the step writes them, those after
/// it are results. It is one array, or several parts, as the step first uses it: the parameters of a network are used one by
/// one, and no program copies them together. Elements between the parts stay what they are.
class TracedVariable {
 public:
  struct Part {
    VariablePart place;
    hlo::Value before, after;
    bool is_written = false;
  };
  using Resident = pjrt::ManagedMemory::Resident;

  template <class Variable>
  TracedVariable(const Variable& variable, std::span<const VariablePart> parts)
      : memory_(variable.memory().get()),
        offset_(variable.offset()),
        type_{hlo::element_kind<typename Variable::Element>, variable.shape()},
        resident_(resident_of<typename Variable::Element>) {
    for (const VariablePart& part : parts) {
      const hlo::Value before = hlo::Trace::current().argument({type_.element, part.shape});
      parts_.push_back({part, before, before});
    }
  }

  template <class Variable>
  [[nodiscard]] bool is(const Variable& variable) const {
    return memory_ == variable.memory().get() && offset_ == variable.offset();
  }
  [[nodiscard]] const std::vector<Part>& parts() const noexcept { return parts_; }
  /// Where a replica has it, for programs.
  [[nodiscard]] Resident& resident(std::size_t replica) const { return resident_(*memory_, replica, offset_, parts_); }

  /// Its elements, as the step has left them so far. Those between the parts are 0.
  [[nodiscard]] hlo::Value read() const {
    if (is_whole()) return parts_[0].after;
    const auto zeros = [&](std::size_t first, std::size_t limit) {
      return hlo::untyped::constant({type_.element, Shape{limit - first}}, 0.0);
    };
    return joined(places(), after(), zeros);
  }
  void write(hlo::Value value) {
    if (is_whole()) return set(parts_[0], value);
    for (Part& part : parts_) set(part, part_of(value, part.place));
  }

  /// The same of some parts, in the order of their offsets.
  [[nodiscard]] std::vector<hlo::Value> read(std::span<const VariablePart> of) const {
    if (has(of)) return after();
    const hlo::Value whole = read();
    std::vector<hlo::Value> values;
    for (const VariablePart& place : of) values.push_back(part_of(whole, place));
    return values;
  }
  void write(std::span<const VariablePart> of, std::span<const hlo::Value> values) {
    if (!has(of)) {
      const hlo::Value old = flat(read());
      return write(joined(of, values, [&](std::size_t first, std::size_t limit) {
        return hlo::untyped::slice_along(old, 0, first, limit);
      }));
    }
    for (std::size_t i = 0; i < values.size(); ++i) set(parts_[i], values[i]);
  }

 private:
  template <class T>
  static Resident& resident_of(pjrt::ManagedMemory& memory, std::size_t replica, std::size_t offset,
                               std::span<const Part> parts) {
    std::vector<pjrt::ManagedMemory::Part> places;
    for (const Part& part : parts) places.push_back({part.place.offset * sizeof(T), part.place.shape});
    return memory.resident<T>(replica, offset, places);
  }
  static void set(Part& part, hlo::Value value) {
    part.after = value;
    part.is_written = true;
  }
  [[nodiscard]] static hlo::Value part_of(hlo::Value whole, const VariablePart& place) {
    const std::size_t limit = place.offset + place.shape.elements();
    return hlo::untyped::reshape(hlo::untyped::slice_along(flat(whole), 0, place.offset, limit), place.shape);
  }
  [[nodiscard]] static hlo::Value flat(hlo::Value x) {
    return hlo::untyped::reshape(x, Shape{hlo::untyped::type_of(x).shape.elements()});
  }
  /// The variable with these elements in its parts, and `between(first, limit)` between them.
  template <class Between>
  [[nodiscard]] hlo::Value joined(std::span<const VariablePart> places, std::span<const hlo::Value> values,
                                  const Between& between) const {
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
  [[nodiscard]] std::vector<VariablePart> places() const {
    std::vector<VariablePart> places;
    for (const Part& part : parts_) places.push_back(part.place);
    return places;
  }
  [[nodiscard]] std::vector<hlo::Value> after() const {
    std::vector<hlo::Value> values;
    for (const Part& part : parts_) values.push_back(part.after);
    return values;
  }
  [[nodiscard]] bool is_whole() const { return parts_.size() == 1 && parts_[0].place == VariablePart{0, type_.shape}; }
  [[nodiscard]] bool has(std::span<const VariablePart> places) const {
    return std::equal(places.begin(), places.end(), parts_.begin(), parts_.end(),
                      [](const VariablePart& place, const Part& part) { return place == part.place; });
  }

  pjrt::ManagedMemory* memory_;
  std::size_t offset_;  // of its slice of the memory
  hlo::Type type_;
  std::vector<Part> parts_;
  Resident& (*resident_)(pjrt::ManagedMemory&, std::size_t replica, std::size_t offset, std::span<const Part>);
};

}  // namespace dist::detail
