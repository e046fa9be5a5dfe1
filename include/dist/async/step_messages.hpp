/// What a step on a worker asks of parameter servers and sends to them at a time: one message to each, however many shards it has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <dist/core/contract.hpp>
#include <dist/core/pointers.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/batch.hpp>
#include <dist/server/clients.hpp>
#include <dist/server/requests.hpp>
#include <dist/server/server_shard.hpp>
#include <dist/server/server_variable.hpp>
#include <dist/variable/shard.hpp>

namespace dist {

namespace detail {

/// Calls `use(number, shard, its part of the values)` for the shards of a variable that has a value for each element.
template <class E, class T, class Value, class Use>
void for_each_shard(const ServerVariable<E, T>& variable, std::span<Value> values, const Use& use) {
  DIST_EXPECT(values.size() == variable.size());
  std::size_t first = 0;
  for (std::size_t number = 0; number < variable.shards().size(); ++number) {
    const ServerShard<E, T>& shard = variable.shards()[number];
    const std::size_t size = shard.shape().elements();
    use(number, shard, values.subspan(first, size));
    first += size;
  }
}

/// Waits for parts of a batch, and calls `then(number, result)` for those that have one. Throws the first error, once all are
/// done.
template <class Part, class Then>
void wait_for_parts(const std::vector<Part>& parts, const Then& then) {
  StartedOnShards works(parts.size(), [&](std::size_t number) { return parts[number]; });
  works.wait([&](std::size_t number, const Part& part) { then(number, part.result()); });
}

}  // namespace detail

/// The elements of shards on their way to a worker, of those that have changed since the worker got them.
template <rpc::Transport T>
class StepPull {
 public:
  explicit StepPull(server::Clients<T>& clients) : batch_(clients) {}

  /// Asks for all elements of a shard, which go to `to` unless they are those of `version`, which becomes theirs. Both are lent.
  template <class E>
  void add(const ServerShard<E, T>& shard, std::span<E> to, std::uint64_t& version) {
    if (to.empty()) return;
    parts_.push_back(batch_.pull(shard.place(), to, {.known = version}));
    versions_.push_back(&version);
  }
  void send() { batch_.send(); }
  /// Throws what server::Client::Call does, once no message is on its way.
  void wait() {
    const auto parts = std::exchange(parts_, {});
    const auto versions = std::exchange(versions_, {});
    detail::wait_for_parts(parts, [&](std::size_t part, std::uint64_t version) { *versions[part] = version; });
  }

 private:
  server::Batch<T> batch_;
  std::vector<typename server::Batch<T>::Pull> parts_;
  std::vector<std::uint64_t*> versions_;
};

/// What a step pushes to shards.
template <rpc::Transport T>
class StepPush {
 public:
  explicit StepPush(server::Clients<T>& clients) : batch_(clients) {}

  /// Lets the server apply an update to all elements of a shard (server::ServerUpdate), with one of `values` for each. They are
  /// lent until `send` has returned.
  template <class E, class Update>
  void add(const ServerShard<E, T>& shard, const Update& update, std::span<const E> values,
           const server::PushOptions& options = {}) {
    if (!values.empty()) parts_.push_back(batch_.push(shard.place(), update, values, options));
  }
  /// The same to all elements of a variable, with values that are kept until then.
  template <class E, class Update>
  void add(const ServerVariable<E, T>& variable, const Update& update, std::vector<E> values) {
    const auto kept = std::make_shared<std::vector<E>>(std::move(values));
    detail::for_each_shard(variable, std::span<const E>{*kept},
                           [&](std::size_t, const ServerShard<E, T>& shard, std::span<const E> part) {
                             add(shard, update, part);
                             if (!part.empty()) parts_.back().keep(kept);
                           });
  }
  /// The same with one value for all elements.
  template <class E, class Update>
  void add(const ServerShard<E, T>& shard, const Update& update, E value) {
    if (shard.shape().elements() != 0) parts_.push_back(batch_.push_uniform(shard.place(), update, value));
  }

  /// Sends what was added since the last time, one message to each server, and does not wait: `send` does.
  void start() { batch_.send(); }
  /// Sends what was added since the last time, one message to each server, and waits until the servers have all that was sent.
  /// Throws what server::Client::Call does, once no message is on its way.
  void send() {
    start();
    detail::wait_for_parts(std::exchange(parts_, {}), [](std::size_t, const server::Pushed&) {});
  }

 private:
  server::Batch<T> batch_;
  std::vector<typename server::Batch<T>::Push> parts_;
};

}  // namespace dist
