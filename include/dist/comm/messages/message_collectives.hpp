#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include <dist/comm/communicator.hpp>
#include <dist/comm/memory_collectives.hpp>
#include <dist/comm/messages/declarations.hpp>
#include <dist/comm/messages/sharded_reduction.hpp>
#include <dist/comm/messages/transfers.hpp>
#include <dist/comm/reduction.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/index_range.hpp>

namespace dist::detail {

/// An algorithm with `Settings`, the same on all members, by default `Algorithm::usual_settings(members)`.
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

/// An algorithm constructed with the call, to guard blocking calls by a Watchdog.
template <class Algorithm, class C>
concept NeedsCall = std::constructible_from<Algorithm, const C&, const CollectiveCall&>;

/// The collectives of members that pass messages. Each member announces its call, then one of
/// `Algorithm{communicator}`, `Algorithm{communicator, settings}` (HasSettings) and `Algorithm{communicator, call}`
/// (NeedsCall) moves the values:
/// - `broadcast(root, values)`;
/// - `gather(all, part)`: copies each member's part, `part(rank)`, to all; parts are in rank order and fill `all`;
/// - `reduce_scatter(reduction, values, use)`: calls `use(first, reduced)` with blocks of the reduction of this
///   member's `message_shard`;
/// - `all_reduce_bytes(reduction, values)`: all members get the same bits.
/// Values are bytes, and reductions are records of the algorithm (ReducesByRecords).
template <class C, class Algorithm>
class MessageCollectives : public Membership<C>,
                           public OnBytes<MessageCollectives<C, Algorithm>>,
                           public GathersBytes<MessageCollectives<C, Algorithm>> {
  static_assert(PassesMessages<C>,
                "this policy needs members that pass messages: use a communicator that models PassesMessages, such as "
                "the communicator of the processes of MultiWorker");
  using Settings = typename SettingsOf<Algorithm>::Type;

 public:
  using Record = typename Algorithm::Record;
  template <class T, class Op>
  [[nodiscard]] static constexpr const Record& record() noexcept {
    return Algorithm::template record<T, Op>();
  }

  explicit MessageCollectives(C communicator) : Membership<C>(std::move(communicator)), settings_(usual()) {}
  MessageCollectives(C communicator, Settings settings) : Membership<C>(std::move(communicator)), settings_(settings) {}

  [[nodiscard]] MessageCollectives with_timeout(std::chrono::nanoseconds timeout) const {
    return {comm_.with_timeout(timeout), settings_};
  }
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }

  void all_reduce_bytes(const Record& reduction, std::span<std::byte> values) const;

  void broadcast_bytes(const CollectiveCall& call, std::span<std::byte> values) const;
  void all_gather_bytes(const CollectiveCall& call, std::span<const std::byte> mine,
                        std::span<const std::size_t> counts, std::size_t size, std::span<std::byte> all) const;
  void gather_values_bytes(const CollectiveCall& call, std::span<const std::byte> mine, std::span<std::byte> all) const;

  /// Each member updates its elements by its shard of the reduced gradients, as soon as blocks are complete.
  void reduce_and_apply_bytes(const Record& reduction, std::span<const std::byte> gradient, std::span<std::byte> mirror,
                              UseReduced update) const;
  void reduce_scatter_bytes(const Record& reduction, std::span<const std::byte> values, UseReduced use) const {
    reduce_shards("reduce_scatter", reduction, values, use);
  }
  void update_shards_bytes(const CollectiveCall& call, std::size_t size, std::span<std::byte> mirror,
                           FunctionRef<void(IndexRange)> update) const;

  /// Shards, and the two halves of collectives (DividesShards).
  template <class Visit>
  static void for_each_shard(std::size_t elements, std::size_t rank, std::size_t members, Visit&& visit) {
    visit(message_shard(elements, rank, members));
  }
  void reduce_shards(std::string_view operation, const Record& reduction, std::span<const std::byte> values,
                     UseReduced use) const;
  void gather_shards(std::string_view operation, std::string_view dtype, Elements values) const;

 protected:
  using Membership<C>::comm_;

 private:
  [[nodiscard]] Settings usual() const {
    if constexpr (HasSettings<Algorithm>)
      return Algorithm::usual_settings(comm_.size());
    else
      return {};
  }
  /// Returns the algorithm, which `call` must outlive.
  [[nodiscard]] Algorithm algorithm(const CollectiveCall& call) const {
    if constexpr (NeedsCall<Algorithm, C>)
      return Algorithm{comm_, call};
    else if constexpr (HasSettings<Algorithm>)
      return Algorithm{comm_, settings_};
    else
      return Algorithm{comm_};
  }
  void gather(const CollectiveCall& call, Elements all, FunctionRef<IndexRange(std::size_t)> part) const;
  [[nodiscard]] IndexRange shard(std::size_t elements, std::size_t rank) const noexcept {
    return message_shard(elements, rank, comm_.size());
  }

