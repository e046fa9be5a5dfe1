#pragma once

#include <atomic>
#include <map>
#include <optional>

#include <dist/core/algorithms.hpp>
#include <dist/core/condition_variable.hpp>
#include <dist/core/error.hpp>
#include <dist/rpc/local_transport.hpp>

namespace dist {

/// The servers of this process, by address.
struct Local::Directory {
  std::mutex mutex;
  detail::ConditionVariable changed;
  std::map<std::string, std::weak_ptr<Host>> hosts;
  std::uint64_t servers = 0;
};

/// The common data of all calls of a channel.
struct Local::Caller {
  std::string server;  ///< its address
  rpc::ChannelOptions options;
};

/// The reply to a call: bytes, or memory borrowed until `release`.
class Local::Answer {
 public:
  Answer() = default;
  Answer(std::vector<std::byte> bytes, std::uint64_t incarnation)
      : bytes_(std::move(bytes)), all_(bytes_), incarnation_(incarnation) {}
  Answer(rpc::ChunkSpan lent, detail::UniqueFunction<void> release, std::uint64_t incarnation)
      : lent_(lent.begin(), lent.end()), release_(std::move(release)), incarnation_(incarnation) {}
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  ~Answer() {
    if (release_) release_();
  }
  void swap(Answer& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(all_, other.all_);
    std::swap(lent_, other.lent_);
    std::swap(release_, other.release_);
    std::swap(incarnation_, other.incarnation_);
  }

  [[nodiscard]] rpc::ChunkSpan pieces() const { return lent_.empty() ? rpc::ChunkSpan{&all_, 1} : lent_; }
  [[nodiscard]] std::uint64_t incarnation() const { return incarnation_; }

 private:
  std::vector<std::byte> bytes_;
  rpc::Chunk all_;  ///< all of `bytes_`
  std::vector<rpc::Chunk> lent_;
  detail::UniqueFunction<void> release_;
  std::uint64_t incarnation_ = 0;
};

/// A pending call, shared by its caller and the exchange that answers it.
class Local::Pending {
 public:
  Pending(std::string_view of, std::shared_ptr<const Caller> by, const rpc::CallOptions& options)
      : method(of),
        caller(std::move(by)),
        end(options.timeout.count() == 0 ? Clock::time_point::max() : Clock::now() + options.timeout) {}

  /// The first outcome counts; after the deadline, it is a timeout.
  void finish(Answer& given) {
    const std::lock_guard lock{mutex_};
    if (over()) return;
    if (const std::uint64_t size = rpc::size_of(given.pieces()); size > caller->options.longest) {
      failure_ = rpc::Outcome{rpc::Failure::refused, rpc::too_long(size, caller->options.longest), ""};
    } else {
      answer_.swap(given);
      answered_ = true;
    }
    settle();
  }
  void finish(rpc::Outcome outcome) {
    const std::lock_guard lock{mutex_};
    if (over()) return;
    failure_ = std::move(outcome);
    settle();
  }
  /// True if the call is over, and no handler reads the pieces.
  [[nodiscard]] bool is_done() {
    if (settled_.load(std::memory_order_acquire)) return true;
    const std::lock_guard lock{mutex_};
    return over() && !lent_;
  }
  /// True if the call has an outcome, even if a handler still reads the pieces.
  [[nodiscard]] bool is_over() {
    if (settled_.load(std::memory_order_acquire)) return true;
    const std::lock_guard lock{mutex_};
    return over();
  }
  void wait() {
    if (!settled_.load(std::memory_order_acquire)) {
      std::unique_lock lock{mutex_};
      while (!over() || lent_) {
        if (end == Clock::time_point::max() || failure_)
          changed_.wait(lock);
        else
          changed_.wait_until(lock, end);
      }
    }
    if (failure_) throw RpcError(method, caller->server, *failure_);
  }
  /// Valid after `wait`.
  [[nodiscard]] const Answer& answer() const { return answer_; }

  // The first thread that finds the server sends a waiting call, from a copy of the list of pieces.

  void keep(rpc::ChunkSpan pieces) {
    pieces_.assign(pieces.begin(), pieces.end());
    waits_ = true;
  }
  [[nodiscard]] bool waits() {
    if (settled_.load(std::memory_order_acquire)) return false;
    const std::lock_guard lock{mutex_};
    return waits_;
  }
  /// Returns true in one thread, which must make the server handle `pieces()` and then call `was_handled`.
  [[nodiscard]] bool take_turn() {
    const std::lock_guard lock{mutex_};
    if (!waits_ || over()) return false;
    waits_ = false;
    return lent_ = true;
  }
  [[nodiscard]] rpc::ChunkSpan pieces() const { return pieces_; }
  void was_handled() {
    const std::lock_guard lock{mutex_};
    lent_ = false;
    if (over()) settle();
  }

  const std::string method;
  const std::shared_ptr<const Caller> caller;
  const Clock::time_point end;

 private:
  // The following functions require `mutex_`.

