#pragma once

#include <any>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <vector>

#include <dist/context/in_trace.hpp>
#include <dist/context/operand.hpp>
#include <dist/context/structure.hpp>
#include <dist/core/axes.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/device/pjrt/managed_memory.hpp>
#include <dist/hlo/collectives.hpp>
#include <dist/hlo/dynamic.hpp>
#include <dist/hlo/trace.hpp>
#include <dist/hlo/traced.hpp>
#include <dist/hlo/type.hpp>
#include <dist/hlo/untyped.hpp>
#include <dist/variable/element_update.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/policies.hpp>

namespace dist {

namespace detail {

/// Elements of a variable, from `offset` on, that are one array in a program.
struct VariableArray {
  std::size_t offset;
  Shape shape;
  friend bool operator==(const VariableArray&, const VariableArray&) = default;
};

/// A variable in a program: its elements are arguments, and written elements are results. It is one array, or several
/// parts, according to its first use in the step: a network's parameters are used one by one, without copying them
/// together. Elements between parts are unchanged.
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
  /// A replica's memory of the variable, for programs.
  [[nodiscard]] std::shared_ptr<Resident> resident(std::size_t replica) const { return resident_(*this, replica); }

  /// Returns the elements as currently written; 0 between the parts.
  [[nodiscard]] hlo::Value read() const;
  void write(hlo::Value value);

  /// Returns the elements of parts, in the order of offsets.
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
  /// Returns the variable with these parts, and `between(first, limit)` between them.
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

/// Numbers that the host passes to each call of a program.
struct HostValues {
  hlo::Value argument;
  std::function<Tensor<float>()> make;
};

/// A choice of the host between variants of a step at each call; each has its own program.
struct HostChoice {
  std::function<std::int64_t()> now;
  std::int64_t taken;
};

/// Inputs of a traced step in addition to its arguments.
struct StepTrace {
  /// The number of valid rows in a replica's batch, and in earlier replicas' batches; empty if unused.
  std::optional<hlo::Value> row_numbers = std::nullopt;
  std::deque<TracedVariable> variables;
  std::vector<HostValues> numbers;
  std::vector<HostChoice> choices;
  /// Host functions to call before the program starts, and after.
  std::vector<std::function<void()>> beforehand;
  std::vector<std::function<void()>> afterwards;
  /// Data that library classes store for later calls in the step, by object and type.
  std::map<std::pair<const void*, std::type_index>, std::any> left;
  std::map<const void*, std::int64_t> calls;
};

template <class X>
concept TracedValue = hlo::TracedArray<X> || is_specialization<X, hlo::Dynamic>;

}  // namespace detail

/// Marks a traced array as equal on all replicas, like a result of all_reduce.
template <detail::TracedValue X>
[[nodiscard]] Same<X> same(const X& x) {
  return {x};
}

/// The context of a traced step, in place of a ReplicaContext: its operations are recorded for replicas on Xla devices,
/// and executed whenever the program runs. Collectives and variables work as in a replica function, with hlo::Traced
/// values. Host code runs once, during tracing: its results are constants.
template <class S>
class TraceContext {
 public:
  /// The type of the strategy.
  using Strategy = S;
  /// True: replica functions choose their compiled form by it.
  static constexpr bool is_tracing = true;

  /// The context while `step` is traced for `strategy`.
  TraceContext(S& strategy, detail::StepTrace& step) : strategy_(&strategy), step_(&step) {}

  /// The strategy that compiles the step.
  [[nodiscard]] S& strategy() const noexcept { return *strategy_; }
  /// The number of replicas of the program.
  [[nodiscard]] std::size_t num_replicas_in_sync() const noexcept { return strategy_->num_replicas_in_sync(); }
  /// The number of the replica that runs the program.
  [[nodiscard]] hlo::Traced<std::uint32_t> replica_id() const { return hlo::replica_id(); }
  /// The number of valid rows, which come first in this replica's batch. Others pad a dataset's last batches to the
  /// program's size.
  [[nodiscard]] hlo::Traced<std::int32_t> rows() const { return row_number(0); }
  /// The number of rows in the global batch that belong to earlier replicas.
  [[nodiscard]] hlo::Traced<std::int32_t> first_row() const { return row_number(1); }

