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
#include <string_view>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <vector>

#include <dist/context/in_trace.hpp>
#include <dist/context/operand.hpp>
#include <dist/context/structure.hpp>
#include <dist/core/axes.hpp>
#include <dist/core/error.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/hlo/collectives.hpp>
#include <dist/hlo/dynamic.hpp>
#include <dist/hlo/trace.hpp>
#include <dist/hlo/traced.hpp>
#include <dist/hlo/type.hpp>
#include <dist/hlo/untyped.hpp>
#include <dist/strategy/traced_variable.hpp>
#include <dist/variable/element_update.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/policies.hpp>

namespace dist {

namespace detail {

/// Numbers that the host gives a program for each call.
struct HostValues {
  hlo::Value argument;
  std::function<Tensor<float>()> make;
};

/// Which way a step goes that the host chooses for each call: a program is for one of them.
struct HostChoice {
  std::function<std::int64_t()> now;
  std::int64_t taken;
};

/// What a step that is traced uses besides the arguments of its calls.
struct StepTrace {
  /// How many rows of a replica's batch count, and how many the replicas before it have; nothing where the step does not ask.
  std::optional<hlo::Value> row_numbers = std::nullopt;
  std::deque<TracedVariable> variables;
  std::vector<HostValues> numbers;
  std::vector<HostChoice> choices;
  /// What is done on the host before a call is made, and when it has been made.
  std::vector<std::function<void()>> beforehand;
  std::vector<std::function<void()>> afterwards;
  /// What calls of a library class leave for later ones in the same step, by the object and the type of what is left.
  std::map<std::pair<const void*, std::type_index>, std::any> left;
  std::map<const void*, std::int64_t> calls;
};

template <class X>
concept TracedValue = hlo::TracedArray<X> || is_specialization<X, hlo::Dynamic>;

}  // namespace detail

/// Marks a traced array that every replica gives alike, such as what all_reduce gives.
template <detail::TracedValue X>
[[nodiscard]] Same<X> same(const X& x) {
  return {x};
}

/// The context of a step that is traced, in the place of a ReplicaContext: what the step does with it is written down for
/// the replicas on devices that XLA compiles for, and done whenever the program is called. Collectives and variables work
/// as in a replica function; their values are hlo::Traced ones. Code of the host runs once, while the step is traced: what it
/// computes is a constant of the program.
template <class S>
class TraceContext {
 public:
  using Strategy = S;
  static constexpr bool is_tracing = true;

  TraceContext(S& strategy, detail::StepTrace& step) : strategy_(&strategy), step_(&step) {}

  [[nodiscard]] S& strategy() const noexcept { return *strategy_; }
  [[nodiscard]] std::size_t num_replicas_in_sync() const noexcept { return strategy_->num_replicas_in_sync(); }
  [[nodiscard]] hlo::Traced<std::uint32_t> replica_id() const { return hlo::replica_id(); }
  /// How many rows of this replica's batch count: the first ones. The others pad the last batches of a dataset to the size
  /// for which the program was compiled.
  [[nodiscard]] hlo::Traced<std::int32_t> rows() const { return row_number(0); }
  /// The rows of the global batch that the replicas before this one have.
  [[nodiscard]] hlo::Traced<std::int32_t> first_row() const { return row_number(1); }

