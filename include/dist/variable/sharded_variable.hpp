#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/contexts.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/indexed_slices.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/slicing.hpp>
#include <dist/core/tensor.hpp>
#include <dist/variable/cached_reads.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/element_update.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/id_list.hpp>
#include <dist/variable/scatter.hpp>
#include <dist/variable/shard.hpp>
#include <dist/variable/shard_layout.hpp>

namespace dist {

/// Rows that are being read from all shards concurrently, a Future.
template <class W, class T>
class GatheredRows {
 public:
  /// Calls `begin(split)`, which starts to read the rows of each shard, and may refer to `split`. `shape` is the shape
  /// of all rows.
  template <class Begin>
  GatheredRows(SplitRows split, const Shape& shape, const Begin& begin)
      : state_(std::make_shared<State>(std::move(split), shape, begin)) {}

  /// Waits for all shards, then throws the first error, if any.
  void wait() {
    state_->started.wait([&](std::size_t shard, const W& work) {
      state_->split.template stitch<T>(shard, work.values(), state_->rows);
    });
  }
  [[nodiscard]] bool is_done() const noexcept { return state_->started.is_done(); }
  /// The rows in the requested order, after `wait`. They live as long as this object or a copy.
  [[nodiscard]] TensorView<const T> values() const noexcept { return state_->rows; }
  /// Waits for all shards, and returns the rows in the requested order. Throws the first error, if any.
  [[nodiscard]] Tensor<T> take() && {
    wait();
    return std::move(state_->rows);
  }

 private:
  struct State {
    template <class Begin>
    State(SplitRows split_rows, const Shape& shape, const Begin& begin)
        : split(std::move(split_rows)), rows(shape), started(begin(split)) {}
    SplitRows split;  // referred to by the operations on shards
    Tensor<T> rows;
    detail::PendingOnShards<W> started;
  };

  std::shared_ptr<State> state_;
};

namespace detail {

/// True if the context is valid for operations on this kind of variable; otherwise a readable compile error. Remote
/// variables have their own contexts.
template <class V, class Context, bool writes = false>
[[nodiscard]] consteval bool require_context_of() {
  if constexpr (StartsOperations<V, Context>)
    return true;
  else
    return require_variable_context<Context, writes>();
}

/// True for CachedReads of a variable with remote shards, which cache the whole variable.
template <class V, class Context>
inline constexpr bool caches_whole = false;
template <class V, class C>
inline constexpr bool caches_whole<V, CachedReads<C>> = StartsOperations<V, C>;

/// Starts to read rows of the variable `name`, whose shards are `shard_at(number)`.
template <class V, class Context, class ShardAt>
[[nodiscard]] auto start_gather_rows(const ShardLayout& layout, std::string_view name, const Shape& shape,
                                     const Context& context, std::span<const std::int64_t> ids,
                                     const ShardAt& shard_at) {
  using W = decltype(start_gather(std::declval<const V&>(), context, ids));
  const auto begin = [&](const SplitRows& split) {
    return start_on_shards<V>(context, split.shards(), [&](const auto& in, std::size_t shard) {
      return start_gather(shard_at(shard), in, split.rows(shard));
    });
  };
  return GatheredRows<W, typename V::Element>{layout.split(name, ids), shape.with_rows(ids.size()), begin};
}

}  // namespace detail

/// A variable that is divided along its first axis into shards, which are variables themselves (spec K05), for instance
/// a table that is too large for one server. `sharded_variable` makes one in a strategy; the constructor combines
/// existing variables:
///
///     auto table = dist::sharded_variable<float>(strategy, dist::FixedShards{4}, {1'000'000, 64}, 0.0F, "table");
///     table.scatter_add(strategy.scope(), slices);
///     auto rows = table.gather(strategy.scope(), ids);
///
/// Follows the rules of DistributedVariable, shard by shard. Each operation includes all shards, because it may be a
/// collective call. Operations on remote shards (StartsOperations) run concurrently, and are batched by server
/// (StartsTogether). If several shards fail, the first error is thrown once all are done. Operations are not atomic
/// across shards.
///
/// A checkpoint stores it as one tensor, like an undivided variable (spec K11).
template <class V>
class ShardedVariable {
  static_assert(detail::satisfied<Shard<V>>,
                "a ShardedVariable is made of variables, which have elements, a name and a shape: see dist::Shard");

