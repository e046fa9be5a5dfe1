#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/replica_context.hpp>
#include <dist/context/strategy.hpp>
#include <dist/context/worker_copies.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/indexed_slices.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/check.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/options.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/scatter.hpp>  // and with it the collectives of indexed slices
#include <dist/variable/slot_update.hpp>

namespace dist::nn {

/// A variable that stores the slots of optimizers itself.
template <class V>
concept KeepsSlotsElsewhere = requires(V& variable) {
  { variable.take_slots(std::size_t{}) } -> std::same_as<std::uint32_t>;
};

/// Applies sparse gradients, slices with row indices, for example of an embedding table, to one variable:
///
///     nn::SlicesOptimizer optimizer{strategy, table, nn::Adam{}};
///     strategy.run([&](auto& replica) { optimizer.apply_slices(replica, slices); });
///
/// Rows without a gradient keep their values and slots. Without slots, as in SGD without momentum, this equals a dense
/// gradient with zeros. With slots it does not: to update all rows' moments, densify the gradient and use Optimizer.
/// Requires the host's memory: a strategy on Cpu. The variable must outlive the optimizer.
///
/// Under a ParameterServer the variable is a table on the servers only, from `strategy.variable<float>(shape)`. They
/// update rows at the end of the step, and store the slots. Workers copy the optimizer (HasWorkerCopies).
template <class S, class Variable, class O>
class SlicesOptimizer {
  static_assert(!detail::is_with<O>,
                "nn::SlicesOptimizer takes an optimizer without options, because options need the whole gradient, not "
                "only some rows: densify the gradient and use nn::Optimizer");
  static_assert(!ScalesByNorms<O>,
                "nn::SlicesOptimizer updates some rows of a parameter, but this optimizer, like nn::Lamb, needs norms "
                "of the whole parameter: densify the gradient and use nn::Optimizer, or use another optimizer");
  static_assert(std::same_as<typename Variable::Synchronization, OnWrite> || S::Store::shared,
                "nn::SlicesOptimizer makes the same change to every copy, and reading an OnRead variable would "
                "aggregate these changes again: make the variable OnWrite");

 public:
  /// The type of the variable's elements.
  using Element = typename Variable::Element;

  /// Throws InvalidArgument for hyper-parameters out of range and variables that are not trainable (spec G03),
  /// ShapeMismatch for a scalar, and OutOfMemory.
  SlicesOptimizer(S& strategy, Variable& variable, O function)
      : function_(std::move(function)),
        variable_(&variable),
        iterations_(strategy.template host_variable<std::int64_t, OnWrite, OnlyFirstReplica>(
            Shape{}, std::int64_t{0}, concat(O::name, "/iterations"))) {
    function_.check();
    detail::require_trainable(variable);
    if (variable.shape().rank() == 0)
      throw ShapeMismatch(concat("Variable '", variable.name(), "' has no rows"), "it is a scalar",
                          "Give a SlicesOptimizer a variable of rank 1 or more");
    scratch_.assign(strategy.num_local_replicas(), Scratch{TensorView<Element>{nullptr, variable.shape()}.row_size()});
    function_.template with_update<Element>(1, [&](const auto update) {
      slots_.reserve(update.slots.size());
      for (const std::string_view slot : update.slots)
        slots_.push_back(strategy.template variable<Element, OnWrite, None>(
            variable.shape(), Element{0}, concat(variable.name(), "/", O::name, "/", slot)));
    });
  }

  /// Concatenates all replicas' slices in rank order, sums rows with equal indices, and updates these rows in every
  /// copy (spec H10, P07, P14). Counts one iteration. Replicas may give different numbers of rows, even none. A
  /// collective call. Throws ShapeMismatch unless the slices' dense shape is the variable's.
  template <InReplica Replica>
  void apply_slices(const Replica& replica, const IndexedSlicesView<Element>& gradient) {
    if (gradient.dense_shape() != variable_->shape())
      throw ShapeMismatch(concat("Indexed slices do not fit variable '", variable_->name(), "'"),
                          concat("they belong to an array of shape ", to_string(gradient.dense_shape()),
                                 ", the variable has shape ", to_string(variable_->shape())),
                          "Give slices of an array of the variable's shape");
    // Others read slices while copies change, so views of a copy are cloned.
    if (dist::detail::lie_in_a_copy(gradient.values().elements(), *variable_, replica) ||
        dist::detail::lie_in_a_copy(gradient.indices(), *variable_, replica))
      return apply_slices(replica, IndexedSlices<Element>{gradient});
    const std::int64_t iteration = iterations_.value(replica) + 1;
    with_slices_of_all(replica.collectives(), gradient, [&](std::size_t members, const auto& slices_of) {
      Scratch& scratch = scratch_[replica.local_index()];
      scratch.entries.clear();
      for (std::size_t rank = 0; rank < members; ++rank) scratch.add(slices_of(rank));
      std::sort(scratch.entries.begin(), scratch.entries.end());
      function_.template with_update<Element>(iteration, [&](const auto update) {
        SlotUpdate<std::remove_const_t<decltype(update)>, Element> with_slots{update, {}};
        for (std::size_t k = 0; k < slots_.size(); ++k) with_slots.slots[k] = slots_[k].component(replica).data();
        update_rows(replica, with_slots, scratch);
      });
    });
    iterations_.assign(replica, same(iteration));
  }