  [[nodiscard]] bool over() {
    if (answered_ || failure_) return true;
    if (end == Clock::time_point::max() || Clock::now() < end) return false;
    failure_ = rpc::Outcome{rpc::Failure::deadline, "no reply has arrived", ""};
    return true;
  }
  void settle() {
    if (!lent_) settled_.store(true, std::memory_order_release);
    changed_.notify_all();
  }

  std::mutex mutex_;
  detail::ConditionVariable changed_;
  Answer answer_;
  std::optional<rpc::Outcome> failure_;
  std::vector<rpc::Chunk> pieces_;
  bool answered_ = false;
  bool waits_ = false;                ///< the call waits for its server
  bool lent_ = false;                 ///< a handler reads the pieces in a thread that did not start the call
  std::atomic<bool> settled_{false};  ///< the call does not change any more
};

/// The state that a server shares with its calls.
class Local::Host {
 public:
  Host(std::vector<rpc::Method<Exchange>> methods, const rpc::ServerOptions& options, std::uint64_t incarnation)
      : methods_(std::move(methods)), options_(options), incarnation_(incarnation) {}

  [[nodiscard]] bool stopped() const { return (running_.load(std::memory_order_acquire) & stopping) != 0; }

  /// Runs the handler for a call. Then the call has ended, or its exchange was kept.
  void serve(const std::shared_ptr<Pending>& call, rpc::ChunkSpan pieces) {
    if ((running_.fetch_add(1, std::memory_order_acq_rel) & stopping) == 0)
      handle(call, pieces);
    else
      call->finish(ended());
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == (stopping | 1)) running_.notify_all();
  }

  void stop() {
    running_.fetch_or(stopping, std::memory_order_acq_rel);
    for (std::uint32_t seen = running_.load(std::memory_order_acquire); seen != stopping;
         seen = running_.load(std::memory_order_acquire))
      running_.wait(seen, std::memory_order_acquire);
    const std::lock_guard lock{mutex_};
    for (const std::weak_ptr<Pending>& kept : kept_)
      if (const auto call = kept.lock()) call->finish(ended());
    kept_.clear();
  }

 private:
  static constexpr std::uint32_t stopping = std::uint32_t{1} << 31;

  [[nodiscard]] static rpc::Outcome ended() { return {rpc::Failure::lost, "the server has stopped", ""}; }

  void handle(const std::shared_ptr<Pending>& call, rpc::ChunkSpan pieces) {
    const std::uint64_t size = rpc::size_of(pieces);
    if (call->caller->options.secret != options_.secret)
      return call->finish({rpc::Failure::refused, "the secrets differ", ""});
    if (size > options_.longest)
      return call->finish({rpc::Failure::refused, rpc::too_long(size, options_.longest), ""});
    const rpc::Method<Exchange>* const method = rpc::find_method(methods_, call->method);
    if (method == nullptr) return call->finish({rpc::Failure::unknown_method, rpc::known_methods(methods_), ""});
    {
      Exchange exchange{call, pieces, incarnation_};
      try {
        method->handler(exchange);
      } catch (...) {
        exchange.finish(rpc::outcome_of_exception());
      }
    }
    if (!call->is_over()) {
      const std::lock_guard lock{mutex_};
      detail::add_live(kept_, call);
    }
  }

  const std::vector<rpc::Method<Exchange>> methods_;
  const rpc::ServerOptions options_;
  const std::uint64_t incarnation_;
  std::atomic<std::uint32_t> running_{0};  ///< number of running handlers, and the flag `stopping`
  std::mutex mutex_;
  std::vector<std::weak_ptr<Pending>> kept_;
};

DIST_INLINE Local::Directory& Local::directory() {
  static Directory directory;
  return directory;
}
DIST_INLINE std::shared_ptr<Local::Host> Local::find(const std::string& address) {
  const std::lock_guard lock{directory().mutex};
  const auto found = directory().hosts.find(address);
  std::shared_ptr<Host> host = found == directory().hosts.end() ? nullptr : found->second.lock();
  return host && !host->stopped() ? host : nullptr;
}

// ---- Reply ----

DIST_INLINE rpc::ChunkSpan Local::Reply::pieces() const { return answer_->pieces(); }
DIST_INLINE std::uint64_t Local::Reply::incarnation() const { return answer_->incarnation(); }

// ---- Exchange ----

struct Local::Exchange::Request {
  std::string method;
  std::vector<std::byte> bytes;
  rpc::Chunk all = bytes;
};

DIST_INLINE Local::Exchange::Exchange(std::shared_ptr<Pending> pending, rpc::ChunkSpan pieces,
                                      std::uint64_t incarnation)
    : incarnation_(incarnation), method_(pending->method), pieces_(pieces), pending_(std::move(pending)) {}