 public:
  /// The type of a shard.
  using Part = V;
  using Element = typename V::Element;
  /// A read-only tensor of elements.
  using View = TensorView<const Element>;

  /// Takes the shards in row order, with any numbers of rows; a scalar must be the only shard. Throws InvalidArgument
  /// if the list is empty, and ShapeMismatch for other scalars, or if shards differ in an axis other than the first
  /// (spec K05).
  explicit ShardedVariable(std::vector<V> shards, std::string name = "ShardedVariable")
      : shards_(std::move(shards)), name_(std::move(name)), layout_(layout_of(name_, shards_)) {
    shape_ = shards_[0].shape().with_rows(layout_.rows());
  }
  ShardedVariable(const ShardedVariable&) = delete;
  ShardedVariable& operator=(const ShardedVariable&) = delete;
  /// A variable that was moved from may only be assigned to or destroyed.
  ShardedVariable(ShardedVariable&&) = default;
  /// A variable that was moved from may only be assigned to or destroyed.
  ShardedVariable& operator=(ShardedVariable&&) = default;
  ~ShardedVariable() = default;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// The shape of all rows together (spec K05).
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  /// The number of elements in all shards.
  [[nodiscard]] std::size_t size() const noexcept { return shape_.elements(); }
  /// The shards in row order.
  [[nodiscard]] std::span<V> shards() noexcept { return shards_; }
  /// The shards in row order.
  [[nodiscard]] std::span<const V> shards() const noexcept { return shards_; }
  /// The rows of each shard.
  [[nodiscard]] const ShardLayout& layout() const noexcept { return layout_; }

  /// Returns all rows as one tensor (spec K10).
  template <class Context = detail::NoContext<V>>
  [[nodiscard]] Tensor<Element> read(const Context& context = {}) const {
    if constexpr (detail::caches_whole<V, Context>)
      return Tensor<Element>{context.read(*this)};
    else if constexpr (detail::require_context_of<V, Context>())
      return joined(context, [](const auto& in, const V& shard) { return detail::start_read(shard, in); });
    else
      return {};
  }

  /// Returns the value of a variable with one element. Throws ShapeMismatch unless it has exactly one element.
  template <class Context = detail::NoContext<V>>
  [[nodiscard]] Element value(const Context& context = {}) const {
    detail::require_one_element(*this);
    return read(context)[0];
  }

