#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/condition_variable.hpp>
#include <dist/core/thread_name.hpp>
#include <dist/core/threads.hpp>
#include <dist/net/listen.hpp>
#include <dist/rpc/grpc/api.hpp>
#include <dist/rpc/grpc/credentials.hpp>
#include <dist/rpc/grpc/poller_threads.hpp>
#include <dist/rpc/rpc_session.hpp>

namespace dist::grpc {

class ServerCall;

/// See rpc::Exchange.
class Exchange {
 public:
  explicit Exchange(std::shared_ptr<ServerCall> call) : call_(std::move(call)) {}
  Exchange(Exchange&&) noexcept = default;
  Exchange& operator=(Exchange&&) = delete;
  Exchange(const Exchange&) = delete;
  ~Exchange();

  [[nodiscard]] std::string_view method() const;
  [[nodiscard]] rpc::ChunkSpan pieces() const;
  [[nodiscard]] bool cancelled() const;
  [[nodiscard]] Exchange keep() { return std::move(*this); }
  void reply(std::vector<std::byte> bytes);
  void reply(rpc::ChunkSpan pieces, detail::UniqueFunction<void> release);
  void fail(std::string_view text) { fail(rpc::Outcome{rpc::Failure::handler, std::string{text}, ""}); }
  void fail(rpc::Outcome outcome);

 private:
  std::shared_ptr<ServerCall> call_;
};

/// What a server shares with its calls.
class ServerHost : public std::enable_shared_from_this<ServerHost> {
 public:
  ServerHost(rpc::ServerOptions its, std::vector<rpc::Method<Exchange>> known)
      : options(std::move(its)), methods(std::move(known)), takes_long_(new std::atomic<bool>[methods.size()] {}) {}

  /// Asks the core for another call.
  void post();
  /// Runs the handler of a call, and those of others that have waited for a free thread meanwhile; or lets it wait, because
  /// one thread more than `options.threads` stays with the connections: peers that are not answered take the server for lost.
  void handle(std::shared_ptr<ServerCall> call);
  /// Runs the handler of a method in a thread that polls, unless it has taken long before: then another thread polls meanwhile.
  void run(const rpc::Method<Exchange>& method, Exchange& exchange);

 private:
  const Core core_;

 public:
  const rpc::ServerOptions options;
  const std::vector<rpc::Method<Exchange>> methods;
  rpc::ServerSession session{options.secret};
  grpc_server* server = nullptr;
  grpc_completion_queue* const queue = grpc_completion_queue_create_for_next(nullptr);
  PollerThreads threads{queue};

  /// Calls that have not ended, and what ends with them.
  std::mutex mutex;
  detail::ConditionVariable changed;
  std::size_t calls = 0;
  bool shut_down = false;

 private:
  std::mutex handlers_mutex_;
  std::size_t handlers_ = 0;  ///< that run
  std::deque<std::shared_ptr<ServerCall>> waiting_;
  const std::unique_ptr<std::atomic<bool>[]> takes_long_;  ///< the handler of each method, when it ran last
};

/// A call as its server sees it. Its batches that are on their way, the handler while it runs and the memory that was lent
/// for the reply count as users; after the last of them the call has ended.
class ServerCall : public std::enable_shared_from_this<ServerCall> {
 public:
  explicit ServerCall(std::shared_ptr<ServerHost> host) : host_(std::move(host)) { grpc_call_details_init(&details_); }
  ServerCall(const ServerCall&) = delete;
  ServerCall& operator=(const ServerCall&) = delete;
  ~ServerCall() { grpc_call_details_destroy(&details_); }

  void post() {
    self_ = shared_from_this();
    users_ = 1;
    void* const armed =
        accept_tag_.armed(this, [](void* call, bool ok) { static_cast<ServerCall*>(call)->accepted(ok); });
    if (grpc_server_request_call(host_->server, &accepted_, &details_, metadata_.get(), host_->queue, host_->queue,
                                 armed) != GRPC_CALL_OK)
      release();
  }

  [[nodiscard]] std::string_view method() const { return method_; }
  [[nodiscard]] rpc::ChunkSpan pieces() const { return received_.pieces(); }
  [[nodiscard]] bool is_over() const { return over_.load(std::memory_order_acquire); }
  [[nodiscard]] bool is_answered() const { return answered_; }

