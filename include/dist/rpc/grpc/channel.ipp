#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <dist/core/condition_variable.hpp>
#include <dist/core/thread_name.hpp>
#include <dist/core/threads.hpp>
#include <dist/rpc/grpc/api.hpp>
#include <dist/rpc/grpc/channel.hpp>
#include <dist/rpc/rpc_session.hpp>

namespace dist::grpc {

/// The completion queue of all channels of a process, and a thread that processes its events while no caller does.
///
/// A single waiting caller polls the queue itself, which saves two thread switches. One thread polls at a time: this
/// class's thread stops when it has ended the call of the only waiting caller, and resumes when no caller has polled
/// for a millisecond, or when several wait.
class ClientThread {
 public:
  /// The instance of this process, created if necessary.
  [[nodiscard]] static std::shared_ptr<ClientThread> shared() {
    static std::mutex mutex;
    static std::weak_ptr<ClientThread> current;
    Core::refuse_after_fork();
    const std::lock_guard lock{mutex};
    std::shared_ptr<ClientThread> thread = current.lock();
    if (!thread) current = thread = std::make_shared<ClientThread>();
    return thread;
  }

  ClientThread() : queue_(grpc_completion_queue_create_for_next(nullptr)), thread_([this] { run(); }) {}
  ClientThread(const ClientThread&) = delete;
  ClientThread& operator=(const ClientThread&) = delete;
  ~ClientThread() {
    if (Core::forked()) {
      thread_.detach();
      return;
    }
    {
      const std::lock_guard lock{mutex_};
      ending_ = true;
    }
    changed_.notify_one();
    grpc_completion_queue_shutdown(queue_);
    thread_.join();
    grpc_completion_queue_destroy(queue_);
  }

  [[nodiscard]] grpc_completion_queue* queue() const { return queue_; }

  /// Polls until `done()`, and returns true. Returns false at once if another thread polls; the caller then counts as
  /// waiting until `stop_waiting`.
  template <class Done>
  [[nodiscard]] bool poll_until(Done done) {
    {
      const std::lock_guard lock{mutex_};
      if (polled_ || ending_) {
        ++waiting_;
        return false;
      }
      polled_ = true;
    }
    // The last release of borrowed memory may end a call without an event.
    while (!done()) next(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(10, GPR_TIMESPAN)));
    bool wake = false;
    {
      const std::lock_guard lock{mutex_};
      polled_ = false;
      ++visits_;
      handed_over_ = waiting_ > 0;
      wake = handed_over_ || asleep_;
    }
    if (wake) changed_.notify_one();
    return true;
  }
  void stop_waiting() {
    const std::lock_guard lock{mutex_};
    --waiting_;
  }
  /// Reports the end of a call with a waiting caller. Called in the polling thread.
  void ended_a_wait() { ended_a_wait_.store(true, std::memory_order_relaxed); }

 private:
  bool next(gpr_timespec until) {
    const grpc_event event = poller_.next(until);
    if (event.type == GRPC_OP_COMPLETE) Tag::done(event);
    return event.type != GRPC_QUEUE_SHUTDOWN;
  }
  void run() {
    detail::name_this_thread("dist rpc client");
    std::unique_lock lock{mutex_};
    for (;;) {
      polled_ = true;
      handed_over_ = false;
      ended_a_wait_.store(false, std::memory_order_relaxed);
      do {
        lock.unlock();
        const bool going = next(gpr_inf_future(GPR_CLOCK_REALTIME));
        lock.lock();
        if (!going) return;
      } while (!ended_a_wait_.exchange(false, std::memory_order_relaxed) || waiting_ > 1);
      polled_ = false;
      for (std::uint64_t seen = visits_ - 1; polled_ || !(ending_ || handed_over_ || seen == visits_);) {
        asleep_ = polled_ && seen == visits_;
        if (asleep_) {
          changed_.wait(lock, [&] { return seen != visits_; });
        } else {
          seen = visits_;
          changed_.wait_for(lock, std::chrono::milliseconds{1});
        }
      }
      asleep_ = false;
    }
  }

  const Core core_;
  grpc_completion_queue* const queue_;
  Poller poller_{queue_};
  std::mutex mutex_;
  detail::ConditionVariable changed_;
  bool polled_ = true;  ///< true if some thread polls, initially this one
  bool ending_ = false;
  std::size_t waiting_ = 0;   ///< callers that wait for the polling thread
  std::uint64_t visits_ = 0;  ///< number of callers that have polled
  bool handed_over_ = false;  ///< the last caller stopped polling while others waited
  bool asleep_ = false;       ///< the thread sleeps until a caller that has polled for a millisecond stops
  std::atomic<bool> ended_a_wait_{false};
  std::thread thread_;
};