  /// Returns the rows `ids`, in a tensor whose shape is the shape of `ids` followed by the shape of a row, like
  /// tf.gather (spec K08). Ids may repeat. Throws InvalidArgument if an id is out of range.
  template <class Context, class Ids>
  [[nodiscard]] Tensor<Element> gather(const Context& context, const Ids& ids) const {
    const detail::IdList list{ids};
    if constexpr (RowIds<Ids>) {
      Tensor<Element> rows = start_gather(context, list.ids()).take();
      rows.resize(list.shape_of_rows(shape_));  // the number of elements is unchanged
      return rows;
    } else {
      return {};
    }
  }
  /// Returns the rows of a list of ids, like tf.Variable.sparse_read. Throws ShapeMismatch unless `ids` has one axis.
  template <class Context, class Ids>
  [[nodiscard]] Tensor<Element> sparse_read(const Context& context, const Ids& ids) const {
    const detail::IdList list{ids};
    if (list.shape().rank() != 1)
      throw ShapeMismatch(concat("Rows of variable ", quoted(name_), " must be read with a list of indices"),
                          concat("the indices have shape ", to_string(list.shape())),
                          "Give indices with one axis, or read with gather");
    return gather(context, list.ids());
  }
  /// Starts to read the rows of a list, to overlap it with other work; see GatheredRows. Throws InvalidArgument if an
  /// id is out of range.
  template <class Context>
  [[nodiscard]] auto start_gather(const Context& context, std::span<const std::int64_t> ids) const {
    static_cast<void>(detail::require_context_of<V, Context>());
    if (shape_.rank() == 0)
      throw ShapeMismatch(concat("Variable ", quoted(name_), " has no rows"), "it is a scalar", "Read it whole");
    return detail::start_gather_rows<V>(layout_, name_, shape_, context, ids,
                                        [&](std::size_t shard) -> const V& { return shards_[shard]; });
  }
  /// Returns elements or parts of rows, like tf.gather_nd (spec K08): the last axis of `indices` holds the index in the
  /// row axis and in following axes. Throws InvalidArgument if an index is out of range, ShapeMismatch if there are
  /// more indices than axes.
  template <class Context>
  [[nodiscard]] Tensor<Element> gather_nd(const Context& context, TensorView<const std::int64_t> indices) const {
    const Shape& given = indices.shape();
    const std::size_t axes = given.rank() == 0 ? 0 : given[given.rank() - 1];
    if (axes == 0 || axes > shape_.rank())
      throw ShapeMismatch(
          concat("Indices do not fit variable ", quoted(name_)),
          concat("their shape is ", to_string(given), ", the shape of the variable is ", to_string(shape_)),
          "Give one number for each of the first axes of the variable, along the last axis of the indices");
    const std::size_t count = indices.size() / axes;
    std::vector<std::int64_t> rows(count);
    for (std::size_t i = 0; i < count; ++i) rows[i] = indices[i * axes];
    const Tensor<Element> gathered = gather(context, rows);

    std::vector<std::size_t> extents(given.extents().begin(), given.extents().end() - 1);
    extents.insert(extents.end(), shape_.extents().begin() + static_cast<std::ptrdiff_t>(axes), shape_.extents().end());
    Tensor<Element> parts{Shape(extents)};
    const std::size_t width = count == 0 ? 0 : parts.size() / count;
    for (std::size_t i = 0; i < count; ++i) {
      std::size_t at = i;
      for (std::size_t axis = 1; axis < axes; ++axis) {
        const std::int64_t index = indices[i * axes + axis];
        if (index < 0 || static_cast<std::uint64_t>(index) >= shape_[axis])
          throw InvalidArgument(concat("Variable ", quoted(name_), " has no index ", index, " on axis ", axis),
                                concat("its shape is ", to_string(shape_)), "Use indices within this shape");
        at = at * shape_[axis] + static_cast<std::size_t>(index);
      }
      std::copy_n(gathered.data() + at * width, width, parts.data() + i * width);
    }
    return parts;
  }

  /// Returns a slice with NumPy's rules (spec K09): `slice(context, Range{2, -1}, ellipsis, 0)` is `variable[2:-1, ...,
  /// 0]`. Reads only the necessary rows. Throws InvalidArgument if an index is out of range or a step is 0; see
  /// Selection::of.
  template <class Context, class... Parts>
  [[nodiscard]] Tensor<Element> slice(const Context& context, const Parts&... parts) const {
    if constexpr (detail::require_slice_parts<Parts...>() && detail::require_context_of<V, Context>()) {
      const Selection chosen = Selection::of(concat("variable ", quoted(name_)), shape_, parts...);
      const Selection::Axis& axis = chosen.axis(0);
      if (axis.count == shape_[0] && axis.step == 1) return chosen.from(read(context).view());
      std::vector<std::int64_t> rows(axis.count);
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(axis[i]);
      return chosen.of_chosen_rows().from(gather(context, rows).view());
    } else {
      return {};
    }
  }
  /// Returns the rows, or parts of them, for which `mask` is true (spec K09). The extents of the mask must be the first
  /// extents of the variable. Reads only rows with a true element. Throws ShapeMismatch.
  template <class Context>
  [[nodiscard]] Tensor<Element> masked(const Context& context, TensorView<const bool> mask) const {
    detail::require_mask(concat("variable ", quoted(name_)), shape_, mask.shape());
    std::vector<std::int64_t> rows;
    Tensor<bool> mask_of_rows{mask.shape()};
    const std::size_t width = mask.row_size();
    for (std::size_t row = 0; row < mask.rows(); ++row) {
      const auto of_row = mask.elements().subspan(row * width, width);
      if (std::find(of_row.begin(), of_row.end(), true) == of_row.end()) continue;
      std::copy_n(of_row.data(), width, mask_of_rows.data() + rows.size() * width);
      rows.push_back(static_cast<std::int64_t>(row));
    }
    mask_of_rows.resize(mask.shape().with_rows(rows.size()));
    return dist::masked(gather(context, rows).view(), mask_of_rows);
  }

