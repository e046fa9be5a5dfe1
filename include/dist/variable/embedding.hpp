/// Embedding lookups, like tf.nn.embedding_lookup and its variants (spec K08).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <dist/context/operand.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/indexed_slices.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/square_root.hpp>
#include <dist/core/tensor.hpp>
#include <dist/variable/id_list.hpp>
#include <dist/variable/shard.hpp>
#include <dist/variable/shard_layout.hpp>
#include <dist/variable/sharded_variable.hpp>

namespace dist {

/// Options of embedding_lookup.
struct EmbeddingOptions {
  /// The maximum L2 norm: longer embeddings are scaled down.
  std::optional<double> max_norm = {};
};

/// Combines embeddings to sum(w e) / sqrt(sum(w^2)), where w are their weights.
struct SqrtN {};
/// The combiner SqrtN.
inline constexpr SqrtN sqrtn{};

/// Combines the embeddings e of an example, with weights w: `dist::mean` to sum(w e) / sum(w), `dist::sum` to sum(w e),
/// and `dist::sqrtn` to sum(w e) / sqrt(sum(w^2)).
class Combiner {
 public:
  /// The weighted mean.
  constexpr Combiner(Mean) : kind_(Kind::of_mean) {}
  /// The weighted sum.
  constexpr Combiner(Sum) : kind_(Kind::of_sum) {}
  /// The weighted sum, divided by the root of the sum of squared weights.
  constexpr Combiner(SqrtN) : kind_(Kind::of_sqrtn) {}

  friend constexpr bool operator==(Combiner, Combiner) = default;

 private:
  enum class Kind { of_mean, of_sum, of_sqrtn };
  Kind kind_;
};

/// Options of embedding_lookup_sparse.
struct SparseEmbeddingOptions {
  /// Combines the embeddings of an example.
  Combiner combiner = mean;
  /// The maximum L2 norm: longer embeddings are scaled down before they are combined.
  std::optional<double> max_norm = {};
};

/// Options of safe_embedding_lookup_sparse.
struct SafeEmbeddingOptions {
  /// Combines the embeddings of an example.
  Combiner combiner = mean;
  /// The maximum L2 norm: longer embeddings are scaled down before they are combined.
  std::optional<double> max_norm = {};
  /// The id for examples without ids; by default their embedding is zero.
  std::optional<std::int64_t> default_id = {};
};

/// A non-owning ragged list of ids: example `i` has the ids from `splits[i]` to `splits[i + 1]`, as in a
/// tf.RaggedTensor.
class IdLists {
 public:
  /// `ids` are the ids of all examples. Throws ShapeMismatch unless the splits start with 0, do not decrease, and end
  /// with the number of ids.
  IdLists(std::span<const std::int64_t> ids, std::span<const std::size_t> splits);

  /// The ids of all examples, one example after another.
  [[nodiscard]] std::span<const std::int64_t> ids() const noexcept { return ids_; }
  /// The position of each example's first id, and the number of all ids at the end.
  [[nodiscard]] std::span<const std::size_t> splits() const noexcept { return splits_; }
  /// The number of examples.
  [[nodiscard]] std::size_t size() const noexcept { return splits_.size() - 1; }
  /// Returns the positions of the ids of example `number`.
  [[nodiscard]] IndexRange operator[](std::size_t number) const noexcept {
    return {splits_[number], splits_[number + 1]};
  }

