#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/comm/rpc.hpp>
#include <dist/core/pointers.hpp>

namespace dist {

/// Calls between the threads of one process, for tests and for servers that need no process of their own. A handler runs
/// in the thread of its caller and reads the caller's memory, so that a call switches no threads and copies nothing.
/// Addresses are names: no socket listens. An rpc::Transport.
struct Local {
  static constexpr bool within_process = true;

  class Server;
  class Channel;
  class Exchange;
  class Call;
  class Reply;

 private:
  using Clock = std::chrono::steady_clock;
  class Pending;
  class Host;

  /// Who listens where in this process.
  struct Directory {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::string, std::weak_ptr<Host>> hosts;
    std::uint64_t servers = 0;
  };
  [[nodiscard]] static Directory& directory() {
    static Directory directory;
    return directory;
  }
  /// The server at an address, or nullptr where there is none that goes on.
  [[nodiscard]] static std::shared_ptr<Host> find(const std::string& address);
};

/// What came back. See rpc::Reply.
class Local::Reply {
 public:
  [[nodiscard]] rpc::GatherList pieces() const { return content_->pieces; }
  [[nodiscard]] std::uint64_t incarnation() const { return content_->incarnation; }

 private:
  friend struct Local;
  friend class Local::Pending;
  friend class Local::Exchange;

  struct Content {
    Content() = default;
    Content(const Content&) = delete;
    Content& operator=(const Content&) = delete;
    ~Content() {
      if (release) release();
    }
    std::vector<std::byte> bytes;
    std::vector<rpc::Piece> pieces;
    detail::KeptFunction<void> release;
    std::uint64_t incarnation = 0;
  };
  explicit Reply(std::shared_ptr<const Content> content) : content_(std::move(content)) {}

  std::shared_ptr<const Content> content_;
};

/// A call that goes on: of its caller, and of the exchange that answers it.
class Local::Pending {
 public:
  Pending(std::string_view of, std::string_view to, const rpc::ChannelOptions& from, rpc::GatherList lent_pieces,
          const rpc::CallOptions& options)
      : method(of),
        peer(to),
        channel(from),
        pieces(lent_pieces.begin(), lent_pieces.end()),
        end(options.timeout.count() == 0 ? Clock::time_point::max() : Clock::now() + options.timeout) {}

  /// The first of several outcomes counts, and none after the call's time.
  void finish(std::shared_ptr<const Reply::Content> content) {
    const std::lock_guard lock{mutex};
    if (over()) return;
    if (const std::uint64_t size = rpc::size_of(content->pieces); size > channel.longest)
      failure = rpc::Outcome{rpc::Failure::refused, rpc::too_long(size, channel.longest), ""};
    else
      reply = std::move(content);
    changed.notify_all();
  }
  void finish(rpc::Outcome outcome) {
    const std::lock_guard lock{mutex};
    if (over()) return;
    failure = std::move(outcome);
    changed.notify_all();
  }
  [[nodiscard]] bool is_done() {
    const std::lock_guard lock{mutex};
    return over() && !lent;
  }
  /// Nobody waits for an answer any more, though the handler may still read the pieces.
  [[nodiscard]] bool is_over() {
    const std::lock_guard lock{mutex};
    return over();
  }
  /// `mutex` is held.
  [[nodiscard]] bool over() {
    if (reply || failure) return true;
    if (end == Clock::time_point::max() || Clock::now() < end) return false;
    failure = rpc::Outcome{rpc::Failure::deadline, "nobody has answered", ""};
    return true;
  }
  void wait() {
    std::unique_lock lock{mutex};
    while (!over() || lent) {
      if (end == Clock::time_point::max() || failure)
        changed.wait(lock);
      else
        changed.wait_until(lock, end);
    }
    if (failure) throw RpcError(method, peer, *failure);
  }

  const std::string method;
  const std::string peer;
  const rpc::ChannelOptions channel;
  const std::vector<rpc::Piece> pieces;
  const Clock::time_point end;
  std::mutex mutex;
  std::condition_variable changed;
  std::shared_ptr<const Reply::Content> reply;
  std::optional<rpc::Outcome> failure;
  bool sent = false;  ///< to a server
  bool lent = false;  ///< a handler in another thread than the one that started the call reads the pieces
};

/// See rpc::Exchange.
class Local::Exchange {
 public:
  Exchange(Exchange&&) noexcept = default;
  Exchange& operator=(Exchange&&) = delete;
  Exchange(const Exchange&) = delete;
  ~Exchange() {
    if (pending_) pending_->finish(rpc::Outcome{rpc::Failure::handler, "the handler gave no answer", ""});
  }

