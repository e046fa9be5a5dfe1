#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/comm/communicator.hpp>
#include <dist/comm/element_update.hpp>
#include <dist/comm/memory_collectives.hpp>
#include <dist/comm/messages/declarations.hpp>
#include <dist/comm/messages/sharded_reduction.hpp>
#include <dist/comm/messages/transfers.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/hash.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/vectors.hpp>

namespace dist::detail {

/// An algorithm that is told more than who the members are: a value of its type `Settings`, the same on all members, and
/// where nobody gives one, `Algorithm::usual_settings(members)`.
template <class Algorithm>
concept HasSettings = requires(std::size_t members) {
  { Algorithm::usual_settings(members) } -> std::same_as<typename Algorithm::Settings>;
};
template <class Algorithm>
struct SettingsOf {
  struct Type {};
};
template <HasSettings Algorithm>
struct SettingsOf<Algorithm> {
  using Type = typename Algorithm::Settings;
};

/// An algorithm that is told what the members do, for calls that block without them.
template <class Algorithm, class C>
concept NeedsCall = std::constructible_from<Algorithm, const C&, const CollectiveCall&>;

/// The collectives of members that pass messages: each announces what it is about to do, and `Algorithm{communicator}`
/// or `Algorithm{communicator, settings}` (HasSettings), or `Algorithm{communicator, call}` (NeedsCall), moves the values
/// of several members:
/// - `broadcast(root, values)`;
/// - `gather(all, part)`: each member's part, `part(rank)`, goes to all; parts are in rank order and fill `all`;
/// - `reduce_scatter(op, values, use)`: calls `use(first, reduced)` with blocks of the reduction of this member's
///   `message_shard`;
/// - `all_reduce(op, values)`: all members get the same bits.
template <class C, class Algorithm>
class MessageCollectives : public Membership<C> {
  static_assert(
      PassesMessages<C>,
      "this policy needs members that pass messages: use a communicator that models PassesMessages, such as that "
      "of the processes of MultiWorker");
  using Settings = typename SettingsOf<Algorithm>::Type;

 public:
  explicit MessageCollectives(C communicator) : Membership<C>(std::move(communicator)), settings_(usual()) {}
  MessageCollectives(C communicator, Settings settings) : Membership<C>(std::move(communicator)), settings_(settings) {}

  [[nodiscard]] MessageCollectives with_timeout(std::chrono::nanoseconds timeout) const {
    return {comm_.with_timeout(timeout), settings_};
  }
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }

  template <class T, ReduceOp<T> Op>
  void all_reduce(Op op, std::span<T> values) const {
    const CollectiveCall call{
        .operation = "all_reduce", .reduction = Op::name, .elements = values.size(), .dtype = dtype_name<T>};
    comm_.announce(call);
    if (comm_.size() > 1) algorithm(call).all_reduce(op, values);
  }

  template <class T>
  void broadcast(std::size_t root, std::span<T> values) const {
    DIST_EXPECT(root < comm_.size());
    const CollectiveCall call{
        .operation = "broadcast", .elements = values.size(), .dtype = dtype_name<T>, .root = root};
    comm_.announce(call);
    if (comm_.size() > 1) algorithm(call).broadcast(root, Elements{values});
  }