 private:
  std::span<const std::int64_t> ids_;
  std::span<const std::size_t> splits_;
};

namespace detail {

/// A ShardedVariable, or a type derived from one, such as a variable on servers.
template <class V>
concept Divided = std::derived_from<V, ShardedVariable<typename V::Part>>;

/// The variable type that operations start on: the table, or its shards.
template <class V>
struct PartOf {
  using Type = V;
};
template <Divided V>
struct PartOf<V> {
  using Type = typename V::Part;
};

/// True if operations on the table are asynchronous.
template <class V, class Context>
inline constexpr bool is_elsewhere = StartsOperations<typename PartOf<V>::Type, Context>;

/// Starts to read rows. A variable without shards counts as one shard.
template <class V, class Context>
[[nodiscard]] auto start_lookup_rows(const V& table, const Context& context, std::span<const std::int64_t> ids) {
  if constexpr (Divided<V>)
    return table.start_gather(context, ids);
  else
    return start_gather_rows<V>(ShardLayout::div(table.shape()[0], 1), table.name(), table.shape(), context, ids,
                                [&](std::size_t) -> const V& { return table; });
}

/// Unique ids, and the index of each entry of a list among them. Keeps repeated ids if `may_repeat`.
struct UniqueIds {
  std::vector<std::int64_t> ids;
  std::vector<std::size_t> at;

  UniqueIds(std::span<const std::int64_t> list, bool may_repeat);
};

/// Looked-up embeddings before they are combined.
template <class T>
struct LookedUpRows {
  using Wide = Accumulator<T>;

  std::vector<std::int64_t> ids = {};
  std::vector<std::size_t> at = {};  // the row of each id
  Tensor<T> rows = {};
  std::vector<Wide> scale = {};  // scale factor of each row; empty without max_norm
  Wide max_norm = 0;
  Shape dense_shape;

  [[nodiscard]] std::size_t width() const noexcept { return rows.view().row_size(); }
  [[nodiscard]] std::span<const T> row(std::size_t i) const {
    return rows.elements().subspan(at[i] * width(), width());
  }
  void limit_norms(Wide longest) {
    max_norm = longest;
    scale.assign(rows.rows(), Wide{1});
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      const std::span<T> elements = rows.elements().subspan(row * width(), width());
      Wide squares = 0;
      for (const T element : elements) squares += static_cast<Wide>(element) * static_cast<Wide>(element);
      const Wide norm = static_cast<Wide>(square_root(squares));
      if (!(norm > longest)) continue;
      scale[row] = longest / norm;
      for (T& element : elements) element = static_cast<T>(static_cast<Wide>(element) * scale[row]);
    }
  }
  /// Converts the gradient of the scaled row of entry `i` to the gradient of the table's row.
  void through_norm(std::size_t i, std::span<Wide> gradient) const {
    if (scale.empty() || scale[at[i]] == Wide{1}) return;
    // d (x / |x|) / dx removes the component along x.
    const std::span<const T> used = row(i);
    Wide along = 0;
    for (std::size_t k = 0; k < used.size(); ++k) along += gradient[k] * static_cast<Wide>(used[k]);
    along /= max_norm * max_norm;
    for (std::size_t k = 0; k < used.size(); ++k)
      gradient[k] = scale[at[i]] * (gradient[k] - along * static_cast<Wide>(used[k]));
  }
};

/// Checks a maximum norm. Throws InvalidArgument unless it is positive.
[[nodiscard]] double require_max_norm(double max_norm);

/// Rows of a table that are being read, a Future.
template <class Gathered, class T>
class StartedRows {
 public:
  StartedRows(LookedUpRows<T> rows, Gathered gathered, std::optional<double> max_norm)
      : rows_(std::move(rows)), gathered_(std::move(gathered)), max_norm_(max_norm) {}

  void wait() { gathered_.wait(); }
  [[nodiscard]] bool is_done() const noexcept { return gathered_.is_done(); }
  [[nodiscard]] LookedUpRows<T> take() && {
    rows_.rows = std::move(gathered_).take();
    if (max_norm_) rows_.limit_norms(static_cast<Accumulator<T>>(*max_norm_));
    return std::move(rows_);
  }