/// The state that a channel shares with its calls.
class ClientLink {
 public:
  ClientLink(std::string server, rpc::ChannelOptions its) : address(std::move(server)), options(std::move(its)) {
    std::vector<grpc_arg> list = arguments(options);
    const grpc_channel_args arguments{list.size(), list.data()};
    channel.reset(grpc_channel_create(address.c_str(), channel_credentials(options.tls).get(), &arguments));
  }
  ClientLink(const ClientLink&) = delete;
  ClientLink& operator=(const ClientLink&) = delete;
  [[nodiscard]] bool is_connected() const {
    return grpc_channel_check_connectivity_state(channel.get(), 0) == GRPC_CHANNEL_READY;
  }
  ~ClientLink() {
    if (Core::forked()) static_cast<void>(channel.release());
  }

 private:
  const Core core_;

 public:
  const std::string address;
  const rpc::ChannelOptions options;
  ChannelPointer channel;
  rpc::ClientSession session{options.secret};
};

/// A client's call, preceded by a greeting if the server's nonce is unknown.
///
/// The core does not report why a call that waits for its server has no connection. Such a call therefore first sends a
/// greeting that does not wait. If the server's certificate is rejected, the call fails; otherwise, a later
/// DeadlineExceeded includes the reason.
///
/// An attempt ends with its last user: pending batches, borrowed memory, and the function that starts it.
class ClientCall : public std::enable_shared_from_this<ClientCall> {
 public:
  ClientCall(std::shared_ptr<ClientLink> link, std::string_view method, rpc::ChunkSpan pieces,
             const rpc::CallOptions& options)
      : link_(std::move(link)),
        method_(method),
        lent_pieces_(pieces.begin(), pieces.end()),
        size_(rpc::size_of(pieces)),
        wait_for_server_(options.wait_for_server),
        sink_(options.sink),
        deadline_(deadline_in(options.timeout)) {}
  ClientCall(const ClientCall&) = delete;
  ClientCall& operator=(const ClientCall&) = delete;