  void answer(rpc::ReplyHead head, std::vector<std::byte> bytes) {
    if (answered_.exchange(true)) return;
    const std::lock_guard lock{mutex_};
    bytes_ = std::move(bytes);
    const rpc::Chunk piece = bytes_;
    head.size = bytes_.size();
    send_reply(head, {&piece, 1}, bytes_.size() > longest_copied);
  }
  void answer(rpc::ChunkSpan pieces, detail::UniqueFunction<void> release) {
    if (!answered_.exchange(true)) {
      const std::lock_guard lock{mutex_};
      if (!over_) {
        release_ = std::move(release);
        return send_reply({rpc::size_of(pieces), host_->session.incarnation()}, pieces, true);
      }
    }
    if (release) release();
  }
  [[nodiscard]] ServerHost& host() const { return *host_; }

  /// Of a request that is whole, once. Nothing is done for a caller that went while its request waited for a thread.
  void handle() {
    if (!is_over()) answer_request();
    release();
  }

 private:
  void accepted(bool ok) {
    call_.reset(std::exchange(accepted_, nullptr));
    if (ok) {
      host_->post();
      method_ = view(details_.method);
      constexpr std::string_view prefix = "/dist/";
      if (method_.starts_with(prefix)) method_.erase(0, prefix.size());
      const std::lock_guard lock{mutex_};
      batches_ = 1;
      start<&ServerCall::closed>(Batch{}.receive_close(cancelled_), close_tag_);
      start<&ServerCall::received>(Batch{}.receive(message_), receive_tag_);
      end_batch();
    }
    release();
  }

  template <void (ServerCall::*then)(bool)>
  bool start(const Batch& batch, Tag& tag) {
    if (!call_) return false;
    ++users_;
    ++batches_;
    void* const armed = tag.armed(this, [](void* call, bool ok) { static_cast<ServerCall*>(call)->advance<then>(ok); });
    if (batch.start(call_.get(), armed)) return true;
    --users_;
    --batches_;
    return false;
  }
  template <void (ServerCall::*then)(bool)>
  void advance(bool ok) {
    (this->*then)(ok);
    {
      const std::lock_guard lock{mutex_};
      end_batch();
    }
    release();
  }
  /// The core keeps what it did not send as long as it has the call. `mutex_` is held.
  void end_batch() {
    if (--batches_ == 0) {
      over_.store(true, std::memory_order_release);
      call_.reset();
    }
  }

  /// The call is over for its caller, by the reply or before it.
  void closed(bool) {
    const std::lock_guard lock{mutex_};
    over_.store(true, std::memory_order_release);
  }

  void received(bool ok) {
    const Buffer message{std::exchange(message_, nullptr)};
    if (!ok || !message) {
      // The caller has ended its request, or is gone.
      return answer(host_->session.refused("the request ended early"), {});
    }
    received_.add(message.get());
    if (!has_head_) {
      if (const std::optional<rpc::ReplyHead> refusal = take_head()) return answer(*refusal, {});
      has_head_ = true;
    }
    if (received_.size() > head_.size) return answer(host_->session.refused("the request is longer than it says"), {});
    if (received_.size() == head_.size) {
      ++users_;
      return host_->handle(shared_from_this());
    }
    const std::lock_guard lock{mutex_};
    start<&ServerCall::received>(Batch{}.receive(message_), receive_tag_);
  }
  /// The answer where the call is not taken.
  std::optional<rpc::ReplyHead> take_head() {
    try {
      std::optional<rpc::RequestHead> head = grpc::take_head<rpc::RequestHead>(received_);
      if (!head) return host_->session.refused("the request does not begin with a head");
      head_ = std::move(*head);
    } catch (const net::FrameError& error) {
      return host_->session.refused(error.what());
    }
    if (method_ == rpc::greeting_method)
      return head_.size == 0 ? std::nullopt : std::optional{host_->session.refused("a greeting has no bytes")};
    std::optional<rpc::ReplyHead> refusal = host_->session.refusal(head_, method_);
    if (!refusal && head_.size > host_->options.longest)
      refusal = host_->session.refused(rpc::too_long(head_.size, host_->options.longest));
    return refusal;
  }
  void answer_request() {
    if (method_ == rpc::greeting_method) return answer({0, host_->session.incarnation()}, host_->session.answer(head_));
    const rpc::Method<Exchange>* const method = rpc::find_method(host_->methods, method_);
    Exchange exchange{shared_from_this()};
    if (method == nullptr) return exchange.fail({rpc::Failure::unknown_method, rpc::known_methods(host_->methods), ""});
    try {
      host_->run(*method, exchange);
    } catch (...) {
      exchange.fail(rpc::outcome_of_exception());
    }
  }