  /// Updates the rows of `gradient`, like the overload for a view.
  void apply_slices(const InReplica auto& replica, const IndexedSlices<Element>& gradient) {
    apply_slices(replica, gradient.view());
  }

  /// Returns the number of steps up to now (spec P12).
  template <class Context>
  [[nodiscard]] std::int64_t iterations(const Context& context) const {
    return iterations_.value(context);
  }
  /// The optimizer's arithmetic with its hyper-parameters, such as nn::Adam.
  [[nodiscard]] const O& function() const noexcept { return function_; }

  /// Tracks the iterations and the slots, by their names in the functor. See Trackable.
  void track(auto& visit) {
    visit("iterations", iterations_);
    function_.template with_update<Element>(1, [&](const auto update) {
      for (std::size_t k = 0; k < slots_.size(); ++k) visit(update.slots[k], slots_[k]);
    });
  }

 private:
  using Slot =
      decltype(std::declval<S&>().template variable<Element, OnWrite, None>(Shape{}, Element{0}, std::string{}));

  /// A row of a gradient: the variable's row, the number of earlier rows, and the elements.
  struct Entry {
    std::int64_t index;
    std::size_t number;
    const Element* row;
    friend bool operator<(const Entry& a, const Entry& b) {
      return a.index != b.index ? a.index < b.index : a.number < b.number;
    }
  };
  /// A replica's working memory, kept between steps.
  struct alignas(cache_line) Scratch {
    std::vector<Entry> entries;
    std::vector<Accumulator<Element>> sums;  // of the rows of one index
    std::vector<Element> row;                // the sums, rounded once

    explicit Scratch(std::size_t row_size) : sums(row_size), row(row_size) {}

    void add(const IndexedSlicesView<Element>& slices) {
      for (std::size_t i = 0; i < slices.rows(); ++i)
        entries.push_back({slices.indices()[i], entries.size(), slices.values().data() + i * row.size()});
    }
    /// Returns the sum of one index's rows, in order.
    [[nodiscard]] std::span<const Element> total(std::span<const Entry> rows) {
      if (rows.size() == 1) return {rows[0].row, row.size()};
      std::copy_n(rows[0].row, sums.size(), sums.begin());
      for (const Entry& next : rows.subspan(1)) dist::detail::combine(sum, std::span{sums}, next.row);
      for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<Element>(sums[i]);
      return row;
    }
  };

  /// Updates rows with gradients in this replica's copy, or its part of a shared copy.
  template <class Replica, class Update>
  void update_rows(const Replica& replica, const Update& update, Scratch& scratch) {
    const std::span<Element> weights = variable_->component(replica);
    const std::span<const Entry> entries{scratch.entries};
    const auto begins_row = [&](std::size_t i) { return i == 0 || entries[i].index != entries[i - 1].index; };
    std::size_t distinct = 0;
    for (std::size_t i = 0; i < entries.size(); ++i)
      if (begins_row(i)) ++distinct;
    StoreOf<Replica>::share_out(replica, distinct, [&](IndexRange mine) {
      std::size_t begin = 0;
      for (std::size_t row = 0; row < mine.end; ++row) {
        std::size_t end = begin + 1;
        while (end < entries.size() && !begins_row(end)) ++end;
        if (row >= mine.begin) {
          const std::size_t first = static_cast<std::size_t>(entries[begin].index) * scratch.row.size();
          dist::detail::update_block(update, first, weights.subspan(first, scratch.row.size()),
                                     scratch.total(entries.subspan(begin, end - begin)));
        }
        begin = end;
      }
    });
  }

  O function_;
  Variable* variable_;
  decltype(std::declval<S&>().template host_variable<std::int64_t, OnWrite, OnlyFirstReplica>(
      Shape{}, std::int64_t{0}, std::string{})) iterations_;
  std::vector<Slot> slots_;
  std::vector<Scratch> scratch_;
};

/// Deduces the template arguments.
template <Strategy S, class Variable, class O>
SlicesOptimizer(S&, Variable&, O) -> SlicesOptimizer<S, Variable, O>;

/// An optimizer of a table on parameter servers.
template <class S, class Variable, class O>
  requires(KeepsVariablesOnHost<S>&& OptimizerFunction<O>&& RemoteStore<typename S::Store>)
class SlicesOptimizer<S, Variable, O> {
  static_assert(!detail::is_with<O> && !ScalesByNorms<O>,
                "nn::SlicesOptimizer takes an optimizer without options, but not nn::Lamb: options and nn::Lamb need "
                "the whole gradient, not only some rows");
  static_assert(KeepsSlotsElsewhere<Variable>,
                "nn::SlicesOptimizer on a ParameterServer updates a table that is stored only on the servers: make it "
                "with strategy.variable<float>(shape)");