  template <class T>
  void all_gather(std::span<const T> mine, std::span<const std::size_t> counts, std::span<T> all) const {
    DIST_EXPECT(counts.size() == comm_.size() && mine.size() == counts[comm_.rank()]);
    DIST_EXPECT(std::accumulate(counts.begin(), counts.end(), std::size_t{0}) == all.size());
    const CollectiveCall call{
        .operation = "all_gather", .elements = all.size(), .dtype = dtype_name<T>, .counts = hash_of_numbers(counts)};
    comm_.announce(call);
    const auto part = [&](std::size_t rank) {
      const std::size_t first =
          std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(rank), std::size_t{0});
      return IndexRange{first, first + counts[rank]};
    };
    if (T* const place = all.data() + part(comm_.rank()).begin; mine.data() != place)
      std::copy(mine.begin(), mine.end(), place);
    gather(call, Elements{all}, part);
  }

  template <class T>
    requires std::is_trivially_copyable_v<T>
  void all_gather_values(std::string_view operation, const T& mine, std::span<T> all_values) const {
    DIST_EXPECT(all_values.size() == comm_.size());
    const CollectiveCall call{.operation = operation, .elements = sizeof(T), .dtype = "exchanged bytes"};
    comm_.announce(call);
    all_values[comm_.rank()] = mine;
    gather(call, Elements{all_values}, [](std::size_t rank) { return IndexRange{rank, rank + 1}; });
  }

  /// Each member updates its own elements by its shard of the reduced gradients, block by block as these are complete.
  template <class T, ReduceOp<T> Op, ElementUpdate<T> Update>
  void reduce_and_apply(Op op, std::span<const T> gradient, std::span<T> mirror, const Update& update) const {
    const CollectiveCall call{
        .operation = "reduce_and_apply", .reduction = Op::name, .elements = mirror.size(), .dtype = dtype_name<T>};
    comm_.announce(call);
    reduce_shard(call, op, gradient, [&](std::size_t first, std::span<const T> reduced) DIST_INLINE_LAMBDA {
      update_block(update, first, mirror.subspan(first, reduced.size()), reduced);
    });
    gather_shards("end of reduce_and_apply", mirror);  // unless an update threw
  }

  template <class T, ReduceOp<T> Op, class Use>
  void reduce_scatter(Op op, std::span<const T> values, Use&& use) const {
    reduce_shards("reduce_scatter", op, values, use);
  }

  template <class T, ElementUpdate<T> Update>
  void update_shards(std::span<const T> gradients, std::span<T> mirror, const Update& update) const {
    comm_.announce({.operation = "update_shards", .elements = mirror.size(), .dtype = dtype_name<T>});
    const IndexRange mine = shard(mirror.size(), comm_.rank());
    update_range(update, mine.begin, mirror.subspan(mine.begin, mine.size()),
                 gradients.subspan(mine.begin, mine.size()));
    gather_shards("end of update_shards", mirror);  // unless an update threw
  }

  /// Which elements are whose, and the two halves of collectives that groups share (DividesShards).
  template <class Visit>
  static void for_each_shard(std::size_t elements, std::size_t rank, std::size_t members, Visit&& visit) {
    visit(message_shard(elements, rank, members));
  }
  template <class T, ReduceOp<T> Op, class Use>
  void reduce_shards(std::string_view operation, Op op, std::span<const T> values, Use&& use) const {
    const CollectiveCall call{
        .operation = operation, .reduction = Op::name, .elements = values.size(), .dtype = dtype_name<T>};
    comm_.announce(call);
    reduce_shard(call, op, values, use);
  }
  template <class T>
  void gather_shards(std::string_view operation, std::span<T> values) const {
    const CollectiveCall call{.operation = operation, .elements = values.size(), .dtype = dtype_name<T>};
    comm_.announce(call);
    gather(call, Elements{values}, [&](std::size_t rank) { return shard(values.size(), rank); });
  }

 protected:
  using Membership<C>::comm_;

 private:
  [[nodiscard]] Settings usual() const {
    if constexpr (HasSettings<Algorithm>)
      return Algorithm::usual_settings(comm_.size());
    else
      return {};
  }
  /// `call` is there as long as what is returned.
  [[nodiscard]] Algorithm algorithm(const CollectiveCall& call) const {
    if constexpr (NeedsCall<Algorithm, C>)
      return Algorithm{comm_, call};
    else if constexpr (HasSettings<Algorithm>)
      return Algorithm{comm_, settings_};
    else
      return Algorithm{comm_};
  }
  void gather(const CollectiveCall& call, Elements all, FunctionRef<IndexRange(std::size_t)> part) const {
    if (comm_.size() > 1) algorithm(call).gather(all, part);
  }
  [[nodiscard]] IndexRange shard(std::size_t elements, std::size_t rank) const noexcept {
    return message_shard(elements, rank, comm_.size());
  }

  template <class T, class Op, class Use>
  void reduce_shard(const CollectiveCall& call, Op op, std::span<const T> values, Use&& use) const {
    if (comm_.size() > 1)
      algorithm(call).reduce_scatter(op, values, use);
    else if (!values.empty())
      with_widest_vectors([&]<std::size_t>() DIST_INLINE_LAMBDA { use(std::size_t{0}, values); });
  }

  [[no_unique_address]] Settings settings_;
};

}  // namespace dist::detail