  void start(const std::shared_ptr<ClientThread>& thread) {
    thread_ = thread;
    poller_ = &*thread;
    self_ = shared_from_this();
    attempt();
  }
  void wait_for_end() {
    const std::shared_ptr<ClientThread> thread = thread_.lock();
    if (is_done() || !thread) return;
    waiters_.fetch_add(1, std::memory_order_relaxed);
    if (!thread->poll_until([&] { return is_done(); })) {
      {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return done_; });
      }
      thread->stop_waiting();
    }
  }
  /// Throws RpcError if the call has no reply.
  void wait() {
    wait_for_end();
    if (outcome_) throw RpcError(method_, link_->address, *outcome_);
  }
  [[nodiscard]] bool is_done() const {
    const std::lock_guard lock{mutex_};
    return done_;
  }
  void cancel(std::string_view why) {
    const std::lock_guard lock{mutex_};
    if (done_ || cancelled_) return;
    cancelled_ = why;
    if (call_) grpc_call_cancel(call_.get(), nullptr);
  }
  [[nodiscard]] rpc::ChunkSpan pieces() const { return received_.pieces(); }
  [[nodiscard]] std::uint64_t incarnation() const { return reply_.incarnation; }

 private:
  /// The maximum number of attempts if the server rejects the nonce.
  static constexpr std::size_t most_attempts = 8;

  void attempt() {
    {
      const std::lock_guard lock{mutex_};
      ++attempts_;
      looking_ = wait_for_server_ && attempts_ == 1 && !link_->is_connected();
      greeting_ = looking_ || link_->session.must_greet();
      head_ = greeting_ ? link_->session.greeting() : link_->session.head(method_, size_);
      received_.clear();
      has_reply_head_ = false;
      users_ = batches_ = 1;
      lent_.reset();
      if (!greeting_ && size_ > longest_copied) {
        ++users_;
        lent_.emplace([](void* call) { static_cast<ClientCall*>(call)->release(); }, this);
      }
      sender_ = Sender(head_.frame(), greeting_ ? rpc::ChunkSpan{} : rpc::ChunkSpan{lent_pieces_},
                       lent_ ? &*lent_ : nullptr, longest_message);
      const std::string path = concat("/dist/", greeting_ ? rpc::greeting_method : std::string_view{method_});
      const grpc_slice name = grpc_slice_from_copied_buffer(path.data(), path.size());
      call_.reset(grpc_channel_create_call(link_->channel.get(), nullptr, GRPC_PROPAGATE_DEFAULTS, poller_->queue(),
                                           name, nullptr, deadline_, nullptr));
      grpc_slice_unref(name);
      if (cancelled_) grpc_call_cancel(call_.get(), nullptr);
      metadata_.emplace();
      trailing_metadata_.emplace();
      start<&ClientCall::ended>(Batch{}.receive_status(*trailing_metadata_, status_, details_), status_tag_);
      send(Batch{}.send_head(wait_for_server_ && !looking_ ? GRPC_INITIAL_METADATA_WAIT_FOR_READY : 0));
      start<&ClientCall::received>(Batch{}.receive_head(*metadata_).receive(message_), receive_tag_);
      end_batch();
    }
    release();
  }

  /// The following functions require `mutex_`.
  template <void (ClientCall::*then)(bool)>
  bool start(const Batch& batch, Tag& tag) {
    ++users_;
    ++batches_;
    void* const armed = tag.armed(this, [](void* call, bool ok) { static_cast<ClientCall*>(call)->advance<then>(ok); });
    if (batch.start(call_.get(), armed)) return true;
    --users_;
    --batches_;
    return false;
  }
  template <void (ClientCall::*then)(bool)>
  void advance(bool ok) {
    {
      const std::lock_guard lock{mutex_};
      (this->*then)(ok);
      end_batch();
    }
    release();
  }
  /// Releases the call after its last batch, because it owns unsent data.
  void end_batch() {
    if (--batches_ == 0) call_.reset();
  }
  void send(Batch batch) {
    const Buffer message = sender_.next();
    batch.send(message);
    if (sender_.finished()) batch.end_request();
    if (!start<&ClientCall::sent>(batch, send_tag_)) sent(false);
  }
  void sent(bool ok) {
    if (ok && !sender_.finished()) return send(Batch{});
    if (lent_) lent_->release();
  }
  void received(bool ok) {
    const Buffer message{std::exchange(message_, nullptr)};
    if (!ok || !message) return;
    received_.add(message.get());
    if (!has_reply_head_ && !take_reply_head()) return;
    if (received_.size() > reply_.size) return static_cast<void>(refuse("the reply is longer than its head declares"));
    if (sink_ != nullptr && !greeting_) received_.give_to(*sink_);
    if (received_.size() < reply_.size) start<&ClientCall::received>(Batch{}.receive(message_), receive_tag_);
  }
  bool take_reply_head() {
    try {
      std::optional<rpc::ReplyHead> head = take_head<rpc::ReplyHead>(received_);
      if (!head) return refuse("the reply does not begin with a head");
      reply_ = std::move(*head);
    } catch (const net::FrameError& error) {
      return refuse(error.what());
    }
    if (reply_.size > link_->options.longest) return refuse(rpc::too_long(reply_.size, link_->options.longest));
    return has_reply_head_ = true;
  }
  [[gnu::cold]] bool refuse(std::string_view why) {
    outcome_ = rpc::Outcome{rpc::Failure::refused, std::string{why}, ""};
    grpc_call_cancel(call_.get(), nullptr);
    return false;
  }
  void ended(bool) {}

  void release() {
    if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) attempt_is_over();
  }
  void attempt_is_over() {
    std::shared_ptr<ClientCall> self;
    {
      const std::lock_guard lock{mutex_};
      const bool again = look_at_end();
      grpc_slice_unref(std::exchange(details_, grpc_empty_slice()));
      metadata_.reset();
      trailing_metadata_.reset();
      if (!again) {
        self = std::move(self_);
        lent_pieces_.clear();
        if (waiters_.load(std::memory_order_relaxed) > 0) poller_->ended_a_wait();
        done_ = true;
      }
    }
    // Without the lock, because the woken threads take it.
    if (self)
      changed_.notify_all();
    else
      attempt();
  }
  /// Returns true if another attempt is needed; otherwise sets `outcome_`.
  bool look_at_end() {
    if (outcome_) return false;
    if (status_ != GRPC_STATUS_OK) {
      if (cancelled_) return fail(rpc::Failure::cancelled, *cancelled_);
      return look_at_failure(failure_of_status());
    }
    if (!has_reply_head_) return fail(rpc::Failure::refused, "it ended without a reply");
    if (received_.size() < reply_.size) return fail(rpc::Failure::lost, "the reply ended early");
    if (reply_.greet_again) {
      link_->session.forget(head_.of_server);
      if (attempts_ < most_attempts) return true;
      return fail(rpc::Failure::refused, "the server had a different nonce at every attempt");
    }
    outcome_ = reply_.failure;
    if (outcome_ || !greeting_) return false;
    if (!link_->session.must_greet()) return true;  // it was only a probe
    try {
      outcome_ = link_->session.greeted(rpc::joined(received_.pieces()));
    } catch (const net::FrameError& error) {
      return fail(rpc::Failure::refused, error.what());
    }
    return !outcome_;
  }
  [[gnu::cold]] bool look_at_failure(rpc::Failure failure) {
    if (failure == rpc::Failure::lost) {
      if (const std::optional<std::string> why = distrust(view(details_), link_->options.tls))
        return fail(rpc::Failure::refused, *why);
      std::string why = failed_connection(view(details_), link_->options.tls);
      if (!looking_) {
        fail(failure, why);
        outcome_->silent = was_silent(view(details_));
        return false;
      }
      found_ = std::move(why);
      return true;
    }
    const bool was_there = failure != rpc::Failure::deadline || found_.empty();
    return fail(failure, concat(view(details_), was_there ? "" : "; at first ", was_there ? "" : found_));
  }
  bool fail(rpc::Failure failure, std::string_view why) {
    outcome_ = rpc::Outcome{failure, std::string{why}, ""};
    return false;
  }
  rpc::Failure failure_of_status() const {
    switch (status_) {
      case GRPC_STATUS_DEADLINE_EXCEEDED:
        return rpc::Failure::deadline;
      case GRPC_STATUS_UNAVAILABLE:
      case GRPC_STATUS_CANCELLED:  // by a stopping server
      case GRPC_STATUS_ABORTED:
      case GRPC_STATUS_INTERNAL:  // connection lost in the middle of a message
      case GRPC_STATUS_UNKNOWN:
        return rpc::Failure::lost;
      default:
        return rpc::Failure::refused;
    }
  }

  const std::shared_ptr<ClientLink> link_;
  const std::string method_;
  std::vector<rpc::Chunk> lent_pieces_;
  const std::uint64_t size_;
  const bool wait_for_server_;
  rpc::ReplySink* const sink_;
  const gpr_timespec deadline_;
  std::weak_ptr<ClientThread> thread_;
  ClientThread* poller_ = nullptr;  ///< valid until the call is done
  std::atomic<std::size_t> waiters_{0};
  std::shared_ptr<ClientCall> self_;  ///< set until the call is done

  mutable std::mutex mutex_;
  mutable detail::ConditionVariable changed_;
  bool done_ = false;
  std::optional<std::string> cancelled_;
  std::optional<rpc::Outcome> outcome_;  ///< reason for a missing reply

  std::atomic<std::size_t> users_{0};
  std::size_t batches_ = 0;  ///< pending batches, plus one while the call is started
  std::size_t attempts_ = 0;
  bool looking_ = false;  ///< the attempt probes the server before the call waits for it
  std::string found_;     ///< why the probe failed
  bool greeting_ = false;
  rpc::RequestHead head_;
  std::optional<Borrowed> lent_;
  Sender sender_;
  CallPointer call_;
  Tag send_tag_, receive_tag_, status_tag_;
  std::optional<Metadata> metadata_, trailing_metadata_;
  grpc_byte_buffer* message_ = nullptr;
  Received received_;
  bool has_reply_head_ = false;
  rpc::ReplyHead reply_;
  grpc_status_code status_ = GRPC_STATUS_UNKNOWN;
  grpc_slice details_ = grpc_empty_slice();
};