  /// The reduction of all replicas' values, the same on every replica: of traced arrays, numbers, and structures of these.
  template <class Op, class T, std::size_t... Extents>
  [[nodiscard(DIST_ALL_REDUCE_RETURNS)]] hlo::Traced<T, Extents...> all_reduce(Op op,
                                                                               hlo::Traced<T, Extents...> x) const {
    return hlo::all_reduce(op, x);
  }
  template <class Op, Reducible T>
  [[nodiscard(DIST_ALL_REDUCE_RETURNS)]] hlo::Traced<T> all_reduce(Op op, T number) const {
    return hlo::all_reduce(op, hlo::Traced<T>{number});
  }
  template <class Op, Structure Values>
  [[nodiscard(DIST_ALL_REDUCE_RETURNS)]] auto all_reduce(Op op, const Values& values) const {
    if constexpr (dist::detail::require_memberwise_op<Op, Values>())
      return map_structure(values, [&](const auto& member) { return all_reduce(op, member); });
    else
      return Values(values);
  }
  /// The arrays of all replicas, concatenated along `axis` in replica order, the same on every replica. Throws
  /// InvalidArgument for an axis that they do not have, and ShapeMismatch for numbers.
  template <class T>
  [[nodiscard(DIST_ALL_GATHER_RETURNS)]] hlo::Dynamic<T> all_gather(hlo::Dynamic<T> x, int axis) const {
    return hlo::Dynamic<T>{hlo::untyped::all_gather(x.value(), gathered_axis(axis, x.shape()))};
  }
  template <class T, std::size_t... Extents>
  [[nodiscard(DIST_ALL_GATHER_RETURNS)]] hlo::Dynamic<T> all_gather(hlo::Traced<T, Extents...> x, int axis) const {
    return all_gather(hlo::Dynamic<T>{x}, axis);
  }
  /// The same with the extents known when C++ compiles: `Replicas` is how many there are. Throws InvalidArgument where there
  /// is another number.
  template <std::size_t Replicas, std::size_t Axis = 0, class T, std::size_t... Extents>
  [[nodiscard(DIST_ALL_GATHER_RETURNS)]] auto all_gather(hlo::Traced<T, Extents...> x) const {
    return hlo::all_gather<Replicas, Axis>(x);
  }
  /// The reduction of all replicas' arrays, of which each gets an equal part along Axis. Throws as all_gather.
  template <std::size_t Replicas, std::size_t Axis = 0, class Op, class T, std::size_t... Extents>
  [[nodiscard]] auto reduce_scatter(Op op, hlo::Traced<T, Extents...> x) const {
    return hlo::reduce_scatter<Replicas, Axis>(op, x);
  }
  /// The array of replica `root`, on every replica. Throws InvalidArgument for a root that there is not.
  template <class T, std::size_t... Extents>
  [[nodiscard(DIST_BROADCAST_RETURNS)]] hlo::Traced<T, Extents...> broadcast(hlo::Traced<T, Extents...> x,
                                                                             std::size_t root) const {
    if (root >= num_replicas_in_sync())
      throw InvalidArgument("There is no replica to broadcast from",
                            concat("root ", root, " of ", num_replicas_in_sync(), " replicas"),
                            "Give a root from 0 to num_replicas_in_sync() - 1");
    return hlo::Traced<T, Extents...>{of_replica<T>(root, x.value())};
  }

  /// The elements of this replica's copy of a variable, as the step has left them so far. Throws WrongStrategy.
  template <class Variable>
  [[nodiscard]] hlo::Dynamic<typename Variable::Element> read(const Variable& variable) const {
    return hlo::Dynamic<typename Variable::Element>{traced(variable).read()};
  }
  /// The same, in the parts that `layout` lists: each has an `offset`, in elements, and a `shape`. A variable that a step
  /// first uses in parts is several arrays in the program.
  template <class Variable, class Layout>
  [[nodiscard]] std::vector<hlo::Value> read_parts(const Variable& variable, const Layout& layout) const {
    const std::vector<detail::VariableArray> parts = parts_of(layout);
    return traced(variable, parts).read(parts);
  }
  /// Changes them. Parts lie in the order of their offsets.
  template <class Variable, class Layout>
  void write_parts(const Variable& variable, const Layout& layout, std::span<const hlo::Value> values) const {
    const std::vector<detail::VariableArray> parts = parts_of(layout);
    traced(variable, parts).write(parts, values);
  }
  /// Of a variable with one element. Throws ShapeMismatch where there are more.
  template <class Variable>
  [[nodiscard]] hlo::Traced<typename Variable::Element> value(const Variable& variable) const {
    return one_of(variable, traced(variable).read());
  }
  /// What `read` and `value` give outside of a step: the copies of all replicas aggregated, where they may differ.
  template <class Variable>
  [[nodiscard]] hlo::Dynamic<typename Variable::Element> synchronized_read(const Variable& variable) const {
    return hlo::Dynamic<typename Variable::Element>{synchronized(variable)};
  }
  template <class Variable>
  [[nodiscard]] hlo::Traced<typename Variable::Element> synchronized_value(const Variable& variable) const {
    return one_of(variable, synchronized(variable));
  }

  /// Changes a variable as `Update` says, by a number or a traced array, aggregated first where the variable asks for it.
  /// Throws ShapeMismatch for an array of another shape.
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
      // A number of the host is a constant of the program, and the same on every replica.
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