  /// Writes like DistributedVariable; each shard gets its rows (spec K06).
  void assign(const auto& context, const auto&... value) { write<detail::Assign>(context, value...); }
  /// Adds `value` to the elements, like `assign`.
  void assign_add(const auto& context, const auto&... value) { write<Sum>(context, value...); }
  /// Subtracts `value` from the elements, like `assign`.
  void assign_sub(const auto& context, const auto&... value) { write<detail::Subtract>(context, value...); }

  /// Scatter operations like DistributedVariable's; each shard gets the slices of its rows, in order (spec K07).
  void scatter_add(const auto& context, const auto&... slices) { scatter<Sum>(context, slices...); }
  /// Subtracts `slices` from these rows, like `scatter_add`.
  void scatter_sub(const auto& context, const auto&... slices) { scatter<detail::Subtract>(context, slices...); }
  /// Multiplies these rows by `slices`, like `scatter_add`.
  void scatter_mul(const auto& context, const auto&... slices) { scatter<Prod>(context, slices...); }
  /// Divides these rows by `slices`, like `scatter_add`. Throws InvalidArgument if an integer value is zero.
  void scatter_div(const auto& context, const auto&... slices) { scatter<detail::Divide>(context, slices...); }
  /// Replaces the elements of these rows by the minimum of old and given ones, like `scatter_add`.
  void scatter_min(const auto& context, const auto&... slices) { scatter<Min>(context, slices...); }
  /// Replaces the elements of these rows by the maximum of old and given ones, like `scatter_add`.
  void scatter_max(const auto& context, const auto&... slices) { scatter<Max>(context, slices...); }
  /// Replaces these rows by `slices`, like `scatter_add`. The last slice of a repeated index counts.
  void scatter_update(const auto& context, const auto&... slices) { scatter<detail::Assign>(context, slices...); }
  /// Alias of scatter_update, named like tf.Variable's function for batches of lists; here they are one list (spec
  /// K07).
  void batch_scatter_update(const auto& context, const auto&... slices) { scatter_update(context, slices...); }

  /// Returns the state for a checkpoint; see DistributedVariable::whole.
  [[nodiscard]] Tensor<Element> whole(const InCrossReplica auto& context) const {
    return joined(context, [](const auto& in, const V& shard) { return detail::start_whole(shard, in); });
  }
  /// Restores the result of `whole`. Throws ShapeMismatch if the shapes differ.
  void restore(const InCrossReplica auto& context, View values) {
    detail::require_shape(*this, values.shape());
    detail::start_on_shards<V>(context, shards_.size(), [&](const auto& in, std::size_t shard) {
      return detail::start_restore(shards_[shard], in, part_of(values, shard));
    }).wait();
  }

 protected:
  /// Returns the rows of a shard from the values of all shards.
  [[nodiscard]] View part_of(View values, std::size_t shard) const {
    if (shards_.size() == 1) return values;  // also for a scalar, which has no rows
    const IndexRange rows = layout_.rows_of(shard);
    return values.rows(rows.begin, rows.size());
  }

