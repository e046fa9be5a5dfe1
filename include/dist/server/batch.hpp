#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/io/element_type.hpp>
#include <dist/server/client.hpp>
#include <dist/server/clients.hpp>
#include <dist/server/requests.hpp>
#include <dist/server/shard_spec.hpp>
#include <dist/server/update.hpp>

namespace dist::server {

namespace detail {

/// The one request to a server, and what comes of it.
template <class T, class Request>
class SharedCall {
 public:
  explicit SharedCall(std::shared_ptr<Client<T>> client) : client_(std::move(client)) {}

  [[nodiscard]] const Client<T>* client() const noexcept { return &*client_; }
  [[nodiscard]] Request& request() noexcept { return request_; }
  void keep(std::shared_ptr<void> memory) { kept_.push_back(std::move(memory)); }

  void send() {
    try {
      call_.emplace(client_->start(request_));
    } catch (...) {
      failure_ = std::current_exception();
    }
    sent_ = true;
  }
  void wait() {
    if (!sent_)
      throw InvalidArgument("Nobody answers the parts of a batch", "it was not sent",
                            "Call its send() before what it pulls or pushes is waited for");
    if (call_) {
      try {
        results_ = call_->result();
      } catch (...) {
        failure_ = std::current_exception();
      }
      call_.reset();
    }
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }
  [[nodiscard]] bool is_done() const { return sent_ && (!call_ || call_->is_done()); }
  [[nodiscard]] const typename Request::Result& result(std::size_t part) const { return results_[part]; }

 private:
  const std::shared_ptr<Client<T>> client_;
  Request request_;
  std::vector<std::shared_ptr<void>> kept_;  ///< memory that the request refers to
  std::optional<typename Client<T>::template Call<std::vector<typename Request::Result>>> call_;
  bool sent_ = false;
  std::exception_ptr failure_;
  std::vector<typename Request::Result> results_;
};

}  // namespace detail

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
/// they are done. Every shard is seen and changed as a whole, and shards in no order among each other; a server that refuses
/// one part of a message refuses all of it, and has changed nothing. Copies are the same batch.
template <class T>
class Batch {
  template <class Request>
  using Shared = detail::SharedCall<T, Request>;

 public:
  /// What is pulled of a shard, or pushed to it: a Future. Its errors are those of Client::Call, and InvalidArgument where its
  /// batch was not sent.
  template <class Request>
  class Part {
   public:
    void wait() { call_->wait(); }
    [[nodiscard]] bool is_done() const { return call_->is_done(); }
    /// When it is done: the version of a shard that was pulled, which is the known one where nothing has come, or what became of
    /// a push.
    [[nodiscard]] const typename Request::Result& result() const { return call_->result(number_); }
    /// Keeps memory that was lent until the server's answer is there, or nobody waits for it any more.
    void keep(std::shared_ptr<void> memory) { call_->keep(std::move(memory)); }

   private:
    friend class Batch;
    Part(std::shared_ptr<Shared<Request>> call, std::size_t number) : call_(std::move(call)), number_(number) {}

    std::shared_ptr<Shared<Request>> call_;
    std::size_t number_;
  };
  using Pull = Part<PullRequest>;
  using Push = Part<PushRequest>;

  /// These must outlive it.
  explicit Batch(Clients<T>& clients) : state_(std::make_shared<State>()) { state_->clients = &clients; }

  /// The elements of a shard, or of one of its slots.
  template <class E, std::size_t extent>
  Pull pull(const ShardAddress& shard, std::span<E, extent> to, const PullOptions& options = {}) const {
    return add(state_->pulls, shard, [&](PullRequest& request) { request.dense(shard.id, to, options); });
  }
  /// The same of elements of a type that only the program's run knows.
  Pull pull(const ShardAddress& shard, io::ElementType type, std::span<std::byte> to,
            const PullOptions& options = {}) const {
    return add(state_->pulls, shard, [&](PullRequest& request) { request.dense(shard.id, type, to, options); });
  }
  /// See PullRequest::rows.
  template <class E, std::size_t extent>
  Pull pull_rows(const ShardAddress& shard, std::span<const std::int64_t> rows, std::span<E, extent> to,
                 const PullOptions& options = {}) const {
    return add(state_->pulls, shard, [&](PullRequest& request) { request.rows(shard.id, rows, to, options); });
  }
  /// See PushRequest::dense.
  template <class E, std::size_t extent, class F>
  Push push(const ShardAddress& shard, const F& update, std::span<E, extent> values,
            const PushOptions& options = {}) const {
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
    return add(state_->pushes, shard,
               [&](PushRequest& request) { request.rows(shard.id, update, rows, values, repeats, options); });
  }

  /// Sends what was added since the last time. Does not wait, and does not fail: errors are those of the parts.
  void send() const {
    for (const auto& call : std::exchange(state_->pulls, {})) call->send();
    for (const auto& call : std::exchange(state_->pushes, {})) call->send();
  }

  /// The clients by which it travels: it is a ServerContext.
  template <class Transport>
  [[nodiscard]] Clients<Transport>& clients() const noexcept {
    return *state_->clients;
  }

 private:
  struct State {
    Clients<T>* clients = nullptr;
    std::vector<std::shared_ptr<Shared<PullRequest>>> pulls;  ///< one for each server
    std::vector<std::shared_ptr<Shared<PushRequest>>> pushes;
  };

  /// Throws InvalidArgument where there is no such server.
  template <class Request, class Fill>
  [[nodiscard]] Part<Request> add(std::vector<std::shared_ptr<Shared<Request>>>& calls, const ShardAddress& shard,
                                  const Fill& fill) const {
    auto client = state_->clients->of(static_cast<std::size_t>(shard.server), shard.incarnation);
    auto found = std::find_if(calls.begin(), calls.end(), [&](const auto& call) { return call->client() == &*client; });
    if (found == calls.end()) {
      auto made = std::make_shared<Shared<Request>>(std::move(client));
      fill(made->request());
      found = calls.insert(found, std::move(made));
    } else {
      fill((*found)->request());
    }
    return {*found, (*found)->request().size() - 1};
  }

  std::shared_ptr<State> state_;
};

}  // namespace dist::server
