/// Makes the shards of a variable by a partitioner (spec J05 to J07).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/strategy.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/log.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/partitioner.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/shard_layout.hpp>
#include <dist/variable/sharded_variable.hpp>

namespace dist {

namespace detail {

/// A variable before it exists, to check its initial value.
template <class T>
class VariableToMake {
 public:
  using Element = T;
  using View = TensorView<const T>;

  VariableToMake(std::string_view name, const Shape& shape) : name_(name), shape_(shape) {}
  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }

 private:
  std::string_view name_;
  Shape shape_;
};

inline constinit Warning large_whole_value{};

/// Warns if a large initial value is allocated for all shards at once (spec J07).
inline void warn_of_whole_value(std::string_view name, const Shape& shape) {
  constexpr std::size_t large = 1'000'000'000;
  if (shape.elements() > large && !large_whole_value.was_given())
    large_whole_value.emit(
        concat("variable ", quoted(name), " of shape ", to_string(shape),
               " is divided into shards, but its whole initial value is made first. A function that also takes the "
               "rows of a shard, `(TensorView<T> part, IndexRange rows)`, needs memory only for these rows."));
}

/// The initial values of a variable's shards (spec J07), one for each call of `rows`. They refer to `initial` and to
/// this object.
template <class T, class Initial>
class InitialOfShards {
  using Function = std::remove_reference_t<Initial>;
  static constexpr bool is_number = Reducible<std::remove_cvref_t<Initial>>;
  static constexpr bool is_values =
      std::convertible_to<const Function&, TensorView<const T>> || NumbersFor<std::remove_cvref_t<Initial>, T>;

 public:
  /// Throws ShapeMismatch if values have another shape.
  InitialOfShards(std::string_view name, const Shape& shape, Initial& initial) : initial_(initial), shape_(shape) {
    if constexpr (is_values) {
      values_ = given_to(VariableToMake<T>{name, shape}, initial);
    } else if constexpr (!is_number && !fills_rows()) {
      require_host_access<MemorySpaceOf<Initial>>();
      constexpr bool fills = is_function_of<Function, TensorView<T>>();
      static_assert(
          fills || is_on_device<std::remove_cvref_t<Initial>>,
          "a sharded variable's initial value must be a number, a TensorView of its element type, a contiguous range "
          "of numbers of that type, a function that fills a TensorView of it, or one that fills the rows of a shard: "
          "(TensorView<T> part, IndexRange rows)");
      warn_of_whole_value(name, shape);
      whole_ = Tensor<T>{shape};
      if constexpr (fills) initial(whole_.view());
      values_ = whole_.elements();
    }
  }
  InitialOfShards(const InitialOfShards&) = delete;
  InitialOfShards& operator=(const InitialOfShards&) = delete;

  /// Returns the initial value of the shard with these rows, for `strategy.variable`.
  [[nodiscard]] auto rows(IndexRange rows) const {
    if constexpr (is_number)
      return initial_;
    else if constexpr (fills_rows())
      return [this, rows](TensorView<T> part) { initial_(part, rows); };
    else
      return TensorView<const T>{values_, shape_}.rows(rows.begin, rows.size());
  }

 private:
  static constexpr bool fills_rows() {
    if constexpr (is_number || is_values)
      return false;
    else
      return is_function_of<Function, TensorView<T>, IndexRange>();
  }

  Initial& initial_;
  Shape shape_;
  Tensor<T> whole_;
  std::span<const T> values_;
};

}  // namespace detail

/// Makes a variable of a strategy, divided along its first axis by the "div" rule into the number of shards that
/// `partitioner` returns (spec J05, J06). Shards are named "name/part_0", "name/part_1", …; a single shard is named
/// "name".
///
/// `initial` is the initial value of the whole variable, as for `strategy.variable`. A function with two parameters
/// fills one shard at a time, without memory for the whole variable (spec J07):
///
///     dist::sharded_variable<float>(strategy, dist::MaxSizeShards{64 << 20}, {100'000'000, 16},
///                                   [](dist::TensorView<float> part, dist::IndexRange rows) { … }, "table");
///
/// A collective call of the processes, outside replica functions. Throws the errors of `strategy.variable`,
/// ShapeMismatch for a scalar, and InvalidArgument if the partitioner returns less than 1.
template <class T, class Sync = OnWrite, class Agg = None, Strategy S, class P, class Initial = T>
[[nodiscard]] auto sharded_variable(S& strategy, const P& partitioner, Shape shape, Initial&& initial = T{},
                                    std::string name = "Variable",
                                    Trainable trainable = Trainable::by_synchronization) {
  using V = decltype(strategy.template variable<T, Sync, Agg>(shape, T{}, name, trainable));
  if (shape.rank() == 0)
    throw ShapeMismatch(concat("Variable ", quoted(name), " cannot be divided into shards"), "it is a scalar",
                        "Give it rows, or make it with strategy.variable");
  const std::size_t count = number_of_shards(partitioner, name, shape, sizeof(T));
  const ShardLayout layout = ShardLayout::div(shape[0], count);
  const detail::InitialOfShards<T, std::remove_reference_t<Initial>> initials{name, shape, initial};
  std::vector<V> shards;
  for (std::size_t shard = 0; shard < count; ++shard) {
    const IndexRange rows = layout.rows_of(shard);
    shards.push_back(strategy.template variable<T, Sync, Agg>(shape.with_rows(rows.size()), initials.rows(rows),
                                                              count == 1 ? name : part_name(name, shard), trainable));
  }
  return ShardedVariable<V>{std::move(shards), std::move(name)};
}

}  // namespace dist