  [[no_unique_address]] Settings settings_;
};

template <class C, class Algorithm>
void MessageCollectives<C, Algorithm>::all_reduce_bytes(const Record& reduction, std::span<std::byte> values) const {
  const CollectiveCall call = reduction.call("all_reduce", values.size() / reduction.size);
  comm_.announce(call);
  if (comm_.size() > 1) algorithm(call).all_reduce_bytes(reduction, values);
}
template <class C, class Algorithm>
void MessageCollectives<C, Algorithm>::broadcast_bytes(const CollectiveCall& call, std::span<std::byte> values) const {
  DIST_EXPECT(call.root < comm_.size());
  comm_.announce(call);
  if (comm_.size() > 1) algorithm(call).broadcast(call.root, Elements{values});
}
template <class C, class Algorithm>
void MessageCollectives<C, Algorithm>::all_gather_bytes(const CollectiveCall& call, std::span<const std::byte> mine,
                                                        std::span<const std::size_t> counts, std::size_t size,
                                                        std::span<std::byte> all) const {
  DIST_EXPECT(counts.size() == comm_.size() && mine.size() == counts[comm_.rank()] * size);
  DIST_EXPECT(std::accumulate(counts.begin(), counts.end(), std::size_t{0}) * size == all.size());
  comm_.announce(call);
  const auto part = [&](std::size_t rank) {
    const std::size_t first =
        std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(rank), std::size_t{0});
    return IndexRange{first, first + counts[rank]};
  };
  if (std::byte* const place = all.data() + part(comm_.rank()).begin * size; mine.data() != place)
    std::copy(mine.begin(), mine.end(), place);
  gather(call, Elements{all, size}, part);
}
template <class C, class Algorithm>
void MessageCollectives<C, Algorithm>::gather_values_bytes(const CollectiveCall& call, std::span<const std::byte> mine,
                                                           std::span<std::byte> all) const {
  DIST_EXPECT(all.size() == comm_.size() * mine.size());
  comm_.announce(call);
  std::copy(mine.begin(), mine.end(), all.data() + comm_.rank() * mine.size());
  gather(call, Elements{all, mine.size()}, [](std::size_t rank) { return IndexRange{rank, rank + 1}; });
}
template <class C, class Algorithm>
void MessageCollectives<C, Algorithm>::gather(const CollectiveCall& call, Elements all,
                                              FunctionRef<IndexRange(std::size_t)> part) const {
  if (comm_.size() > 1) algorithm(call).gather(all, part);
}
template <class C, class Algorithm>
void MessageCollectives<C, Algorithm>::reduce_shards(std::string_view operation, const Record& reduction,
                                                     std::span<const std::byte> values, UseReduced use) const {
  const CollectiveCall call = reduction.call(operation, values.size() / reduction.size);
  comm_.announce(call);
  if (comm_.size() > 1)
    algorithm(call).reduce_scatter(reduction, values, use);
  else if (!values.empty())
    use(0, values);
}
template <class C, class Algorithm>
void MessageCollectives<C, Algorithm>::gather_shards(std::string_view operation, std::string_view dtype,
                                                     Elements values) const {
  const CollectiveCall call{.operation = operation, .elements = values.count(), .dtype = dtype};
  comm_.announce(call);
  gather(call, values, [&](std::size_t rank) { return shard(values.count(), rank); });
}
template <class C, class Algorithm>
void MessageCollectives<C, Algorithm>::reduce_and_apply_bytes(const Record& reduction,
                                                              std::span<const std::byte> gradient,
                                                              std::span<std::byte> mirror, UseReduced update) const {
  reduce_shards("reduce_and_apply", reduction, gradient, update);
  gather_shards("end of reduce_and_apply", reduction.dtype,
                Elements{mirror, reduction.size});  // not reached if an update throws
}
template <class C, class Algorithm>
void MessageCollectives<C, Algorithm>::update_shards_bytes(const CollectiveCall& call, std::size_t size,
                                                           std::span<std::byte> mirror,
                                                           FunctionRef<void(IndexRange)> update) const {
  comm_.announce(call);
  update(shard(call.elements, comm_.rank()));
  gather_shards("end of update_shards", call.dtype, Elements{mirror, size});  // not reached if an update throws
}

}  // namespace dist::detail
