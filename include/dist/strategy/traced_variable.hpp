#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dist/core/light_memory.hpp>
#include <dist/core/shape.hpp>
#include <dist/device/pjrt/managed_memory.hpp>
#include <dist/hlo/trace.hpp>
#include <dist/hlo/type.hpp>

namespace dist::detail {

/// Elements of a variable that are an array of their own in a program, from `offset` on.
struct VariableArray {
  std::size_t offset;
  Shape shape;
  friend bool operator==(const VariableArray&, const VariableArray&) = default;
};

/// A variable that a program uses: its elements before the step are arguments, and where the step writes them, those after
/// it are results. It is one array, or several parts, as the step first uses it: the parameters of a network are used one by
/// one, and no program copies them together. Elements between the parts stay what they are.
class TracedVariable {
 public:
  struct Part {
    VariableArray place;
    hlo::Value before, after;
    bool is_written = false;
  };
  using Resident = pjrt::ManagedMemory::Resident;

  template <class Variable>
  TracedVariable(const Variable& variable, std::span<const VariableArray> parts)
      : memory_(variable.memory().get()),
        offset_(variable.offset()),
        type_{hlo::element_kind<typename Variable::Element>, variable.shape()},
        name_(variable.name()),
        resident_(resident_of<typename Variable::Element>) {
    for (const VariableArray& part : parts) {
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
  [[nodiscard]] std::shared_ptr<Resident> resident(std::size_t replica) const { return resident_(*this, replica); }

  /// Its elements, as the step has left them so far. Those between the parts are 0.
  [[nodiscard]] hlo::Value read() const;
  void write(hlo::Value value);

  /// The same of some parts, in the order of their offsets.
  [[nodiscard]] std::vector<hlo::Value> read(std::span<const VariableArray> of) const;
  void write(std::span<const VariableArray> of, std::span<const hlo::Value> values);

 private:
  template <class T>
  static std::shared_ptr<Resident> resident_of(const TracedVariable& variable, std::size_t replica) {
    std::vector<pjrt::ManagedMemory::Part> places;
    for (const Part& part : variable.parts_) places.push_back({part.place.offset * sizeof(T), part.place.shape});
    return variable.memory_->resident<T>(replica, variable.offset_, places, variable.name_);
  }
  static void set(Part& part, hlo::Value value) {
    part.after = value;
    part.is_written = true;
  }
  [[nodiscard]] static hlo::Value part_of(hlo::Value whole, const VariableArray& place);
  [[nodiscard]] static hlo::Value flat(hlo::Value x);
  /// The variable with these elements in its parts, and `between(first, limit)` between them.
  template <class WorkerCollectives>
  [[nodiscard]] hlo::Value joined(std::span<const VariableArray> places, std::span<const hlo::Value> values,
                                  const WorkerCollectives& between) const;
  [[nodiscard]] std::vector<VariableArray> places() const;
  [[nodiscard]] std::vector<hlo::Value> after() const;
  [[nodiscard]] bool is_whole() const { return parts_.size() == 1 && parts_[0].place == VariableArray{0, type_.shape}; }
  [[nodiscard]] bool has(std::span<const VariableArray> places) const;

  pjrt::ManagedMemory* memory_;
  std::size_t offset_;  // of its slice of the memory
  hlo::Type type_;
  std::string name_;
  std::vector<Part> parts_;
  std::shared_ptr<Resident> (*resident_)(const TracedVariable&, std::size_t replica);
};

}  // namespace dist::detail

#ifndef DIST_COMPILED_PJRT
#include <dist/strategy/traced_variable.ipp>
#endif