  /// Returns the reduction of all replicas' traced arrays, numbers, or structures, the same on every replica.
  template <class Op, class T, std::size_t... Extents>
  [[nodiscard(DIST_ALL_REDUCE_RETURNS)]] hlo::Traced<T, Extents...> all_reduce(Op op,
                                                                               hlo::Traced<T, Extents...> x) const {
    return hlo::all_reduce(op, x);
  }
  /// Returns the sum or another reduction of all replicas' numbers, as a traced number.
  template <class Op, Reducible T>
  [[nodiscard(DIST_ALL_REDUCE_RETURNS)]] hlo::Traced<T> all_reduce(Op op, T number) const {
    return hlo::all_reduce(op, hlo::Traced<T>{number});
  }
  /// Reduces every member of a structure.
  template <class Op, Structure Values>
  [[nodiscard(DIST_ALL_REDUCE_RETURNS)]] auto all_reduce(Op op, const Values& values) const {
    if constexpr (dist::detail::require_memberwise_op<Op, Values>())
      return map_structure(values, [&](const auto& member) { return all_reduce(op, member); });
    else
      return Values(values);
  }
  /// Returns all replicas' arrays, concatenated along `axis` in replica order, the same on every replica. Throws
  /// InvalidArgument if `axis` is out of range, and ShapeMismatch for numbers.
  template <class T>
  [[nodiscard(DIST_ALL_GATHER_RETURNS)]] hlo::Dynamic<T> all_gather(hlo::Dynamic<T> x, int axis) const {
    return hlo::Dynamic<T>{hlo::untyped::all_gather(x.value(), gathered_axis(axis, x.shape()))};
  }
  /// Gathers an array with a static shape, like the overload for hlo::Dynamic.
  template <class T, std::size_t... Extents>
  [[nodiscard(DIST_ALL_GATHER_RETURNS)]] hlo::Dynamic<T> all_gather(hlo::Traced<T, Extents...> x, int axis) const {
    return all_gather(hlo::Dynamic<T>{x}, axis);
  }
  /// Returns all replicas' arrays, concatenated, with extents known at compile time. Throws InvalidArgument if there
  /// are not `Replicas` replicas.
  template <std::size_t Replicas, std::size_t Axis = 0, class T, std::size_t... Extents>
  [[nodiscard(DIST_ALL_GATHER_RETURNS)]] auto all_gather(hlo::Traced<T, Extents...> x) const {
    return hlo::all_gather<Replicas, Axis>(x);
  }
  /// Returns this replica's equal part, along Axis, of the reduction. Throws like all_gather.
  template <std::size_t Replicas, std::size_t Axis = 0, class Op, class T, std::size_t... Extents>
  [[nodiscard]] auto reduce_scatter(Op op, hlo::Traced<T, Extents...> x) const {
    return hlo::reduce_scatter<Replicas, Axis>(op, x);
  }
  /// Returns the array of replica `root` on every replica. Throws InvalidArgument if `root` is out of range.
  template <class T, std::size_t... Extents>
  [[nodiscard(DIST_BROADCAST_RETURNS)]] hlo::Traced<T, Extents...> broadcast(hlo::Traced<T, Extents...> x,
                                                                             std::size_t root) const {
    if (root >= num_replicas_in_sync())
      throw InvalidArgument("The root of a broadcast is out of range",
                            concat("root ", root, " of ", num_replicas_in_sync(), " replicas"),
                            "Give a root from 0 to num_replicas_in_sync() - 1");
    return hlo::Traced<T, Extents...>{of_replica<T>(root, x.value())};
  }