 private:
  LookedUpRows<T> rows_;
  Gathered gathered_;
  std::optional<double> max_norm_;
};

template <class Context, class V>
[[nodiscard]] auto start_rows(const Context& context, const V& table, std::span<const std::int64_t> ids,
                              std::optional<double> max_norm) {
  using T = typename V::Element;
  static_cast<void>(require_context_of<typename PartOf<V>::Type, Context>());
  if (table.shape().rank() == 0)
    throw ShapeMismatch(concat("Embeddings cannot be read from variable ", quoted(table.name())), "it is a scalar",
                        "Give a variable that has rows");
  if (max_norm) max_norm = require_max_norm(*max_norm);
  UniqueIds unique{ids, !is_elsewhere<V, Context>};
  auto gathered = start_lookup_rows(table, context, unique.ids);
  LookedUpRows<T> rows{.ids = {ids.begin(), ids.end()}, .at = std::move(unique.at), .dense_shape = table.shape()};
  return StartedRows<decltype(gathered), T>{std::move(rows), std::move(gathered), max_norm};
}

/// True if `V` is a table of embeddings; otherwise a readable compile error.
template <class V>
[[nodiscard]] consteval bool require_table() {
  constexpr bool is_table = Shard<V>;
  static_assert(is_table,
                "an embedding table must be a variable that has rows: a DistributedVariable, a ShardedVariable, or "
                "another dist::Shard");
  if constexpr (is_table) {
    static_assert(satisfied<Floating<typename V::Element>>,
                  "an embedding table must have floating-point elements: read rows of other tables with gather");
    return Floating<typename V::Element>;
  } else {
    return false;
  }
}

/// Converts the weights of ids. Throws ShapeMismatch unless there is one per id.
template <class Wide, class Weights>
[[nodiscard]] std::vector<Wide> weights_of(const IdLists& lists, const Weights& weights) {
  constexpr bool is_tensor = HasShape<Weights> && HasData<const Weights>;
  constexpr bool are_weights = is_tensor || NumberRange<Weights>;
  require_host_access<MemorySpaceOf<Weights>>();
  static_assert(are_weights || is_on_device<Weights>,
                "weights are a tensor or a contiguous range of floating-point numbers, one for each id");
  if constexpr (are_weights) {
    static_assert(satisfied<Floating<ElementIn<const Weights>>>,
                  "weights are a tensor or a contiguous range of floating-point numbers, one for each id");
    const std::span numbers{std::data(weights), std::size(weights)};
    if (numbers.size() != lists.ids().size())
      throw ShapeMismatch("Weights do not fit the ids",
                          concat(numbers.size(), " weights for ", lists.ids().size(), " ids"),
                          "Give one weight for each id, in the same order");
    std::vector<Wide> wide(numbers.size());
    for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = static_cast<Wide>(numbers[i]);
    return wide;
  } else {
    return {};
  }
}

}  // namespace detail

/// The result of a lookup: the embeddings, and their gradient with respect to the table.
///
///     const auto words = dist::embedding_lookup(replica, table, ids);
///     … words.values() …
///     table.scatter_sub(replica, words.gradient(gradient_of_words));
template <class T>
class EmbeddingLookup {
  using Wide = Accumulator<T>;

 public:
  /// One embedding per id, in a tensor of shape `shape`.
  EmbeddingLookup(detail::LookedUpRows<T> rows, const Shape& shape) : rows_(std::move(rows)), values_(shape) {
    const std::size_t width = rows_.width();
    for (std::size_t i = 0; i < rows_.ids.size(); ++i)
      std::copy_n(rows_.row(i).data(), width, values_.data() + i * width);
  }
  /// The combined embedding of each list, given the `splits` of IdLists. Empty `weights` count as 1.
  EmbeddingLookup(detail::LookedUpRows<T> rows, const std::vector<std::size_t>& splits,
                  const std::vector<Wide>& weights, Combiner combiner)
      : rows_(std::move(rows)),
        values_(rows_.dense_shape.with_rows(splits.size() - 1)),
        example_(rows_.ids.size()),
        factor_(rows_.ids.size()) {
    const std::size_t width = rows_.width();
    std::vector<Wide> added(width);
    for (std::size_t example = 0; example + 1 < splits.size(); ++example) {
      const IndexRange ids{splits[example], splits[example + 1]};
      std::fill(added.begin(), added.end(), Wide{0});
      Wide total = 0;
      for (std::size_t i = ids.begin; i < ids.end; ++i) {
        const Wide weight = weights.empty() ? Wide{1} : weights[i];
        const std::span<const T> row = rows_.row(i);
        for (std::size_t k = 0; k < width; ++k) added[k] += weight * static_cast<Wide>(row[k]);
        total += combiner == sqrtn ? weight * weight : weight;
        example_[i] = example;
        factor_[i] = weight;
      }
      if (combiner == sum) total = 1;
      if (combiner == sqrtn) total = static_cast<Wide>(detail::square_root(total));
      for (std::size_t k = 0; k < width; ++k)  // zero if the weights cancel out, as in TensorFlow
        values_[example * width + k] = total == 0 ? T(0) : static_cast<T>(added[k] / total);
      for (std::size_t i = ids.begin; i < ids.end; ++i) factor_[i] = total == 0 ? Wide{0} : factor_[i] / total;
    }
  }

