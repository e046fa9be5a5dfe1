/// Scatter updates of a variable's rows by indexed slices (spec G26 to G28).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <dist/comm/all_reduce_slices.hpp>
#include <dist/context/contexts.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/indexed_slices.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/variable/copies.hpp>
#include <dist/variable/element_update.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/policies.hpp>

namespace dist::detail {

template <class Variable, class Context, class Update>
constexpr void require_scatter() {
  using Agg = typename Variable::Aggregation;
  static_assert(!is_on_shard<typename Variable::Synchronization>,
                "an OnShard variable takes no scatter operations: its owners change component(replica)");
  static_assert(!copies_may_differ<Variable, Context>,
                "an OnRead variable takes no scatter operations: make it OnWrite, or change component(replica)");
  constexpr bool replaces = std::same_as<Update, Min> || std::same_as<Update, Max> || std::same_as<Update, Assign>;
  static_assert(
      !replaces || std::same_as<Agg, None> || std::same_as<Agg, OnlyFirstReplica>,
      "scatter_min, scatter_max and scatter_update work with aggregation None or OnlyFirstReplica: rows of several "
      "replicas have no sum or mean that they could use");
}

/// Checks the slices given to `variable`, and returns them.
template <class Update, class Variable, class T>
[[nodiscard]] const IndexedSlicesView<T>& rows_given_to(const Variable& variable, const IndexedSlicesView<T>& slices) {
  static_assert(std::same_as<T, typename Variable::Element>,
                "a scatter operation takes slices of the variable's own element type: convert the values first");
  if (slices.dense_shape() != variable.shape())
    throw ShapeMismatch(concat("Indexed slices do not fit variable '", variable.name(), "'"),
                        concat("they have shape ", to_string(slices.dense_shape()), ", the variable has shape ",
                               to_string(variable.shape())),
                        "Give slices of the variable's shape");
  if constexpr (std::same_as<Update, Divide> && std::integral<T>) {
    const auto values = slices.values().elements();
    if (std::find(values.begin(), values.end(), T{0}) != values.end())
      throw InvalidArgument(concat("Variable '", variable.name(), "' cannot be divided by the slices"),
                            "a value is the integer 0", "Divide by numbers other than 0");
  }
  return slices;
}

/// Returns the elements of the variable that row `row` of the slices updates.
template <class T>
[[nodiscard]] IndexRange row_range(const IndexedSlicesView<T>& slices, std::size_t row) {
  const std::size_t width = slices.values().row_size();
  const std::size_t first = static_cast<std::size_t>(slices.indices()[row]) * width;
  return {first, first + width};
}

template <class Q, class Copy, class T, class Update>
void update_rows(const Q& queue, Copy copy, const IndexedSlicesView<T>& slices, Update update) {
  for (std::size_t row = 0; row < slices.rows(); ++row) {
    const IndexRange range = row_range(slices, row);
    update_elements(queue, copy.subspan(range.begin, range.size()), slices.values().row(row).data(), update);
  }
}

/// True if `elements` overlap with a copy of `variable`.
template <class Variable, class Context, class E>
[[nodiscard]] bool lie_in_a_copy(std::span<const E> elements, const Variable& variable, const Context& replica) {
  const auto address = [](const auto* element) { return reinterpret_cast<std::uintptr_t>(element); };
  const CrossReplicaContext<typename Context::Strategy> scope{replica.strategy()};
  for (std::size_t local = 0; local < variable.copies(); ++local) {
    const auto copy = variable.copy(scope, local);
    if (address(elements.data()) < address(copy.data() + copy.size()) &&
        address(copy.data()) < address(elements.data() + elements.size()))
      return true;
  }
  return false;
}

/// Outside replica functions: updates every copy.
template <class Variable, InCrossReplica Context, class T, class Update>
void scatter_slices(Variable& variable, const Context& context, const IndexedSlicesView<T>& slices, Update update) {
  for (std::size_t row = 0; row < slices.rows(); ++row)
    update_every_copy(variable, context, row_range(slices, row), slices.values().row(row).data(), update);
}

/// In the function of `strategy.update`: updates that copy.
template <class Variable, InUpdate Context, class T, class Update>
void scatter_slices(Variable& variable, const Context& context, const IndexedSlicesView<T>& slices, Update update) {
  update_rows(variable.queue(context), variable.component(context), slices, update);
}

/// In a replica function: applies this replica's slices to its copy, or the slices of all replicas to every copy.
template <class Variable, InReplica Context, class T, class Update>
void scatter_slices(Variable& variable, const Context& replica, const IndexedSlicesView<T>& slices, Update update) {
  using Agg = typename Variable::Aggregation;
  require_aggregation_of_shared_write<Context, Agg>();
  if constexpr (std::same_as<Agg, None>) {
    update_rows(variable.queue(replica), variable.component(replica), slices, update);
  } else {
    // Other replicas read the slices while copies change, so slices that overlap with a copy are copied first.
    if (lie_in_a_copy(slices.values().elements(), variable, replica) ||
        lie_in_a_copy(slices.indices(), variable, replica)) {
      const IndexedSlices<T> of_its_own{slices};
      return scatter_slices(variable, replica, of_its_own.view(), update);
    }
    with_slices_of_all(replica.collectives(), slices, [&](std::size_t members, const auto& slices_of) {
      const auto write = [&](const auto& given_by) {
        // Rows may be repeated, so one replica updates the whole copy.
        StoreOf<Context>::share_out(replica, 1, [&](IndexRange copies) {
          if (copies.size() == 0) return;
          const auto copy = variable.component(replica);
          const auto queue = variable.queue(replica);
          if constexpr (std::same_as<Agg, OnlyFirstReplica>) {
            update_rows(queue, copy, given_by(0), update);
          } else {
            const auto update_aggregated = [&](T old, T given) { return update(old, Agg::finish(given, members)); };
            for (std::size_t rank = 0; rank < members; ++rank)
              update_rows(queue, copy, given_by(rank), update_aggregated);
          }
        });
      };
      if constexpr (Variable::View::is_host_accessible) {
        write(slices_of);
      } else {  // if queues share a copy, the replicas synchronise first, after which `slices_of` is invalid
        std::vector<IndexedSlicesView<T>> all_values;
        for (std::size_t rank = 0; rank < members; ++rank) all_values.push_back(slices_of(rank));
        write([&](std::size_t rank) -> const IndexedSlicesView<T>& { return all_values[rank]; });
      }
    });
  }
}

/// True if the argument is valid for a scatter operation; otherwise a readable compile error.
template <class Slices>
[[nodiscard]] consteval bool require_slices() {
  constexpr bool is_slices = is_specialization<Slices, IndexedSlicesView> || is_specialization<Slices, IndexedSlices>;
  static_assert(is_slices,
                "a scatter operation takes IndexedSlices or a view of them: rows and the indices that they belong to");
  return is_slices;
}
template <class T>
[[nodiscard]] const IndexedSlicesView<T>& view_of_slices(const IndexedSlicesView<T>& slices) {
  return slices;
}
template <class T>
[[nodiscard]] IndexedSlicesView<T> view_of_slices(const IndexedSlices<T>& slices) {
  return slices.view();
}

/// Updates rows of `variable` by the rules of the context.
template <class Variable, class Context, class Slices, class Update>
void scatter(Variable& variable, const Context& context, const Slices& slices, Update update) {
  if constexpr (require_slices<Slices>()) {
    require_scatter<Variable, Context, Update>();
    if constexpr (require_update_of<typename Variable::Element, Update>()) {
      const auto& view = view_of_slices(slices);
      scatter_slices(variable, context, rows_given_to<Update>(variable, view), update);
    }
  }
}

}  // namespace dist::detail
