/// Shards of a ShardedVariable, and operations that start on all shards before waiting for any.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/contexts.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/future.hpp>
#include <dist/core/indexed_slices.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/variable/element_update.hpp>
#include <dist/variable/queue_of.hpp>

namespace dist {

/// A variable that can be a shard: it has elements, a name and a shape. The operations of a DistributedVariable are
/// synchronous; see StartsOperations for remote shards.
template <class V>
concept Shard = std::movable<V> && requires(const V& shard) {
  requires Reducible<typename V::Element>;
  { shard.name() } -> std::convertible_to<std::string_view>;
  { shard.shape() } -> std::convertible_to<Shape>;
};

/// A shard with asynchronous operations, for instance on a server. Each function starts one bulk operation and returns
/// a Future; its arguments must stay valid until that is done.
///
/// | operation | effect |
/// |---|---|
/// | `start_read(context)` | reads all elements; `values()` of the result is a `TensorView<const T>`, which lives as long as the result |
/// | `start_gather(context, rows)` | reads these rows (`std::span<const std::int64_t>`), in this order, including repetitions; `values()` has one row for each |
/// | `start_write(context, value, update)` | changes every element to `update(old, given)`; `value` is a T, a `TensorView<const T>` of the shard's shape, or a Same of these |
/// | `start_scatter(context, slices, update)` | changes the rows of an `IndexedSlicesView<T>` in the same way, in order |
///
/// `update` is one of Sum, Prod, Min, Max, detail::Assign, detail::Subtract and detail::Divide
/// (variable/element_update.hpp). Rows and slices may be empty. For batching of operations, see StartsTogether.
template <class V, class Context>
concept StartsOperations = Shard<V> &&
    requires(V& shard, const V& seen, const Context& context, std::span<const std::int64_t> rows,
             TensorView<const typename V::Element> values, IndexedSlicesView<typename V::Element> slices) {
  { seen.start_read(context) } -> Future;
  { seen.start_read(context).values() } -> std::convertible_to<TensorView<const typename V::Element>>;
  { seen.start_gather(context, rows) } -> Future;
  { seen.start_gather(context, rows).values() } -> std::convertible_to<TensorView<const typename V::Element>>;
  { shard.start_write(context, values, detail::Assign{}) } -> Future;
  { shard.start_write(context, typename V::Element{}, detail::Assign{}) } -> Future;
  { shard.start_scatter(context, slices, Sum{}) } -> Future;
};

/// Shards whose operations can be batched: `V::together(context)` is a context that collects operations of several
/// shards, and its `send()` sends them.
template <class V, class Context>
concept StartsTogether = StartsOperations<V, Context> && requires(const Context& context) {
  V::together(context).send();
  requires StartsOperations<V, std::remove_cvref_t<decltype(V::together(context))>>;
};

namespace detail {

/// The Future of a synchronous write.
struct Written {
  void wait() const noexcept {}
  [[nodiscard]] bool is_done() const noexcept { return true; }
};
/// The Future of a synchronous read, with a tensor or a view.
template <class Values>
struct HasRead {
  using T = std::remove_const_t<typename Values::Element>;
  Values kept;