  /// The embeddings. The shape is the shape of the ids, or the number of lists, followed by the shape of a row.
  [[nodiscard]] TensorView<const T> values() const noexcept { return values_; }

  /// Returns the gradient of the table, given the gradient `upstream` of `values()`: one slice per id, in order,
  /// including repetitions. Throws ShapeMismatch if the shape of `upstream` differs.
  [[nodiscard]] IndexedSlices<T> gradient(TensorView<const T> upstream) const {
    if (upstream.shape() != values_.shape())
      throw ShapeMismatch(
          "A gradient does not fit the embeddings",
          concat("it has shape ", to_string(upstream.shape()), ", the embeddings ", to_string(values_.shape())),
          "Give the gradient of values()");
    IndexedSlices<T> slices(rows_.ids.size(), rows_.dense_shape);
    std::copy_n(rows_.ids.data(), rows_.ids.size(), slices.indices().data());
    const std::size_t width = rows_.width();
    std::vector<Wide> row(width);
    for (std::size_t i = 0; i < rows_.ids.size(); ++i) {
      const std::size_t example = example_.empty() ? i : example_[i];
      const Wide factor = factor_.empty() ? Wide{1} : factor_[i];
      for (std::size_t k = 0; k < width; ++k) row[k] = factor * static_cast<Wide>(upstream.data()[example * width + k]);
      rows_.through_norm(i, row);
      for (std::size_t k = 0; k < width; ++k) slices.values().data()[i * width + k] = static_cast<T>(row[k]);
    }
    return slices;
  }

 private:
  detail::LookedUpRows<T> rows_;
  Tensor<T> values_;
  std::vector<std::size_t> example_;  // the example of each id; empty: one per id
  std::vector<Wide> factor_;          // the factor of each id in its example; empty: 1
};

namespace detail {

/// Makes one embedding per id.
struct OneForEach {
  Shape shape;

  template <class T>
  [[nodiscard]] EmbeddingLookup<T> operator()(LookedUpRows<T> rows) const {
    return {std::move(rows), shape};
  }
};

/// Makes one embedding per list.
template <class Wide>
struct OneForEachList {
  std::vector<std::size_t> splits;
  std::vector<Wide> weights;
  Combiner combiner;

  template <class T>
  [[nodiscard]] EmbeddingLookup<T> operator()(LookedUpRows<T> rows) const {
    return {std::move(rows), splits, weights, combiner};
  }
};

}  // namespace detail

/// An asynchronous lookup, a Future.
template <class Rows, class Combine>
class StartedLookup {
 public:
  /// Made by the functions that start a lookup: `rows` is the pending read, and `combine` makes the result of it.
  StartedLookup(Rows rows, Combine combine) : rows_(std::move(rows)), combine_(std::move(combine)) {}

  void wait() { rows_.wait(); }
  [[nodiscard]] bool is_done() const noexcept { return rows_.is_done(); }
  /// Waits and returns an EmbeddingLookup.
  [[nodiscard]] auto take() && { return combine_(std::move(rows_).take()); }