  /// Numbers in this shape that `make` gives on the host for each call of the program, before it runs.
  [[nodiscard]] hlo::Dynamic<float> host_numbers(const Shape& shape, std::function<Tensor<float>()> make) const {
    const hlo::Value numbers = hlo::Trace::current().argument({hlo::element_kind<float>, shape});
    step_->numbers.push_back({numbers, std::move(make)});
    return hlo::Dynamic<float>{numbers};
  }
  /// Which of several ways the step goes in this program. `now()` says it before each call, and each way has a program of its
  /// own, which is compiled when the step first goes it.
  [[nodiscard]] std::int64_t choice(std::function<std::int64_t()> now) const {
    const std::int64_t taken = now();
    step_->choices.push_back({std::move(now), taken});
    return taken;
  }
  /// Has `call` called on the host before each call of the program, and before its numbers are made.
  void beforehand(std::function<void()> call) const { step_->beforehand.push_back(std::move(call)); }
  /// Has `call` called on the host after each call of the program was started.
  void afterwards(std::function<void()> call) const { step_->afterwards.push_back(std::move(call)); }

  /// Leaves `thing` for later calls of `owner` in this step, in the place of one of this type that it left before.
  template <class Thing>
  void leave(const void* owner, Thing thing) const {
    step_->left.insert_or_assign({owner, std::type_index{typeid(Thing)}}, std::any{std::move(thing)});
  }
  /// How often `owner` has asked this in this step before.
  [[nodiscard]] std::int64_t count_call(const void* owner) const { return step_->calls[owner]++; }
  /// What `owner` left, or a null pointer.
  template <class Thing>
  [[nodiscard]] const Thing* left(const void* owner) const {
    const auto found = step_->left.find({owner, std::type_index{typeid(Thing)}});
    return found == step_->left.end() ? nullptr : std::any_cast<Thing>(&found->second);
  }

  /// What a compiled step cannot do, for sentences.
  template <class Fn, class... Args>
  auto merge_call(Fn&&, Args&&...) const {
    static_assert(::dist::detail::always_false<Fn>,
                  "merge_call calls a function of the host for all replicas, which no program on devices can: use the "
                  "collectives of the replica, or call strategy.run");
  }
  template <bool is_host = false>
  [[nodiscard]] auto queue() const {
    static_assert(is_host,
                  "a compiled step puts no work into a queue: compute with hlo:: functions on traced arrays, or call "
                  "strategy.run");
  }
  template <class Body>
  void for_each(auto&&, Body&&) const {
    static_assert(::dist::detail::always_false<Body>,
                  "a compiled step calls no function of the host for each index: compute with whole traced arrays");
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
      throw ShapeMismatch("A number has no axis along which replicas' values could be gathered", "its shape is []",
                          "Give all_gather an array: reshape the number to [1]");
    return Axes::resolve(axis, shape);
  }

  template <class Variable>
  [[nodiscard]] detail::TracedVariable& traced(const Variable& variable) const {
    static_assert(!detail::is_on_shard<typename Variable::Synchronization>,
                  "a compiled step uses no OnShard variables, whose elements have owners: use OnWrite");
    return traced(variable, std::array{detail::VariableArray{0, variable.shape()}});
  }
  /// In `parts`, unless the step has used it before.
  template <class Variable>
  [[nodiscard]] detail::TracedVariable& traced(const Variable& variable,
                                               std::span<const detail::VariableArray> parts) const {
    using Memory = std::remove_cvref_t<decltype(*variable.memory())>;
    constexpr bool is_on_devices = std::same_as<Memory, pjrt::ManagedMemory>;
    static_assert(
        is_on_devices,
        "a compiled step uses variables on the devices that it is compiled for: make this one with the strategy "
        "that compiles the step");
    if constexpr (is_on_devices) {
      for (detail::TracedVariable& known : step_->variables)
        if (known.is(variable)) return known;
      if (!strategy_->owns(variable))
        throw WrongStrategy(concat("Variable '", variable.name(), "' was used with a strategy that did not make it"),
                            concat("the step is compiled for ", strategy_->describe()),
                            "Make the variable with the strategy that compiles the step");
      return step_->variables.emplace_back(variable, parts);
    } else {
      return step_->variables.front();  // refused above
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
                    "an OnRead variable with aggregation None has no value of all replicas: read the replica's own, or "
                    "give it an aggregation");
      if constexpr (!std::same_as<Agg, None>) return aggregated<Agg, typename Variable::Element>(own);
    }
    return own;
  }

  /// The value that replica `root` has.
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

  /// What was given, in the variable's type and shape.
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
                    "in a compiled step a variable is written with a number or a traced array: a tensor of the host "
                    "comes as an argument of the step");
      if constexpr (is_traced) {
        static_assert(std::same_as<typename Given::Element, T>,
                      "a variable is written with a traced array of its own element type: use x.as<T>()");
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