  void wait() const noexcept {}
  [[nodiscard]] bool is_done() const noexcept { return true; }
  [[nodiscard]] TensorView<const T> values() const { return kept; }
};

/// Returns the result of `shard.read(context)` in host memory.
template <class V, class Context>
[[nodiscard]] auto read_on_host(const V& shard, const Context& context) {
  using T = typename V::Element;
  using Read = decltype(shard.read(context));
  if constexpr (is_specialization<Read, Tensor> || std::convertible_to<Read, TensorView<const T>>) {
    return shard.read(context);
  } else {
    Tensor<T> values{shard.shape()};
    copy_and_wait(shard.queue(context), shard.component(context), values.elements());
    return values;
  }
}

template <class V, class Context>
[[nodiscard]] auto start_read(const V& shard, const Context& context) {
  if constexpr (StartsOperations<V, Context>)
    return shard.start_read(context);
  else
    return HasRead<decltype(read_on_host(shard, context))>{read_on_host(shard, context)};
}
/// Starts to read these rows, which must be in range.
template <class V, class Context>
[[nodiscard]] auto start_gather(const V& shard, const Context& context, std::span<const std::int64_t> rows) {
  if constexpr (StartsOperations<V, Context>) {
    return shard.start_gather(context, rows);
  } else {
    using T = typename V::Element;
    const auto kept = read_on_host(shard, context);
    const TensorView<const T> all = kept;
    HasRead<Tensor<T>> gathered{Tensor<T>{all.shape().with_rows(rows.size())}};
    const std::size_t width = all.row_size();
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::copy_n(all.data() + static_cast<std::size_t>(rows[i]) * width, width, gathered.kept.data() + i * width);
    return gathered;
  }
}
template <class V, class Context, class Value, class Update>
auto start_write(V& shard, const Context& context, const Value& value, Update update) {
  if constexpr (StartsOperations<V, Context>) {
    return shard.start_write(context, value, update);
  } else {
    if constexpr (std::same_as<Update, Assign>)
      shard.assign(context, value);
    else if constexpr (std::same_as<Update, Sum>)
      shard.assign_add(context, value);
    else
      shard.assign_sub(context, value);
    return Written{};
  }
}
template <class V, class Context, class T, class Update>
auto start_scatter(V& shard, const Context& context, const IndexedSlicesView<T>& slices, Update update) {
  if constexpr (StartsOperations<V, Context>) {
    return shard.start_scatter(context, slices, update);
  } else {
    if constexpr (std::same_as<Update, Sum>)
      shard.scatter_add(context, slices);
    else if constexpr (std::same_as<Update, Subtract>)
      shard.scatter_sub(context, slices);
    else if constexpr (std::same_as<Update, Prod>)
      shard.scatter_mul(context, slices);
    else if constexpr (std::same_as<Update, Divide>)
      shard.scatter_div(context, slices);
    else if constexpr (std::same_as<Update, Min>)
      shard.scatter_min(context, slices);
    else if constexpr (std::same_as<Update, Max>)
      shard.scatter_max(context, slices);
    else
      shard.scatter_update(context, slices);
    return Written{};
  }
}
/// Starts to read the state of a shard for a checkpoint.
template <class V, class Context>
[[nodiscard]] auto start_whole(const V& shard, const Context& context) {
  if constexpr (StartsOperations<V, Context>)
    return shard.start_read(context);
  else
    return HasRead<decltype(shard.whole(context))>{shard.whole(context)};
}
template <class V, class Context, class T>
auto start_restore(V& shard, const Context& context, TensorView<const T> values) {
  if constexpr (StartsOperations<V, Context>) {
    return shard.start_write(context, values, Assign{});
  } else {
    shard.restore(context, values);
    return Written{};
  }
}

/// Waits for all `works`, and calls `then(number, work)` for each successful one, in order, while others continue.
/// Throws the first error once all are done.
template <Future W, class Then>
void wait_for_all(std::vector<W>& works, const Then& then) {
  std::exception_ptr failure;
  for (std::size_t i = 0; i < works.size(); ++i) {
    try {
      works[i].wait();
      if (failure == nullptr) then(i, std::as_const(works[i]));
    } catch (...) {
      if (failure == nullptr) failure = std::current_exception();
    }
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

/// The operations on all shards. The destructor waits for them, because their arguments may be destroyed afterwards.
template <Future W>
class PendingOnShards {
 public:
  /// Calls `start(shard)` for all shard numbers. If a call throws, waits for the earlier operations, and rethrows.
  template <class Start>
  PendingOnShards(std::size_t shards, const Start& start) : PendingOnShards(shards, start, [] {}) {}
  /// Calls `start(shard)` for all shard numbers, and then `send()`.
  template <class Start, class Send>
  PendingOnShards(std::size_t shards, const Start& start, const Send& send) {
    works_.reserve(shards);
    try {
      for (std::size_t shard = 0; shard < shards; ++shard) works_.push_back(start(shard));
      send();
    } catch (...) {
      cancel();
      throw;
    }
  }
  PendingOnShards(const PendingOnShards&) = delete;
  PendingOnShards& operator=(const PendingOnShards&) = delete;
  ~PendingOnShards() { cancel(); }

  /// See wait_for_all.
  template <class Then>
  void wait(const Then& then) {
    wait_for_all(works_, then);
  }
  void wait() {
    wait([](std::size_t, const W&) {});
  }
  [[nodiscard]] bool is_done() const noexcept {
    return std::all_of(works_.begin(), works_.end(), [](const W& work) { return work.is_done(); });
  }

 private:
  void cancel() noexcept {
    for (W& work : works_) {
      try {
        work.wait();
      } catch (...) {  // already reported to a caller that waited
      }
    }
  }

  std::vector<W> works_;
};
template <class Start, class... Send>
PendingOnShards(std::size_t, const Start&, const Send&...)
    -> PendingOnShards<std::invoke_result_t<const Start&, std::size_t>>;

/// Starts an operation on `shards` shards of a variable by `start(context, shard)`, batched if possible.
template <class V, class Context, class Start>
[[nodiscard]] auto start_on_shards(const Context& context, std::size_t shards, const Start& start) {
  if constexpr (StartsTogether<V, Context>) {
    const auto together = V::together(context);
    return PendingOnShards(
        shards, [&](std::size_t shard) { return start(together, shard); }, [&] { together.send(); });
  } else {
    return PendingOnShards(shards, [&](std::size_t shard) { return start(context, shard); });
  }
}

}  // namespace detail

}  // namespace dist