  /// Returns this replica's copy of a variable, as currently written. Throws WrongStrategy.
  template <class Variable>
  [[nodiscard]] hlo::Dynamic<typename Variable::Element> read(const Variable& variable) const {
    return hlo::Dynamic<typename Variable::Element>{traced(variable).read()};
  }
  /// Returns the parts in `layout`: each has an `offset`, in elements, and a `shape`. A variable first used in parts
  /// becomes several arrays in the program.
  template <class Variable, class Layout>
  [[nodiscard]] std::vector<hlo::Value> read_parts(const Variable& variable, const Layout& layout) const {
    const std::vector<detail::VariableArray> parts = parts_of(layout);
    return traced(variable, parts).read(parts);
  }
  /// Writes elements in parts, in the order of their offsets.
  template <class Variable, class Layout>
  void write_parts(const Variable& variable, const Layout& layout, std::span<const hlo::Value> values) const {
    const std::vector<detail::VariableArray> parts = parts_of(layout);
    traced(variable, parts).write(parts, values);
  }
  /// Throws ShapeMismatch if the variable has more than one element.
  template <class Variable>
  [[nodiscard]] hlo::Traced<typename Variable::Element> value(const Variable& variable) const {
    return one_of(variable, traced(variable).read());
  }
  /// Returns what `read` and `value` return outside a step: the aggregate of copies that may differ.
  template <class Variable>
  [[nodiscard]] hlo::Dynamic<typename Variable::Element> synchronized_read(const Variable& variable) const {
    return hlo::Dynamic<typename Variable::Element>{synchronized(variable)};
  }
  /// Returns the value of `synchronized_read` for a variable with one element.
  template <class Variable>
  [[nodiscard]] hlo::Traced<typename Variable::Element> synchronized_value(const Variable& variable) const {
    return one_of(variable, synchronized(variable));
  }

  /// Changes a variable according to `Update`, by a number or traced array, aggregated first if required. Throws
  /// ShapeMismatch if shapes differ.
  template <class Update, class Variable, class Given>
  void write(const Variable& variable, const Given& given) const {
    using T = typename Variable::Element;
    using Agg = typename Variable::Aggregation;
    constexpr bool is_same = detail::is_same_value<Given>;
    constexpr bool aggregates = std::same_as<typename Variable::Synchronization, OnWrite> && !std::same_as<Agg, None>;
    detail::require_same_is_not_summed<is_same && aggregates && std::same_as<Agg, Sum>>();
    if constexpr (detail::require_update_of<T, Update>()) {
      detail::TracedVariable& target = traced(variable);
      hlo::Value value = given_value(variable, given);
      // A host number is a constant of the program, equal on every replica.
      constexpr bool is_alike = is_same || (Reducible<Given> && !std::same_as<Agg, Sum>);
      if constexpr (aggregates && !is_alike) value = aggregated<Agg, T>(value);
      if constexpr (std::same_as<Update, Sum>)
        value = hlo::untyped::add(target.read(), value);
      else if constexpr (std::same_as<Update, detail::Subtract>)
        value = hlo::untyped::subtract(target.read(), value);
      else
        static_assert(std::same_as<Update, detail::Assign>);
      target.write(value);
    }
  }

  /// Numbers that `make` creates on the host before each call of the program.
  [[nodiscard]] hlo::Dynamic<float> host_numbers(const Shape& shape, std::function<Tensor<float>()> make) const {
    const hlo::Value numbers = hlo::Trace::current().argument({hlo::element_kind<float>, shape});
    step_->numbers.push_back({numbers, std::move(make)});
    return hlo::Dynamic<float>{numbers};
  }
  /// Returns the current choice between variants of the step. `now()` is called before each call; each variant has its
  /// own program, compiled when first chosen.
  [[nodiscard]] std::int64_t choice(std::function<std::int64_t()> now) const {
    const std::int64_t taken = now();
    step_->choices.push_back({std::move(now), taken});
    return taken;
  }
  /// Calls `call` on the host before each call of the program, and before its numbers are created.
  void beforehand(std::function<void()> call) const { step_->beforehand.push_back(std::move(call)); }
  /// Calls `call` on the host after each call of the program was started.
  void afterwards(std::function<void()> call) const { step_->afterwards.push_back(std::move(call)); }