 private:
  Rows rows_;
  Combine combine_;
};

/// Starts an `embedding_lookup`: a loop may prefetch the next batch if the table is on servers.
template <class Context, class V, class Ids>
[[nodiscard]] auto start_embedding_lookup(const Context& context, const V& table, const Ids& ids,
                                          const EmbeddingOptions& options = {}) {
  const detail::IdList list{ids};
  if constexpr (detail::require_table<V>() && RowIds<Ids>) {
    const detail::OneForEach combine{list.shape_of_rows(table.shape())};
    return StartedLookup{detail::start_rows(context, table, list.ids(), options.max_norm), combine};
  }
}

/// Looks up the rows `ids` of `table` (spec K08). `ids` is a tensor of integers of any shape, or a range; the table is
/// any variable with rows, including sharded ones. From remote tables, each row is read once. Throws InvalidArgument if
/// an id is out of range, or max_norm is not positive.
template <class Context, class V, class Ids>
[[nodiscard]] auto embedding_lookup(const Context& context, const V& table, const Ids& ids,
                                    const EmbeddingOptions& options = {}) {
  if constexpr (detail::require_table<V>() && RowIds<Ids>)
    return start_embedding_lookup(context, table, ids, options).take();
  else
    static_cast<void>(detail::IdList{ids});  // reports the valid types of ids
}

namespace detail {

/// Starts a lookup of lists of ids, given by `splits`.
template <class Context, class V>
[[nodiscard]] auto start_lists(const Context& context, const V& table, std::span<const std::int64_t> ids,
                               std::vector<std::size_t> splits, std::vector<Accumulator<typename V::Element>> weights,
                               const auto& options) {
  OneForEachList<Accumulator<typename V::Element>> combine{std::move(splits), std::move(weights), options.combiner};
  return StartedLookup{start_rows(context, table, ids, options.max_norm), std::move(combine)};
}

template <class Context, class V>
[[nodiscard]] auto start_sparse(const Context& context, const V& table, const IdLists& ids,
                                std::vector<Accumulator<typename V::Element>> weights,
                                const SparseEmbeddingOptions& options) {
  return start_lists(context, table, ids.ids(), {ids.splits().begin(), ids.splits().end()}, std::move(weights),
                     options);
}

/// Starts a lookup without the ids that `safe_embedding_lookup_sparse` excludes.
template <class Context, class V>
[[nodiscard]] auto start_safe(const Context& context, const V& table, const IdLists& lists,
                              const std::vector<Accumulator<typename V::Element>>& given,
                              const SafeEmbeddingOptions& options) {
  using Wide = Accumulator<typename V::Element>;
  std::vector<std::int64_t> ids;
  std::vector<std::size_t> splits{0};
  std::vector<Wide> weights;
  const bool weighted = !given.empty();
  for (std::size_t example = 0; example < lists.size(); ++example) {
    for (std::size_t i = lists[example].begin; i < lists[example].end; ++i) {
      const bool has_no_weight = weighted && options.combiner != sum && !(given[i] > 0);
      if (lists.ids()[i] < 0 || has_no_weight) continue;
      ids.push_back(lists.ids()[i]);
      if (weighted) weights.push_back(given[i]);
    }
    if (ids.size() == splits.back() && options.default_id) {
      ids.push_back(*options.default_id);
      if (weighted) weights.push_back(Wide{1});
    }
    splits.push_back(ids.size());
  }
  return start_lists(context, table, ids, std::move(splits), std::move(weights), options);
}

}  // namespace detail

/// Starts an `embedding_lookup_sparse`. Does not refer to its arguments.
template <class Context, class V, class Weights>
  requires(!std::same_as<Weights, SparseEmbeddingOptions>)
