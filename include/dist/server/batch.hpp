#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/io/element_type.hpp>
#include <dist/server/client.hpp>
#include <dist/server/clients.hpp>
#include <dist/server/requests.hpp>
#include <dist/server/shard_spec.hpp>

namespace dist::server {

/// Pulls from shards and pushes to them that travel together: each server gets one message with all that is pulled of it, and
/// one with all that is pushed to it. So what a step says to its servers takes two journeys, however many variables there are.
///
///     dist::server::Batch<dist::Grpc> batch{dist::server::clients_of<dist::Grpc>(worker)};
///     auto weights = batch.pull(place_of_weights, to_weights, {.known = version_of_weights});
///     auto bias = batch.pull(place_of_bias, to_bias, {.known = version_of_bias});
///     batch.send();
///     weights.wait();
///     version_of_weights = weights.result();
///
/// It is a ServerContext, too: an operation that a ServerShard starts in it is a part of it. What parts are given is lent until
/// they are done; parts without elements are done at once. Every shard is seen and changed as a whole, and shards in no order
/// among each other; a server that refuses one part of a message refuses all of it, and has changed nothing. Copies are the same
/// batch.
template <class T>
class Batch {
 public:
  template <class Request>
  using Part = typename PendingMessage<T, Request>::Part;
  using Pull = Part<PullRequest>;
  using Push = Part<PushRequest>;

  /// These must outlive it.
  explicit Batch(Clients<T>& clients) : state_(std::make_shared<State>()) { state_->clients = &clients; }

  /// The elements of a shard, or of one of its slots.
  template <class E, std::size_t extent>
  Pull pull(const ShardAddress& shard, std::span<E, extent> to, const PullOptions& options = {}) const {
    return pull(shard, io::element_type<E>, std::as_writable_bytes(to), options);
  }
  /// The elements, whose type is only known when the program runs.
  Pull pull(const ShardAddress& shard, io::ElementType type, std::span<std::byte> to,
            const PullOptions& options = {}) const {
    if (to.empty()) return {};
    return add(state_->pulls, shard, [&](PullRequest& request) { request.dense(shard.id, type, to, options); });
  }
  /// See PullRequest::rows.
  template <class E, std::size_t extent>
  Pull pull_rows(const ShardAddress& shard, std::span<const std::int64_t> rows, std::span<E, extent> to,
                 const PullOptions& options = {}) const {
    if (to.empty()) return {};
    return add(state_->pulls, shard, [&](PullRequest& request) { request.rows(shard.id, rows, to, options); });
  }
  /// See PushRequest::dense.
  template <class E, std::size_t extent, class F>
  Push push(const ShardAddress& shard, const F& update, std::span<E, extent> values,
            const PushOptions& options = {}) const {
    if (values.empty()) return {};
    return add(state_->pushes, shard, [&](PushRequest& request) { request.dense(shard.id, update, values, options); });
  }
  /// See PushRequest::uniform.
  template <class E, class F>
  Push push_uniform(const ShardAddress& shard, const F& update, E value, const PushOptions& options = {}) const {
    return add(state_->pushes, shard, [&](PushRequest& request) { request.uniform(shard.id, update, value, options); });
  }
  /// See PushRequest::rows.
  template <class E, std::size_t extent, class F>
  Push push_rows(const ShardAddress& shard, const F& update, std::span<const std::int64_t> rows,
                 std::span<E, extent> values, DuplicateRows repeats, const PushOptions& options = {}) const {
    if (rows.empty()) return {};
    return add(state_->pushes, shard,
               [&](PushRequest& request) { request.rows(shard.id, update, rows, values, repeats, options); });
  }

  /// Sends what was added since the last time. Does not wait, and does not fail: errors are those of the parts.
  void send() const {
    for (const auto& message : std::exchange(state_->pulls, {})) message->send();
    for (const auto& message : std::exchange(state_->pushes, {})) message->send();
  }

  /// The clients by which it travels: it is a ServerContext.
  template <class Transport>
  [[nodiscard]] Clients<Transport>& clients() const noexcept {
    return *state_->clients;
  }

 private:
  /// One message for each server.
  template <class Request>
  using Messages = std::vector<std::shared_ptr<PendingMessage<T, Request>>>;
  struct State {
    Clients<T>* clients = nullptr;
    Messages<PullRequest> pulls;
    Messages<PushRequest> pushes;
  };

  /// Throws InvalidArgument where there is no such server.
  template <class Request, class Fill>
  [[nodiscard]] Part<Request> add(Messages<Request>& messages, const ShardAddress& shard, const Fill& fill) const {
    auto client = state_->clients->of(static_cast<std::size_t>(shard.server), shard.incarnation);
    const auto found = std::find_if(messages.begin(), messages.end(),
                                    [&](const auto& message) { return message->client() == &*client; });
    const auto message =
        found != messages.end() ? *found : std::make_shared<PendingMessage<T, Request>>(std::move(client));
    fill(message->request());
    if (found == messages.end()) messages.push_back(message);
    return Part<Request>{message};
  }

  std::shared_ptr<State> state_;
};

}  // namespace dist::server