  /// Returns the values of all shards, after starting to read each with `start(context, shard)`.
  template <class Context, class Start>
  [[nodiscard]] Tensor<Element> joined(const Context& context, const Start& start) const {
    Tensor<Element> all{shape_};
    const std::size_t width = all.view().row_size();
    auto works = detail::start_on_shards<V>(
        context, shards_.size(), [&](const auto& in, std::size_t shard) { return start(in, shards_[shard]); });
    works.wait([&](std::size_t shard, const auto& work) {
      const View values = work.values();
      std::copy_n(values.data(), values.size(), all.data() + layout_.rows_of(shard).begin * width);
    });
    return all;
  }

 private:
  [[nodiscard]] static ShardLayout layout_of(std::string_view name, const std::vector<V>& shards) {
    if (shards.empty())
      throw InvalidArgument(concat("Sharded variable ", quoted(name), " has no shards"),
                            "the list of variables is empty", "Give one variable or more");
    std::vector<std::size_t> rows;
    for (const V& shard : shards) {
      const Shape& shape = shard.shape();
      if (shape.rank() == 0 && shards.size() > 1)
        throw ShapeMismatch(concat("Variable ", quoted(shard.name()), " cannot be a shard of ", quoted(name)),
                            "it is a scalar", "Give variables that have rows");
      if (shape.rank() != 0 && (shape.row() != shards[0].shape().row() || shape.rank() != shards[0].shape().rank()))
        throw ShapeMismatch(concat("Variables ", quoted(shards[0].name()), " and ", quoted(shard.name()),
                                   " cannot both be shards of ", quoted(name)),
                            concat("their shapes are ", to_string(shards[0].shape()), " and ", to_string(shape)),
                            "Give variables of the same shape except for the first axis");
      rows.push_back(shape.rank() == 0 ? 1 : shape[0]);
    }
    return ShardLayout::of(rows);
  }

  template <class Update, class Value>
  void write(const Value&) {
    static_cast<void>(detail::require_context_of<V, detail::NoContext<Value>>());
  }
  template <class Update, class Context, class Value>
  void write(const Context& context, const Value& value) {
    constexpr bool is_context = detail::require_context_of<V, Context, true>();
    if constexpr (is_context && detail::require_update_of<Element, Update>()) {
      const auto given = detail::given_to(*this, value);
      const auto part = [&](std::size_t shard) {
        if constexpr (std::same_as<decltype(given), const detail::Uniform<Element>>)
          return given.number;
        else
          return part_of(View{given.data(), shape_}, shard);
      };
      const auto start = [&](const auto& in, std::size_t shard) {
        if constexpr (detail::is_same_value<Value>)
          return detail::start_write(shards_[shard], in, same(part(shard)), Update{});
        else
          return detail::start_write(shards_[shard], in, part(shard), Update{});
      };
      detail::start_on_shards<V>(context, shards_.size(), start).wait();
    }
  }

  template <class Update, class Slices>
  void scatter(const Slices&) {
    static_cast<void>(detail::require_context_of<V, detail::NoContext<Slices>>());
  }
  template <class Update, class Context, class Slices>
  void scatter(const Context& context, const Slices& slices) {
    constexpr bool is_context = detail::require_context_of<V, Context, true>();
    if constexpr (is_context && detail::require_slices<Slices>() && detail::require_update_of<Element, Update>()) {
      const auto& whole = detail::view_of_slices(slices);
      const IndexedSlicesView<Element>& given = detail::rows_given_to<Update>(*this, whole);
      const SplitRows split = layout_.split(name_, given.indices());
      std::vector<IndexedSlices<Element>> parts;
      for (std::size_t shard = 0; shard < shards_.size(); ++shard)
        parts.push_back(split.slices(shard, given.values(), shards_[shard].shape()));
      detail::start_on_shards<V>(context, shards_.size(), [&](const auto& in, std::size_t shard) {
        return detail::start_scatter(shards_[shard], in, parts[shard].view(), Update{});
      }).wait();
    }
  }

  std::vector<V> shards_;
  std::string name_;
  ShardLayout layout_;
  Shape shape_;
};

}  // namespace dist