[[nodiscard]] auto start_embedding_lookup_sparse(const Context& context, const V& table, const IdLists& ids,
                                                 const Weights& weights, const SparseEmbeddingOptions& options = {}) {
  if constexpr (detail::require_table<V>())
    return detail::start_sparse(context, table, ids, detail::weights_of<Accumulator<typename V::Element>>(ids, weights),
                                options);
}
/// Starts an `embedding_lookup_sparse` without weights. Does not refer to its arguments.
template <class Context, class V>
[[nodiscard]] auto start_embedding_lookup_sparse(const Context& context, const V& table, const IdLists& ids,
                                                 const SparseEmbeddingOptions& options = {}) {
  if constexpr (detail::require_table<V>()) return detail::start_sparse(context, table, ids, {}, options);
}

/// Returns the mean, sum or sqrtn of the weighted embeddings of each list (spec K08). Examples without ids are zero.
/// Throws InvalidArgument like `embedding_lookup`, and ShapeMismatch unless there is one weight per id.
template <class Context, class V, class Weights>
  requires(!std::same_as<Weights, SparseEmbeddingOptions>)
[[nodiscard]] auto embedding_lookup_sparse(const Context& context, const V& table, const IdLists& ids,
                                           const Weights& weights, const SparseEmbeddingOptions& options = {}) {
  if constexpr (detail::require_table<V>())
    return start_embedding_lookup_sparse(context, table, ids, weights, options).take();
}
/// Returns the mean, sum or sqrtn of the embeddings of each list (spec K08). Examples without ids are zero. Throws
/// InvalidArgument like `embedding_lookup`.
template <class Context, class V>
[[nodiscard]] auto embedding_lookup_sparse(const Context& context, const V& table, const IdLists& ids,
                                           const SparseEmbeddingOptions& options = {}) {
  if constexpr (detail::require_table<V>()) return start_embedding_lookup_sparse(context, table, ids, options).take();
}

/// Starts a `safe_embedding_lookup_sparse`. Does not refer to its arguments.
template <class Context, class V, class Weights>
  requires(!std::same_as<Weights, SafeEmbeddingOptions>)
[[nodiscard]] auto start_safe_embedding_lookup_sparse(const Context& context, const V& table, const IdLists& ids,
                                                      const Weights& weights,
                                                      const SafeEmbeddingOptions& options = {}) {
  if constexpr (detail::require_table<V>())
    return detail::start_safe(context, table, ids, detail::weights_of<Accumulator<typename V::Element>>(ids, weights),
                              options);
}
/// Starts a `safe_embedding_lookup_sparse` without weights. Does not refer to its arguments.
template <class Context, class V>
[[nodiscard]] auto start_safe_embedding_lookup_sparse(const Context& context, const V& table, const IdLists& ids,
                                                      const SafeEmbeddingOptions& options = {}) {
  if constexpr (detail::require_table<V>()) return detail::start_safe(context, table, ids, {}, options);
}

/// Like `embedding_lookup_sparse`, but ignores negative ids and, except for sums, ids whose weight is not positive.
/// Examples without remaining ids get the embedding of `default_id`, or zeros (spec K08).
template <class Context, class V, class Weights>
  requires(!std::same_as<Weights, SafeEmbeddingOptions>)
[[nodiscard]] auto safe_embedding_lookup_sparse(const Context& context, const V& table, const IdLists& ids,
                                                const Weights& weights, const SafeEmbeddingOptions& options = {}) {
  if constexpr (detail::require_table<V>())
    return start_safe_embedding_lookup_sparse(context, table, ids, weights, options).take();
}
/// Like `embedding_lookup_sparse` without weights, but ignores negative ids. Examples without remaining ids get the
/// embedding of `default_id`, or zeros (spec K08).
template <class Context, class V>
[[nodiscard]] auto safe_embedding_lookup_sparse(const Context& context, const V& table, const IdLists& ids,
                                                const SafeEmbeddingOptions& options = {}) {
  if constexpr (detail::require_table<V>())
    return start_safe_embedding_lookup_sparse(context, table, ids, options).take();
}

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/variable/embedding.ipp>
#endif