  [[nodiscard]] std::string_view method() const { return method_; }
  [[nodiscard]] rpc::GatherList pieces() const { return pieces_; }
  [[nodiscard]] bool cancelled() const { return !pending_ || pending_->is_over(); }
  /// Copies the request, which lies in the caller's memory.
  [[nodiscard]] Exchange keep() {
    Exchange kept{std::exchange(pending_, nullptr), incarnation_};
    kept.bytes_ = rpc::joined(pieces_);
    kept.pieces_ = {kept.bytes_};
    return kept;
  }
  void reply(std::vector<std::byte> bytes) {
    auto content = std::make_shared<Reply::Content>();
    content->bytes = std::move(bytes);
    content->pieces = {content->bytes};
    finish(std::move(content));
  }
  void reply(rpc::GatherList pieces, detail::KeptFunction<void> release) {
    auto content = std::make_shared<Reply::Content>();
    content->pieces.assign(pieces.begin(), pieces.end());
    content->release = std::move(release);
    finish(std::move(content));
  }
  void fail(std::string_view text) { finish(rpc::Outcome{rpc::Failure::handler, std::string{text}, ""}); }

 private:
  friend class Local::Host;

  Exchange(std::shared_ptr<Pending> pending, std::uint64_t incarnation)
      : incarnation_(incarnation),
        method_(pending ? pending->method : ""),
        pieces_(pending ? pending->pieces : std::vector<rpc::Piece>{}),
        pending_(std::move(pending)) {}

  void finish(std::shared_ptr<Reply::Content> content) {
    content->incarnation = incarnation_;
    if (const auto pending = std::exchange(pending_, nullptr)) pending->finish(std::move(content));
  }
  void finish(rpc::Outcome outcome) {
    if (const auto pending = std::exchange(pending_, nullptr)) pending->finish(std::move(outcome));
  }

  std::uint64_t incarnation_;
  std::string method_;
  std::vector<std::byte> bytes_;
  std::vector<rpc::Piece> pieces_;
  std::shared_ptr<Pending> pending_;
};

/// What a server shares with the calls to it.
class Local::Host {
 public:
  Host(std::vector<rpc::Method<Exchange>> methods, const rpc::ServerOptions& options, std::uint64_t incarnation)
      : methods_(std::move(methods)), options_(options), incarnation_(incarnation) {}

  [[nodiscard]] bool stopped() const { return (running_.load(std::memory_order_acquire) & stopping) != 0; }

  /// Runs the handler for a call. Whatever happens, the call ends or its exchange was kept.
  void serve(const std::shared_ptr<Pending>& call) {
    if ((running_.fetch_add(1, std::memory_order_acq_rel) & stopping) == 0)
      handle(call);
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

  void handle(const std::shared_ptr<Pending>& call) {
    const std::uint64_t size = rpc::size_of(call->pieces);
    if (call->channel.secret != options_.secret) return call->finish({rpc::Failure::refused, "another secret", ""});
    if (size > options_.longest)
      return call->finish({rpc::Failure::refused, rpc::too_long(size, options_.longest), ""});
    const rpc::Method<Exchange>* const method = rpc::find_method(methods_, call->method);
    if (method == nullptr) return call->finish({rpc::Failure::unknown_method, rpc::known_methods(methods_), ""});
    {
      Exchange exchange{call, incarnation_};
      try {
        method->handler(exchange);
      } catch (...) {
        exchange.finish(rpc::outcome_of_exception());
      }
    }
    if (!call->is_done()) {
      const std::lock_guard lock{mutex_};
      detail::add_live(kept_, call);
    }
  }

  const std::vector<rpc::Method<Exchange>> methods_;
  const rpc::ServerOptions options_;
  const std::uint64_t incarnation_;
  std::atomic<std::uint32_t> running_{0};  ///< handlers, and the flag `stopping`
  std::mutex mutex_;
  std::vector<std::weak_ptr<Pending>> kept_;
};

inline std::shared_ptr<Local::Host> Local::find(const std::string& address) {
  const std::lock_guard lock{directory().mutex};
  const auto found = directory().hosts.find(address);
  std::shared_ptr<Host> host = found == directory().hosts.end() ? nullptr : found->second.lock();
  return host && !host->stopped() ? host : nullptr;
}

/// See rpc::Transport. An address that another server has is waited for, up to `port_in_use`.
class Local::Server {
 public:
  Server(const net::Endpoint& own, const rpc::ServerOptions& options, std::vector<rpc::Method<Exchange>> methods)
      : address_(to_string(own)) {
    net::port_number(own);
    Directory& all = directory();
    std::unique_lock lock{all.mutex};
    const bool free = all.changed.wait_for(lock, options.port_in_use, [&] { return all.hosts[address_].expired(); });
    if (!free)
      throw RendezvousError(text("This task cannot listen at its own address ", address_),
                            "another server of this process does", "Stop that one, or list another port");
    host_ = std::make_shared<Host>(std::move(methods), options, ++all.servers);
    all.hosts[address_] = host_;
    all.changed.notify_all();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() { stop(); }

  void stop() {
    if (!host_) return;
    host_->stop();
    {
      const std::lock_guard lock{directory().mutex};
      directory().hosts.erase(address_);
    }
    directory().changed.notify_all();
    host_.reset();
  }

 private:
  std::string address_;
  std::shared_ptr<Host> host_;
};

class Local::Call {
 public:
  /// Throws RpcError where there is no reply.
  void wait() {
    while (!send_if_possible() && !pending_->is_done()) {
      std::unique_lock lock{directory().mutex};
      // Where the call is cancelled, or a server has begun just now, nobody says so here.
      directory().changed.wait_until(lock, std::min(pending_->end, Clock::now() + std::chrono::milliseconds{20}));
    }
    pending_->wait();
  }
  [[nodiscard]] bool is_done() const { return send_if_possible(), pending_->is_done(); }
  void cancel() { pending_->finish({rpc::Failure::cancelled, "by the caller", ""}); }
  /// Waits.
  [[nodiscard]] Reply reply() {
    wait();
    return Reply{pending_->reply};
  }