  /// Stores `thing` for later calls of `owner` in this step, replacing one of this type.
  template <class Thing>
  void leave(const void* owner, Thing thing) const {
    step_->left.insert_or_assign({owner, std::type_index{typeid(Thing)}}, std::any{std::move(thing)});
  }
  /// Returns how many times `owner` called this before in this step.
  [[nodiscard]] std::int64_t count_call(const void* owner) const { return step_->calls[owner]++; }
  /// Returns what `owner` stored, or null.
  template <class Thing>
  [[nodiscard]] const Thing* left(const void* owner) const {
    const auto found = step_->left.find({owner, std::type_index{typeid(Thing)}});
    return found == step_->left.end() ? nullptr : std::any_cast<Thing>(&found->second);
  }

  /// Error messages for operations that a compiled step does not support.
  template <class Fn, class... Args>
  auto merge_call(Fn&&, Args&&...) const {
    static_assert(::dist::detail::always_false<Fn>,
                  "merge_call calls a host function for all replicas, which a compiled step cannot do: use the "
                  "collectives of the replica, or call strategy.run");
  }
  /// Error message: a compiled step has no queue.
  template <bool is_host = false>
  [[nodiscard]] auto queue() const {
    static_assert(is_host,
                  "a compiled step has no queue: compute with hlo:: functions on traced arrays, or call strategy.run");
  }
  /// Error message: a compiled step does not call functions of the host.
  template <class Body>
  void for_each(auto&&, Body&&) const {
    static_assert(::dist::detail::always_false<Body>,
                  "a compiled step cannot call a host function for each index: compute with whole traced arrays");
  }

 private:
  [[nodiscard]] hlo::Traced<std::int32_t> row_number(std::size_t which) const {
    if (!step_->row_numbers)
      step_->row_numbers = hlo::Trace::current().argument({hlo::element_kind<std::int32_t>, Shape{2}});
    const hlo::Value number = hlo::untyped::slice_along(*step_->row_numbers, 0, which, which + 1);
    return hlo::Traced<std::int32_t>{hlo::untyped::reshape(number, Shape{})};
  }

  [[nodiscard]] static std::size_t gathered_axis(int axis, const Shape& shape) {
    if (shape.rank() == 0)
      throw ShapeMismatch("A number has no axis to gather along", "its shape is []",
                          "Give all_gather an array: reshape the number to [1]");
    return Axes::resolve(axis, shape);
  }

  template <class Variable>
  [[nodiscard]] detail::TracedVariable& traced(const Variable& variable) const {
    static_assert(!detail::is_on_shard<typename Variable::Synchronization>,
                  "a compiled step cannot use OnShard variables, because their elements have owners: use OnWrite");
    return traced(variable, std::array{detail::VariableArray{0, variable.shape()}});
  }
  /// Divides the variable into `parts` at its first use in the step.
  template <class Variable>
  [[nodiscard]] detail::TracedVariable& traced(const Variable& variable,
                                               std::span<const detail::VariableArray> parts) const {
    using Memory = std::remove_cvref_t<decltype(*variable.memory())>;
    constexpr bool is_on_devices = std::same_as<Memory, pjrt::ManagedMemory>;
    static_assert(is_on_devices,
                  "a compiled step can use only variables on the devices that it is compiled for: make this one with "
                  "the strategy that compiles the step");
    if constexpr (is_on_devices) {
      for (detail::TracedVariable& known : step_->variables)
        if (known.is(variable)) return known;
      if (!strategy_->owns(variable))
        throw WrongStrategy(concat("Variable '", variable.name(), "' was used with a strategy that did not make it"),
                            concat("the step is compiled for ", strategy_->describe()),
                            "Make the variable with the strategy that compiles the step");
      return step_->variables.emplace_back(variable, parts);
    } else {
      return step_->variables.front();  // rejected above
    }
  }
  template <class Layout>
  [[nodiscard]] static std::vector<detail::VariableArray> parts_of(const Layout& layout) {
    std::vector<detail::VariableArray> parts;
    for (const auto& part : layout) parts.push_back({part.offset, part.shape});
    return parts;
  }