  /// `mutex_` is held. `lend`: the core reads the pieces where they are.
  void send_reply(const rpc::ReplyHead& head, rpc::ChunkSpan pieces, bool lend) {
    if (over_) return;
    if (lend) {
      ++users_;
      lent_.emplace([](void* call) { static_cast<ServerCall*>(call)->freed(); }, this);
    }
    sender_ = Sender(head.frame(), pieces, lent_ ? &*lent_ : nullptr, longest_message_of_reply);
    send(Batch{}.send_head());
  }
  void send(Batch batch) {
    const Buffer message = sender_.next();
    batch.send(message);
    if (sender_.finished()) batch.end_reply();
    if (!start<&ServerCall::sent>(batch, send_tag_)) stop_sending();
  }
  void sent(bool ok) {
    const std::lock_guard lock{mutex_};
    if (ok && !sender_.finished()) return send(Batch{});
    stop_sending();
  }
  void stop_sending() {
    if (lent_) lent_->release();
  }
  void freed() {
    if (const auto release = std::exchange(release_, {})) release();
    release();
  }

  void release() {
    if (users_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    std::shared_ptr<ServerCall> self;
    {
      const std::lock_guard lock{mutex_};
      over_.store(true, std::memory_order_release);
      self = std::move(self_);
    }
    const std::lock_guard lock{host_->mutex};
    --host_->calls;
    host_->changed.notify_all();
  }

  const std::shared_ptr<ServerHost> host_;
  std::shared_ptr<ServerCall> self_;  ///< until the call has ended
  std::atomic<std::size_t> users_{0};
  std::size_t batches_ = 0;  ///< on their way

  grpc_call* accepted_ = nullptr;
  grpc_call_details details_;
  Metadata metadata_;
  std::string method_;
  bool has_head_ = false;
  rpc::RequestHead head_;
  grpc_byte_buffer* message_ = nullptr;
  Received received_;

  std::mutex mutex_;
  CallPointer call_;
  Tag accept_tag_, receive_tag_, send_tag_, close_tag_;
  int cancelled_ = 0;
  std::atomic<bool> over_{false};
  std::atomic<bool> answered_{
      false};  ///< asked without the lock: `release_`, which may end the exchange, is called under it
  std::vector<std::byte> bytes_;
  detail::UniqueFunction<void> release_;
  std::optional<Borrowed> lent_;
  Sender sender_;
};

inline void ServerHost::post() {
  {
    const std::lock_guard lock{mutex};
    ++calls;
  }
  std::make_shared<ServerCall>(shared_from_this())->post();
}

inline void ServerHost::handle(std::shared_ptr<ServerCall> call) {
  {
    const std::lock_guard lock{handlers_mutex_};
    if (handlers_ == std::max<std::size_t>(1, options.threads)) return waiting_.push_back(std::move(call));
    ++handlers_;
  }
  for (;;) {
    call->handle();
    const std::lock_guard lock{handlers_mutex_};
    if (waiting_.empty()) {
      --handlers_;
      return;
    }
    call = std::move(waiting_.front());
    waiting_.pop_front();
  }
}

inline void ServerHost::run(const rpc::Method<Exchange>& method, Exchange& exchange) {
  constexpr std::int64_t longer_than_a_switch = 50'000;
  std::atomic<bool>& takes_long = takes_long_[static_cast<std::size_t>(&method - methods.data())];
  if (takes_long.load(std::memory_order_relaxed)) threads.step_back();
  const std::int64_t begin = detail::monotonic_nanoseconds();
  method.handler(exchange);
  takes_long.store(detail::monotonic_nanoseconds() - begin > longer_than_a_switch, std::memory_order_relaxed);
}

inline Exchange::~Exchange() {
  if (call_ && !call_->is_answered() && !Core::forked()) fail("the handler gave no answer");
}
inline std::string_view Exchange::method() const { return call_->method(); }
inline rpc::ChunkSpan Exchange::pieces() const { return call_->pieces(); }
inline bool Exchange::cancelled() const { return call_->is_over(); }
inline void Exchange::reply(std::vector<std::byte> bytes) {
  call_->answer({0, call_->host().session.incarnation()}, std::move(bytes));
}
inline void Exchange::reply(rpc::ChunkSpan pieces, detail::UniqueFunction<void> release) {
  call_->answer(pieces, std::move(release));
}
inline void Exchange::fail(rpc::Outcome outcome) {
  call_->answer({0, call_->host().session.incarnation(), std::move(outcome)}, {});
}

/// See rpc::Transport. Its threads are `options.threads`, one more that is free while all of these run handlers, and those
/// of the core.
class Server {
 public:
  Server(const net::Endpoint& own, rpc::ServerOptions options, std::vector<rpc::Method<Exchange>> methods)
      : host_(std::make_shared<ServerHost>(std::move(options), std::move(methods))) {
    std::vector<grpc_arg> list = arguments(host_->options.silence);
    const grpc_channel_args arguments{list.size(), list.data()};
    host_->server = grpc_server_create(&arguments, nullptr);
    grpc_server_register_completion_queue(host_->server, host_->queue, nullptr);
    try {
      listen(own);
    } catch (...) {
      grpc_completion_queue_shutdown(host_->queue);
      destroy();
      throw;
    }
    grpc_server_start(host_->server);
    for (std::size_t i = 0; i < waiting_calls; ++i) host_->post();
    host_->threads.start(std::max<std::size_t>(1, host_->options.threads) + 1, "dist rpc server");
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() { stop(); }

  void stop() {
    if (!host_->threads.started()) return;
    if (Core::forked()) return host_->threads.detach();
    Tag tag;
    grpc_server_shutdown_and_notify(host_->server, host_->queue, tag.armed(&*host_, [](void* host, bool) {
      auto& its = *static_cast<ServerHost*>(host);
      const std::lock_guard lock{its.mutex};
      its.shut_down = true;
      its.changed.notify_all();
    }));
    grpc_server_cancel_all_calls(host_->server);
    {
      std::unique_lock lock{host_->mutex};
      host_->changed.wait(lock, [&] { return host_->shut_down && host_->calls == 0; });
    }
    grpc_completion_queue_shutdown(host_->queue);
    host_->threads.join();
    destroy();
  }

 private:
  /// Calls that may come before a thread takes the first of them; further ones wait in the core.
  static constexpr std::size_t waiting_calls = 64;

  void listen(const net::Endpoint& own) {
    net::ListenOptions options;
    options.peers_elsewhere = host_->options.peers_elsewhere;
    options.port_in_use = host_->options.port_in_use;
    options.authenticated = !host_->options.secret.empty() || !host_->options.tls.empty();
    const ServerCredentials credentials = server_credentials(host_->options.tls);
    static_cast<void>(net::open_at(own, options, [&](const net::SocketAddress& address) {
      // The core does not say why it cannot listen; a socket of ours does.
      if (!net::detail::try_to_listen(address)) return false;
      const std::string where = to_string(net::Endpoint{to_string(address), own.port});
      const int port = grpc_server_add_http2_port(host_->server, where.c_str(), credentials.get());
      if (port == 0) errno = EADDRINUSE;  // somebody was faster
      return port != 0;
    }));
  }
  void destroy() {
    grpc_server_destroy(host_->server);
    while (grpc_completion_queue_next(host_->queue, gpr_inf_future(GPR_CLOCK_REALTIME), nullptr).type !=
           GRPC_QUEUE_SHUTDOWN) {
    }
    grpc_completion_queue_destroy(host_->queue);
  }

  std::shared_ptr<ServerHost> host_;
};

}  // namespace dist::grpc