DIST_INLINE rpc::ChunkSpan Reply::pieces() const { return call_->pieces(); }
DIST_INLINE std::uint64_t Reply::incarnation() const { return call_->incarnation(); }

DIST_INLINE void Call::wait() const { call_->wait(); }
DIST_INLINE bool Call::is_done() const { return call_->is_done(); }
DIST_INLINE void Call::cancel() { call_->cancel("by the caller"); }
DIST_INLINE Reply Call::reply() const {
  wait();
  return Reply{call_};
}

DIST_INLINE Channel::Channel(const net::Endpoint& server, rpc::ChannelOptions options)
    : thread_(ClientThread::shared()), link_(std::make_shared<ClientLink>(to_string(server), std::move(options))) {}
DIST_INLINE Channel::~Channel() {
  if (Core::forked()) return;
  for (const std::weak_ptr<ClientCall>& open : open_)
    if (const auto call = open.lock()) call->cancel("its channel was destroyed");
  for (const std::weak_ptr<ClientCall>& open : open_)
    if (const auto call = open.lock()) call->wait_for_end();
}
DIST_INLINE rpc::State Channel::state() const {
  Core::refuse_after_fork();
  switch (grpc_channel_check_connectivity_state(link_->channel.get(), 0)) {
    case GRPC_CHANNEL_IDLE:
      return rpc::State::idle;
    case GRPC_CHANNEL_CONNECTING:
      return rpc::State::connecting;
    case GRPC_CHANNEL_READY:
      return rpc::State::ready;
    default:
      return rpc::State::lost;
  }
}
DIST_INLINE Call Channel::start(std::string_view method, rpc::ChunkSpan pieces, const rpc::CallOptions& options) {
  Core::refuse_after_fork();
  auto call = std::make_shared<ClientCall>(link_, method, pieces, options);
  {
    const std::lock_guard lock{mutex_};
    detail::add_live(open_, call);
  }
  call->start(thread_);
  return Call{std::move(call)};
}

}  // namespace dist::grpc
