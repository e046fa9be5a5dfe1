/// What a step on a worker asks of parameter servers and sends to them: one message to each, however many shards it has.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <dist/comm/rpc.hpp>
#include <dist/core/pointers.hpp>
#include <dist/server/client.hpp>
#include <dist/server/clients.hpp>
#include <dist/server/requests.hpp>
#include <dist/server/server_shard.hpp>

namespace dist {

namespace detail {

/// A request to each server that has a shard of it, whose reply has a `Result` for each shard.
template <rpc::Transport T, class Request, class Result>
class StepMessages {
 public:
  explicit StepMessages(server::Clients<T>& clients) : clients_(&clients) {}

  /// Sends all of them.
  void start() {
    for (Message& message : messages_) message.call.emplace(message.client->start(message.request));
  }
  /// Waits for all, and calls `then(message, results)` for each in which nothing went wrong. Throws the first error, once all
  /// are done.
  template <class Then>
  void wait(const Then& then) {
    std::exception_ptr failure;
    for (Message& message : messages_) try {
        const std::vector<Result> results = message.call->result();
        if (!failure) then(message, results);
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
    messages_.clear();
    if (failure) std::rethrow_exception(failure);
  }

 protected:
  struct Message {
    std::shared_ptr<server::Client<T>> client;
    Request request = {};
    std::vector<std::uint64_t*> versions = {};  ///< of the shards, where somebody wants to know them
    std::optional<typename server::Client<T>::template Call<std::vector<Result>>> call = {};
  };

  /// The message to the server of a shard.
  template <class E>
  [[nodiscard]] Message& to_server_of(const ServerShard<E, T>& shard) {
    const auto& place = shard.place();
    auto client = clients_->of(static_cast<std::size_t>(place.server), place.incarnation);
    const auto found = std::find_if(messages_.begin(), messages_.end(),
                                    [&](const Message& message) { return message.client == client; });
    return found == messages_.end() ? messages_.emplace_back(Message{std::move(client)}) : *found;
  }

 private:
  server::Clients<T>* clients_;
  std::deque<Message> messages_;  ///< which stay where they are: calls refer to their requests
};

}  // namespace detail

/// The elements of shards on their way to a worker: a Work, from `start` on.
template <rpc::Transport T>
class StepPull : public detail::StepMessages<T, server::PullRequest, std::uint64_t> {
  using Base = detail::StepMessages<T, server::PullRequest, std::uint64_t>;

 public:
  using Base::Base;

  /// Asks for all elements of a shard, which go to `to`, and for its version. Both are lent.
  template <class E>
  void add(const ServerShard<E, T>& shard, std::span<E> to, std::uint64_t& version) {
    if (to.empty()) return;
    auto& message = this->to_server_of(shard);
    message.request.dense(shard.place().id, to);
    message.versions.push_back(&version);
  }
  /// Throws what server::Client::Call does.
  void wait() {
    Base::wait([](const auto& message, const std::vector<std::uint64_t>& versions) {
      for (std::size_t shard = 0; shard < versions.size(); ++shard) *message.versions[shard] = versions[shard];
    });
  }
};

/// What a step pushes to shards. It leaves with `send`.
template <rpc::Transport T>
class StepPush : public detail::StepMessages<T, server::PushRequest, server::Pushed> {
  using Base = detail::StepMessages<T, server::PushRequest, server::Pushed>;

 public:
  using Base::Base;

  /// Lets the server apply an update to all elements of a shard (server::ServerUpdate), with one of `values` for each. They are
  /// lent until they are sent.
  template <class E, class Update>
  void add(const ServerShard<E, T>& shard, const Update& update, std::span<const E> values,
           const server::PushOptions& options = {}) {
    if (!values.empty()) this->to_server_of(shard).request.dense(shard.place().id, update, values, options);
  }
  /// The same with values that are kept until then.
  template <class Update>
  void add(const ServerShard<double, T>& shard, const Update& update, std::vector<double> values) {
    add(shard, update, std::span<const double>{kept_.emplace_back(std::move(values))});
  }

  /// Sends what was added since the last time, one message to each server, and waits until the servers have it. Throws what
  /// server::Client::Call does, once no message is on its way.
  void send() {
    this->start();
    Base::wait([](const auto&, const auto&) {});
    kept_.clear();
  }

 private:
  std::deque<std::vector<double>> kept_;
};

}  // namespace dist