 private:
  friend class Local::Channel;

  explicit Call(std::shared_ptr<Pending> pending) : pending_(std::move(pending)) {}

  /// A call that waits for its server runs in the thread that sees the server first. True once it was sent.
  bool send_if_possible() const {
    {
      const std::lock_guard lock{pending_->mutex};
      if (pending_->sent) return true;
    }
    const std::shared_ptr<Host> host = find(pending_->peer);
    if (!host) return false;
    {
      const std::lock_guard lock{pending_->mutex};
      if (pending_->sent || pending_->over()) return true;
      pending_->sent = pending_->lent = true;
    }
    host->serve(pending_);
    const std::lock_guard lock{pending_->mutex};
    pending_->lent = false;
    pending_->changed.notify_all();
    return true;
  }

  std::shared_ptr<Pending> pending_;
};

/// See rpc::Transport.
class Local::Channel {
 public:
  Channel(const net::Endpoint& server, rpc::ChannelOptions options)
      : address_(to_string(server)), options_(std::move(options)) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel() {
    for (const std::weak_ptr<Pending>& open : open_)
      if (const auto call = open.lock()) call->finish({rpc::Failure::cancelled, "its channel has gone", ""});
  }

  [[nodiscard]] rpc::State state() const {
    const std::lock_guard lock{mutex_};
    if (!host_) return rpc::State::idle;
    return host_->stopped() && !find(address_) ? rpc::State::lost : rpc::State::ready;
  }

  [[nodiscard]] Call start(std::string_view method, rpc::GatherList pieces, const rpc::CallOptions& options) {
    auto pending = std::make_shared<Pending>(method, address_, options_, pieces, options);
    if (const std::shared_ptr<Host> host = this->host()) {
      pending->sent = true;
      host->serve(pending);
    } else if (!options.wait_for_server) {
      pending->finish({rpc::Failure::lost, "no server of this process listens there", ""});
    }
    if (!pending->is_done()) {
      const std::lock_guard lock{mutex_};
      detail::add_live(open_, pending);
    }
    return Call{std::move(pending)};
  }
  Reply call(std::string_view method, rpc::GatherList pieces, const rpc::CallOptions& options) {
    return start(method, pieces, options).reply();
  }

 private:
  /// The server, or nullptr where there is none.
  [[nodiscard]] std::shared_ptr<Host> host() {
    const std::lock_guard lock{mutex_};
    if (!host_ || host_->stopped()) {
      std::shared_ptr<Host> found = find(address_);
      if (!found) return nullptr;
      host_ = std::move(found);
    }
    return host_;
  }

  const std::string address_;
  const rpc::ChannelOptions options_;
  mutable std::mutex mutex_;
  std::shared_ptr<Host> host_;
  std::vector<std::weak_ptr<Pending>> open_;
};

static_assert(detail::holds<rpc::Transport<Local>> && detail::holds<rpc::WithinProcess<Local>>);

}  // namespace dist
