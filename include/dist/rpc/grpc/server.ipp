#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

#include <dist/core/algorithms.hpp>
#include <dist/core/condition_variable.hpp>
#include <dist/net/listen.hpp>
#include <dist/rpc/grpc/api.hpp>
#include <dist/rpc/grpc/poller_threads.hpp>
#include <dist/rpc/grpc/server.hpp>
#include <dist/rpc/rpc_session.hpp>

namespace dist::grpc {

/// The state that a server shares with its calls.
class ServerHost : public std::enable_shared_from_this<ServerHost> {
 public:
  ServerHost(rpc::ServerOptions its, std::vector<rpc::Method<Exchange>> known)
      : options(std::move(its)), methods(std::move(known)), takes_long_(new std::atomic<bool>[methods.size()] {}) {}

  void post();
  /// Runs the handler of a call, then the handlers of queued calls. If `options.threads` handlers already run, queues
  /// the call: one thread remains for the connections, because peers without replies would consider the server lost.
  void handle(std::shared_ptr<ServerCall> call);
  /// Runs the handler of a method in the polling thread. If its last run took long, lets another thread poll meanwhile.
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

  /// Number of calls that have not ended, and its guards.
  std::mutex mutex;
  detail::ConditionVariable changed;
  std::size_t calls = 0;
  bool shut_down = false;

 private:
  std::mutex handlers_mutex_;
  std::size_t handlers_ = 0;  ///< running handlers
  std::deque<std::shared_ptr<ServerCall>> waiting_;
  const std::unique_ptr<std::atomic<bool>[]> takes_long_;  ///< for each method: its last run took long
};

/// The server's side of a call. It ends with its last user: pending batches, the running handler, and borrowed memory.
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

  /// Handles a complete request, unless the caller has left since it was queued.
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
  /// Releases the call after its last batch, because it owns unsent data. Requires `mutex_`.
  void end_batch() {
    if (--batches_ == 0) {
      over_.store(true, std::memory_order_release);
      call_.reset();
    }
  }

  /// The call is over for its caller, with or without a reply.
  void closed(bool) {
    const std::lock_guard lock{mutex_};
    over_.store(true, std::memory_order_release);
  }

  void received(bool ok) {
    const Buffer message{std::exchange(message_, nullptr)};
    if (!ok || !message) {
      // The caller has ended its request, or is lost.
      return answer(host_->session.refused("the request ended early"), {});
    }
    received_.add(message.get());
    if (!has_head_) {
      if (const std::optional<rpc::ReplyHead> refusal = take_head()) return answer(*refusal, {});
      has_head_ = true;
    }
    if (received_.size() > head_.size)
      return answer(host_->session.refused("the request is longer than its head declares"), {});
    if (received_.size() == head_.size) {
      ++users_;
      return host_->handle(shared_from_this());
    }
    const std::lock_guard lock{mutex_};
    start<&ServerCall::received>(Batch{}.receive(message_), receive_tag_);
  }
  /// Reads the head of a request. Returns the reply if the call is rejected.
  std::optional<rpc::ReplyHead> take_head() {
    try {
      std::optional<rpc::RequestHead> head = grpc::take_head<rpc::RequestHead>(received_);
      if (!head) return host_->session.refused("the request does not begin with a head");
      head_ = std::move(*head);
    } catch (const net::FrameError& error) {
      return host_->session.refused(error.what());
    }
    if (method_ == rpc::greeting_method)
      return head_.size == 0 ? std::nullopt : std::optional{host_->session.refused("a greeting must not have bytes")};
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

  /// Requires `mutex_`. `lend`: the core reads the pieces without a copy.
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
  std::shared_ptr<ServerCall> self_;  ///< set until the call has ended
  std::atomic<std::size_t> users_{0};
  std::size_t batches_ = 0;  ///< pending

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
  std::atomic<bool> answered_{false};  ///< atomic: `release_`, called under the lock, may end the exchange
  std::vector<std::byte> bytes_;
  detail::UniqueFunction<void> release_;
  std::optional<Borrowed> lent_;
  Sender sender_;
};

DIST_INLINE void ServerHost::post() {
  {
    const std::lock_guard lock{mutex};
    ++calls;
  }
  std::make_shared<ServerCall>(shared_from_this())->post();
}

DIST_INLINE void ServerHost::handle(std::shared_ptr<ServerCall> call) {
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

DIST_INLINE void ServerHost::run(const rpc::Method<Exchange>& method, Exchange& exchange) {
  constexpr std::int64_t longer_than_a_switch = 50'000;
  std::atomic<bool>& takes_long = takes_long_[static_cast<std::size_t>(&method - methods.data())];
  if (takes_long.load(std::memory_order_relaxed)) threads.step_back();
  const std::int64_t begin = detail::monotonic_nanoseconds();
  method.handler(exchange);
  takes_long.store(detail::monotonic_nanoseconds() - begin > longer_than_a_switch, std::memory_order_relaxed);
}

DIST_INLINE Exchange::~Exchange() {
  if (call_ && !call_->is_answered() && !Core::forked()) fail("the handler did not reply");
}
DIST_INLINE std::string_view Exchange::method() const { return call_->method(); }
DIST_INLINE rpc::ChunkSpan Exchange::pieces() const { return call_->pieces(); }
DIST_INLINE bool Exchange::cancelled() const { return call_->is_over(); }
DIST_INLINE void Exchange::reply(std::vector<std::byte> bytes) {
  call_->answer({0, call_->host().session.incarnation()}, std::move(bytes));
}
DIST_INLINE void Exchange::reply(rpc::ChunkSpan pieces, detail::UniqueFunction<void> release) {
  call_->answer(pieces, std::move(release));
}
[[gnu::cold]] DIST_INLINE void Exchange::fail(rpc::Outcome outcome) {
  call_->answer({0, call_->host().session.incarnation(), std::move(outcome)}, {});
}

DIST_INLINE Server::Server(const net::Endpoint& own, rpc::ServerOptions options,
                           std::vector<rpc::Method<Exchange>> methods)
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
  // The number of calls that may arrive before a thread takes the first one; the core queues further ones.
  constexpr std::size_t waiting_calls = 64;
  for (std::size_t i = 0; i < waiting_calls; ++i) host_->post();
  host_->threads.start(std::max<std::size_t>(1, host_->options.threads) + 1, "dist rpc server");
}
DIST_INLINE void Server::stop() {
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

DIST_INLINE void Server::listen(const net::Endpoint& own) {
  net::ListenOptions options;
  options.peers_elsewhere = host_->options.peers_elsewhere;
  options.port_in_use = host_->options.port_in_use;
  options.authenticated = !host_->options.secret.empty() || !host_->options.tls.empty();
  const ServerCredentials credentials = server_credentials(host_->options.tls);
  static_cast<void>(net::open_at(own, options, [&](const net::SocketAddress& address) {
    // The core does not report why it cannot listen, but our own socket does.
    if (!net::detail::try_to_listen(address)) return false;
    const std::string where = to_string(net::Endpoint{to_string(address), own.port});
    const int port = grpc_server_add_http2_port(host_->server, where.c_str(), credentials.get());
    if (port == 0) errno = EADDRINUSE;  // another process was faster
    return port != 0;
  }));
}
[[gnu::cold]] DIST_INLINE void Server::destroy() {
  grpc_server_destroy(host_->server);
  while (grpc_completion_queue_next(host_->queue, gpr_inf_future(GPR_CLOCK_REALTIME), nullptr).type !=
         GRPC_QUEUE_SHUTDOWN) {
  }
  grpc_completion_queue_destroy(host_->queue);
}

}  // namespace dist::grpc
