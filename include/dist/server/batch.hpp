#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/io/element_type.hpp>
#include <dist/server/client.hpp>
#include <dist/server/requests.hpp>
#include <dist/server/shard_spec.hpp>

namespace dist::server {

/// Combines pulls and pushes of several shards: each server gets one message with all pulls and one with all pushes. A
/// step thus needs two round trips, however many variables it uses.
///
///     dist::server::Batch<dist::Grpc> batch{dist::server::clients_of<dist::Grpc>(worker)};
///     auto weights = batch.pull(place_of_weights, to_weights, {.known = version_of_weights});
///     auto bias = batch.pull(place_of_bias, to_bias, {.known = version_of_bias});
///     batch.send();
///     weights.wait();
///     version_of_weights = weights.result();
///
/// It is also a ServerContext: operations that a ServerShard starts in it become its parts. Arguments must stay valid
/// until the part is done; parts without elements are done at once. Each shard is read and changed atomically, but
/// shards are not ordered among each other. A server that rejects one part rejects the whole message. Copies share the
/// batch.
template <class T>
class Batch {
 public:
  template <class Request>
  using Part = typename PendingMessage<T, Request>::Part;
  using Pull = Part<PullRequest>;
  using Push = Part<PushRequest>;

  /// The clients must outlive the batch.
  explicit Batch(Clients<T>& clients) : state_(std::make_shared<State>()) { state_->clients = &clients; }

  /// Pulls a shard, or one of its slots.
  template <class E, std::size_t extent>
  Pull pull(const ShardAddress& shard, std::span<E, extent> to, const PullOptions& options = {}) const {
    return pull(shard, io::element_type<E>, std::as_writable_bytes(to), options);
  }
  /// Overload for an element type known only at run time.
  Pull pull(const ShardAddress& shard, io::ElementType type, std::span<std::byte> to,
            const PullOptions& options = {}) const {
    if (to.empty()) return {};
    return add_pull(shard, [&](PullRequest& request) { request.dense(shard.id, type, to, options); });
  }
  /// See PullRequest::rows.
  template <class E, std::size_t extent>
  Pull pull_rows(const ShardAddress& shard, std::span<const std::int64_t> rows, std::span<E, extent> to,
                 const PullOptions& options = {}) const {
    if (to.empty()) return {};
    return add_pull(shard, [&](PullRequest& request) { request.rows(shard.id, rows, to, options); });
  }
  /// See PushRequest::dense.
  template <class E, std::size_t extent, class F>
  Push push(const ShardAddress& shard, const F& update, std::span<E, extent> values,
            const PushOptions& options = {}) const {
    if (values.empty()) return {};
    return push(shard, [&](PushRequest& request) { request.dense(shard.id, update, values, options); });
  }
  /// Adds the part that `add(request)` creates.
  Push push(const ShardAddress& shard, dist::detail::FunctionRef<void(PushRequest&)> add) const;
  /// See PushRequest::uniform.
  template <class E, class F>
  Push push_uniform(const ShardAddress& shard, const F& update, E value, const PushOptions& options = {}) const {
    return push(shard, [&](PushRequest& request) { request.uniform(shard.id, update, value, options); });
  }
  /// See PushRequest::rows.
  template <class E, std::size_t extent, class F>
  Push push_rows(const ShardAddress& shard, const F& update, std::span<const std::int64_t> rows,
                 std::span<E, extent> values, DuplicateRows repeats, const PushOptions& options = {}) const {
    if (rows.empty()) return {};
    return push(shard, [&](PushRequest& request) { request.rows(shard.id, update, rows, values, repeats, options); });
  }

  /// Sends the parts added since the last call, without waiting. Does not throw: each part reports its errors.
  void send() const {
    for (const auto& message : std::exchange(state_->pulls, {})) message->send();
    for (const auto& message : std::exchange(state_->pushes, {})) message->send();
  }

  /// Required of a ServerContext.
  template <class Transport>
  [[nodiscard]] Clients<Transport>& clients() const noexcept {
    return *state_->clients;
  }

 private:
  template <class Request>
  using Messages = std::vector<std::shared_ptr<PendingMessage<T, Request>>>;
  struct State {
    Clients<T>* clients = nullptr;
    Messages<PullRequest> pulls;
    Messages<PushRequest> pushes;
  };

  template <class Request>
  [[nodiscard, gnu::noinline]] Part<Request> add(Messages<Request>& messages, const ShardAddress& shard,
                                                 dist::detail::FunctionRef<void(Request&)> fill) const;
  Pull add_pull(const ShardAddress& shard, dist::detail::FunctionRef<void(PullRequest&)> fill) const;

  std::shared_ptr<State> state_;
};

template <class T>
template <class Request>
auto Batch<T>::add(Messages<Request>& messages, const ShardAddress& shard,
                   dist::detail::FunctionRef<void(Request&)> fill) const -> Part<Request> {
  auto client = state_->clients->of(static_cast<std::size_t>(shard.server), shard.incarnation);
  const auto found = std::find_if(messages.begin(), messages.end(),
                                  [&](const auto& message) { return message->client() == &*client; });
  const auto message =
      found != messages.end() ? *found : std::make_shared<PendingMessage<T, Request>>(std::move(client));
  fill(message->request());
  if (found == messages.end()) messages.push_back(message);
  return Part<Request>{message};
}
template <class T>
auto Batch<T>::add_pull(const ShardAddress& shard, dist::detail::FunctionRef<void(PullRequest&)> fill) const -> Pull {
  return add(state_->pulls, shard, fill);
}
template <class T>
auto Batch<T>::push(const ShardAddress& shard, dist::detail::FunctionRef<void(PushRequest&)> add) const -> Push {
  return this->add(state_->pushes, shard, add);
}

}  // namespace dist::server