DIST_INLINE Local::Exchange::~Exchange() {
  if (pending_) pending_->finish(rpc::Outcome{rpc::Failure::handler, "the handler did not reply", ""});
}
DIST_INLINE bool Local::Exchange::cancelled() const { return !pending_ || pending_->is_over(); }
DIST_INLINE Local::Exchange Local::Exchange::keep() {
  const auto request = std::make_shared<const Request>(Request{std::string{method_}, rpc::joined(pieces_)});
  Exchange kept{std::move(*this)};
  kept.method_ = request->method;
  kept.pieces_ = {&request->all, 1};
  kept.kept_ = request;
  return kept;
}
DIST_INLINE void Local::Exchange::reply(std::vector<std::byte> bytes) {
  finish(Answer{std::move(bytes), incarnation_});
}
DIST_INLINE void Local::Exchange::reply(rpc::ChunkSpan pieces, detail::UniqueFunction<void> release) {
  finish(Answer{pieces, std::move(release), incarnation_});
}
DIST_INLINE void Local::Exchange::fail(std::string_view text) {
  finish(rpc::Outcome{rpc::Failure::handler, std::string{text}, ""});
}
DIST_INLINE void Local::Exchange::finish(Answer&& answer) {
  if (const auto pending = std::exchange(pending_, nullptr)) pending->finish(answer);
}
DIST_INLINE void Local::Exchange::finish(rpc::Outcome outcome) {
  if (const auto pending = std::exchange(pending_, nullptr)) pending->finish(std::move(outcome));
}

// ---- Server ----

DIST_INLINE Local::Server::Server(const net::Endpoint& own, const rpc::ServerOptions& options,
                                  std::vector<rpc::Method<Exchange>> methods)
    : address_(to_string(own)) {
  net::port_number(own);
  Directory& all = directory();
  std::unique_lock lock{all.mutex};
  const bool free = all.changed.wait_for(lock, options.port_in_use, [&] { return all.hosts[address_].expired(); });
  if (!free)
    throw RendezvousError(concat("This task cannot listen at its own address ", address_),
                          "another server of this process listens there", "Stop that server, or list another port");
  host_ = std::make_shared<Host>(std::move(methods), options, ++all.servers);
  all.hosts[address_] = host_;
  all.changed.notify_all();
}
DIST_INLINE void Local::Server::stop() {
  if (!host_) return;
  host_->stop();
  {
    const std::lock_guard lock{directory().mutex};
    directory().hosts.erase(address_);
  }
  directory().changed.notify_all();
  host_.reset();
}

// ---- Call ----

DIST_INLINE void Local::Call::wait() {
  while (!send_if_possible() && !pending_->is_done()) {
    std::unique_lock lock{directory().mutex};
    // Cancelling or a starting server may not notify this wait.
    directory().changed.wait_until(lock, std::min(pending_->end, Clock::now() + std::chrono::milliseconds{20}));
  }
  pending_->wait();
}
DIST_INLINE bool Local::Call::is_done() const { return send_if_possible(), pending_->is_done(); }
DIST_INLINE void Local::Call::cancel() { pending_->finish({rpc::Failure::cancelled, "by the caller", ""}); }
DIST_INLINE Local::Reply Local::Call::reply() {
  wait();
  return Reply{{pending_, &pending_->answer()}};
}
DIST_INLINE bool Local::Call::send_if_possible() const {
  if (!pending_->waits()) return true;
  const std::shared_ptr<Host> host = find(pending_->caller->server);
  if (!host) return false;
  if (pending_->take_turn()) {
    host->serve(pending_, pending_->pieces());
    pending_->was_handled();
  }
  return true;
}

// ---- Channel ----

DIST_INLINE Local::Channel::Channel(const net::Endpoint& server, rpc::ChannelOptions options)
    : caller_(std::make_shared<const Caller>(Caller{to_string(server), std::move(options)})) {}
DIST_INLINE Local::Channel::~Channel() {
  for (const std::weak_ptr<Pending>& open : open_)
    if (const auto call = open.lock()) call->finish({rpc::Failure::cancelled, "its channel was destroyed", ""});
}
DIST_INLINE rpc::State Local::Channel::state() const {
  const std::lock_guard lock{mutex_};
  if (!host_) return rpc::State::idle;
  return host_->stopped() && !find(caller_->server) ? rpc::State::lost : rpc::State::ready;
}
DIST_INLINE Local::Call Local::Channel::start(std::string_view method, rpc::ChunkSpan pieces,
                                              const rpc::CallOptions& options) {
  auto pending = std::make_shared<Pending>(method, caller_, options);
  if (const std::shared_ptr<Host> host = this->host())
    host->serve(pending, pieces);
  else if (options.wait_for_server)
    pending->keep(pieces);
  else
    pending->finish({rpc::Failure::lost, "no server of this process listens there", ""});
  if (!pending->is_done()) {
    const std::lock_guard lock{mutex_};
    detail::add_live(open_, pending);
  }
  return Call{std::move(pending)};
}
DIST_INLINE std::shared_ptr<Local::Host> Local::Channel::host() {
  const std::lock_guard lock{mutex_};
  if (!host_ || host_->stopped()) {
    std::shared_ptr<Host> found = find(caller_->server);
    if (!found) return nullptr;
    host_ = std::move(found);
  }
  return host_;
}

}  // namespace dist