  template <class Variable>
  [[nodiscard]] hlo::Traced<typename Variable::Element> one_of(const Variable& variable, hlo::Value value) const {
    if (variable.size() != 1)
      throw ShapeMismatch(concat("Variable '", variable.name(), "' has no single value"),
                          concat("its shape is ", to_string(variable.shape())),
                          "Use read for variables with several elements");
    return hlo::Traced<typename Variable::Element>{hlo::untyped::reshape(value, Shape{})};
  }

  template <class Variable>
  [[nodiscard]] hlo::Value synchronized(const Variable& variable) const {
    using Agg = typename Variable::Aggregation;
    const hlo::Value own = traced(variable).read();
    if constexpr (std::same_as<typename Variable::Synchronization, OnRead>) {
      static_assert(!std::same_as<Agg, None>,
                    "an OnRead variable with aggregation None has no common value of all replicas: read the replica's "
                    "own copy, or give the variable an aggregation");
      if constexpr (!std::same_as<Agg, None>) return aggregated<Agg, typename Variable::Element>(own);
    }
    return own;
  }

  template <class T>
  [[nodiscard]] static hlo::Value of_replica(std::size_t root, hlo::Value value) {
    const hlo::Type& type = hlo::untyped::type_of(value);
    const hlo::Traced<bool> is_root = hlo::replica_id() == static_cast<std::uint32_t>(root);
    const hlo::Value nothing = hlo::untyped::constant(type, hlo::literal(T{}));
    return hlo::untyped::all_reduce(
        std::same_as<T, bool> ? "maximum" : "add",
        hlo::untyped::select(hlo::untyped::broadcast(is_root.value(), type.shape, {}), value, nothing));
  }

  template <class Agg, class T>
  [[nodiscard]] hlo::Value aggregated(hlo::Value value) const {
    const hlo::Type& type = hlo::untyped::type_of(value);
    if constexpr (std::same_as<Agg, OnlyFirstReplica>) {
      return of_replica<T>(0, value);
    } else {
      const hlo::Value total = hlo::untyped::all_reduce("add", value);
      if constexpr (!std::same_as<Agg, Mean>)
        return total;
      else
        return hlo::untyped::divide(total, hlo::untyped::constant(type, static_cast<double>(num_replicas_in_sync())));
    }
  }

  /// Returns the value in the variable's type and shape.
  template <class Variable, class Given>
  [[nodiscard]] hlo::Value given_value(const Variable& variable, const Given& given) const {
    using T = typename Variable::Element;
    const hlo::Type type{hlo::element_kind<T>, variable.shape()};
    if constexpr (detail::is_same_value<Given>) {
      return given_value(variable, given.value);
    } else if constexpr (Reducible<Given>) {
      return hlo::untyped::constant(type, hlo::literal(detail::to_element<T>(given, variable.name())));
    } else {
      constexpr bool is_traced = detail::TracedValue<Given>;
      static_assert(is_traced,
                    "in a compiled step, a variable is written with a number or a traced array: pass a host tensor as "
                    "an argument of the step");
      if constexpr (is_traced) {
        static_assert(std::same_as<typename Given::Element, T>,
                      "a variable is written with a traced array of its element type: use x.as<T>()");
        return shaped(variable, given.value());
      }
    }
  }

  template <class Variable>
  [[nodiscard]] hlo::Value shaped(const Variable& variable, hlo::Value value) const {
    const Shape& shape = hlo::untyped::type_of(value).shape;
    if (shape == variable.shape()) return value;
    if (shape.rank() == 0) return hlo::untyped::broadcast(value, variable.shape(), {});
    throw ShapeMismatch(concat("A traced array does not fit variable '", variable.name(), "'"),
                        concat("its shape is ", to_string(shape), ", the variable's ", to_string(variable.shape())),
                        "Give an array of the variable's shape, or one number for all elements");
  }

  S* strategy_;
  detail::StepTrace* step_;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/strategy/trace_context.ipp>
#endif