 public:
  /// The type of the table's elements.
  using Element = typename Variable::Element;

  /// Throws InvalidArgument for hyper-parameters out of range, and the errors of `ParameterServer::variable`.
  SlicesOptimizer(S& strategy, Variable& table, O function)
      : SlicesOptimizer(strategy, table, std::move(function), table.take_slots(slot_names(function).size())) {
    table.ensure_slots(strategy.scope(), std::vector<double>(slot_names(function_).size(), 0.0), first_slot_);
  }
  /// Creates a worker's copy.
  SlicesOptimizer(S& strategy, Variable& table, O function, std::uint32_t first_slot)
      : variables_made_(strategy),
        function_(std::move(function)),
        table_(&table),
        iterations_(strategy.template host_variable<std::int64_t, OnWrite, OnlyFirstReplica>(
            Shape{}, std::int64_t{0}, concat(table.name(), "/", O::name, "/iterations"))),
        first_slot_(first_slot) {
    function_.check();
  }

  /// Sends the rows of `gradient` to the servers, which update these rows and their slots.
  void apply_slices(const InReplica auto& replica, const IndexedSlicesView<Element>& gradient) {
    function_.template with_update<Element>(iterations_.value(replica) + 1, [&](const auto& functor) {
      S::Store::cache_of(replica).push_rows(*table_, gradient, functor, first_slot_);
    });
    iterations_.assign_add(replica, same(std::int64_t{1}));
  }
  /// Updates the rows of `gradient`, like the overload for a view.
  void apply_slices(const InReplica auto& replica, const IndexedSlices<Element>& gradient) {
    apply_slices(replica, gradient.view());
  }

  /// Returns the number of steps up to now (spec P12).
  template <class Context>
  [[nodiscard]] std::int64_t iterations(const Context& context) const {
    return iterations_.value(context);
  }
  /// The optimizer's arithmetic with its hyper-parameters, such as nn::Adam.
  [[nodiscard]] const O& function() const noexcept { return function_; }
  // See HasWorkerCopies.
  [[nodiscard]] const VariablesMade& variables_made() const noexcept { return variables_made_; }
  [[nodiscard]] std::tuple<Variable&, const O&, std::uint32_t> arguments() const {
    return {*table_, function_, first_slot_};
  }

  void track(auto& visit) {
    visit("iterations", iterations_);
    for (std::uint32_t k = 0; k < slot_names(function_).size(); ++k)
      visit(slot_names(function_)[k], SlotLeaf{table_, first_slot_ + k});
  }

 private:
  /// A slot as a leaf of a walk (Trackable).
  struct SlotLeaf {
    using Element = typename Variable::Element;
    Variable* table;
    std::uint32_t slot;

    [[nodiscard]] const Shape& shape() const noexcept { return table->shape(); }
    [[nodiscard]] Tensor<Element> whole(const InCrossReplica auto& scope) const {
      return table->read_slot(scope, slot);
    }
    void restore(const InCrossReplica auto& scope, TensorView<const Element> values) const {
      table->assign_slot(scope, slot, values);
    }
  };

  [[nodiscard]] static std::span<const std::string_view> slot_names(const O& function) {
    return detail::slot_names<Element>(function);
  }

  VariablesMade variables_made_;
  O function_;
  Variable* table_;
  DistributedVariable<std::int64_t, OnWrite, OnlyFirstReplica, typename S::HostDevice> iterations_;
  std::uint32_t first_slot_;
};

/// Reports unsupported arguments.
template <class S, class Variable, class O>
  requires(!KeepsVariablesOnHost<S> || !OptimizerFunction<O>)
struct SlicesOptimizer<S, Variable, O> : dist::detail::Refused {
  using Refused::Refused;
  static_assert(dist::detail::satisfied<Strategy<S>>,
                DIST_NEEDS_STRATEGY("an nn::SlicesOptimizer",
                                    "nn::SlicesOptimizer optimizer{strategy, table, nn::Adam{}}"));
  static_assert(dist::detail::satisfied<(!Strategy<S> || KeepsVariablesOnHost<S>)>,
                "nn::SlicesOptimizer updates rows in host memory, but this strategy's variables are in the memory of "
                "another device: densify the gradient and use nn::Optimizer, or use a strategy on dist::Cpu");
  static_assert(dist::detail::satisfied<(!KeepsVariablesOnHost<S> || OptimizerFunction<O>)>,
                "the third argument of an nn::SlicesOptimizer must be an nn::OptimizerFunction, such as nn::SGD{} or "
                "nn::Adam{}: nn::SlicesOptimizer optimizer{strategy, table, nn::Adam{}}");
};
/// Reports a first argument that is not a strategy.
template <dist::detail::NoStrategy First, class... Rest>
SlicesOptimizer(First&&, Rest&&...) -> SlicesOptimizer<std::remove_reference_t<First>, void, void>;

}  // namespace dist::nn
