/// What a ShardedVariable is made of, and how an operation begins on all shards before it waits for any.
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

/// A variable that can be a shard of another one: it has elements, a name and a shape. A DistributedVariable is one, whose
/// operations are done when they return; for one far away see StartsOperations.
template <class V>
concept Shard = std::movable<V> && requires(const V& shard) {
  requires Reducible<typename V::Element>;
  { shard.name() } -> std::convertible_to<std::string_view>;
  { shard.shape() } -> std::convertible_to<Shape>;
};

/// A shard whose operations go on after they were begun, such as one on a server. Each begins one bulk operation, and returns a
/// Work; what it is given is lent until that is done.
///
/// | operation | what it does |
/// |---|---|
/// | `start_read(context)` | reads all; the work's `values()` is then a `TensorView<const T>`, which lives as long as the work |
/// | `start_gather(context, rows)` | reads these rows (`std::span<const std::int64_t>`), in this order, repetitions included; `values()` has a row for each of them |
/// | `start_write(context, value, update)` | changes every element to `update(old, given)`; `value` is a T, a `TensorView<const T>` of the shard's shape, or a Same of one of them |
/// | `start_scatter(context, slices, update)` | the same of the rows that an `IndexedSlicesView<T>` names, in its order |
///
/// `update` is one of Sum, Prod, Min, Max, detail::Assign, detail::Subtract and detail::Divide (variable/element_update.hpp).
/// Lists of rows and slices may be empty. Where shards of one place can be spoken to together, see StartsTogether.
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

/// Shards whose operations can travel together: `V::together(context)` is a context in which they are begun on several shards,
/// and whose `send()` lets them go. They are waited for after that.
template <class V, class Context>
concept StartsTogether = StartsOperations<V, Context> && requires(const Context& context) {
  V::together(context).send();
  requires StartsOperations<V, std::remove_cvref_t<decltype(V::together(context))>>;
};

namespace detail {

/// A write that was done at once.
struct Written {
  void wait() const noexcept {}
  [[nodiscard]] bool is_done() const noexcept { return true; }
};
/// A read that was done at once: a tensor, or a view of one.
template <class Values>
struct HasRead {
  using T = std::remove_const_t<typename Values::Element>;
  Values kept;

  void wait() const noexcept {}
  [[nodiscard]] bool is_done() const noexcept { return true; }
  [[nodiscard]] TensorView<const T> values() const { return kept; }
};

/// What `shard.read(context)` gives, where the host can look at it.
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
/// The rows are those that the shard has.
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
/// What a checkpoint keeps of a shard.
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

/// Waits for all works, and calls `then(number, work)` for each that is done without an error, in their order, while others go on.
/// Throws the first error, once all are done.
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

/// The works of an operation, one for each shard. They are done when it goes, because what they were lent may go then, too.
template <Future W>
class PendingOnShards {
 public:
  /// Calls `start(shard)` for the numbers of all shards. Where one of them throws, waits for those before, and throws.
  template <class Start>
  PendingOnShards(std::size_t shards, const Start& start) : PendingOnShards(shards, start, [] {}) {}
  /// Calls `send()` after that.
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
      } catch (...) {  // who waited for it has heard of it
      }
    }
  }

  std::vector<W> works_;
};
template <class Start, class... Send>
PendingOnShards(std::size_t, const Start&, const Send&...)
    -> PendingOnShards<std::invoke_result_t<const Start&, std::size_t>>;

/// Begins an operation on so many shards of a variable, by `start(context, shard)` for each. They travel together if they can.
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
