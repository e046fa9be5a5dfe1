#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/comm/mpi/rpc/address.hpp>
#include <dist/comm/mpi/rpc/call_transfers.hpp>
#include <dist/comm/mpi/rpc/engine.hpp>
#include <dist/comm/mpi/rpc/packet.hpp>
#include <dist/comm/rpc.hpp>
#include <dist/comm/rpc_session.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/condition_variable.hpp>
#include <dist/core/pointers.hpp>
#include <dist/core/thread_name.hpp>
#include <dist/core/threads.hpp>
#include <dist/net/endpoint.hpp>

namespace dist::mpi {

namespace detail {

class ServerCall;

}  // namespace detail

/// See rpc::Exchange.
class RpcExchange {
 public:
  explicit RpcExchange(std::shared_ptr<detail::ServerCall> call) : call_(std::move(call)) {}
  RpcExchange(RpcExchange&&) noexcept = default;
  RpcExchange& operator=(RpcExchange&&) = delete;
  RpcExchange(const RpcExchange&) = delete;
  ~RpcExchange();

  [[nodiscard]] std::string_view method() const;
  [[nodiscard]] rpc::GatherList pieces() const;
  [[nodiscard]] bool cancelled() const;
  [[nodiscard]] RpcExchange keep() { return std::move(*this); }
  void reply(std::vector<std::byte> bytes);
  void reply(rpc::GatherList pieces, dist::detail::KeptFunction<void> release);
  void fail(std::string_view text);

 private:
  std::shared_ptr<detail::ServerCall> call_;
};

namespace detail {

/// What a server shares with the calls to it.
class ServerHost final : public Listener, public std::enable_shared_from_this<ServerHost> {
 public:
  using Methods = std::vector<rpc::Method<RpcExchange>>;

  ServerHost(const rpc::ServerOptions& its, Methods its_methods) : options(its), methods(std::move(its_methods)) {}

  void accept(std::size_t peer, Packet packet) override;
  /// Ends the calls that go on, and tells clients that the server is gone. During a Visit, once.
  void end_calls();
  /// A request that is whole. During a Visit.
  void enqueue(std::shared_ptr<ServerCall> call) {
    waiting_.push_back(std::move(call));
    changed_.notify_one();
  }
  /// Runs handlers until the server stops.
  void run();

  CallEngine& engine = CallEngine::of_process();
  const rpc::ServerOptions options;
  const Methods methods;
  rpc::ServerSession session{options.secret};
  std::size_t sends = 0;  ///< of long replies, whose memory was not given back yet
  dist::detail::ConditionVariable all_sent;

 private:
  bool stopped_ = false;
  dist::detail::ConditionVariable changed_;
  std::deque<std::shared_ptr<ServerCall>> waiting_;
  std::vector<std::weak_ptr<ServerCall>> calls_;
};

/// A call as its server sees it. Where nothing else is said, functions are called under the engine's lock.
class ServerCall final : public OpenCall {
 public:
  ServerCall(std::shared_ptr<ServerHost> host, std::size_t from, std::uint64_t number)
      : OpenCall(from, host->options.silence), host_(std::move(host)), number_(number) {}

  void begin(Packet packet) {
    method_ = std::move(packet.method);
    try {
      head_ = packet.message_head<rpc::RequestHead>();
    } catch (const net::FrameError& error) {
      return answer(host_->session.refused(error.what()), {});
    }
    if (const std::optional<rpc::ReplyHead> refusal = this->refusal(packet)) return answer(*refusal, {});
    if (method_ == rpc::greeting_method) return answer({0, host_->session.incarnation()}, host_->session.answer(head_));
    if (rpc::find_method(host_->methods, method_) == nullptr)
      return answer(failed({rpc::Failure::unknown_method, rpc::known_methods(host_->methods), ""}), {});
    if (head_.size > longest_content) {
      host_->engine.transfers().receive(key(false), head_.size, shared_from_this());
      return;
    }
    packet_ = std::move(packet);
    pieces_ = {packet_.content};
    host_->enqueue(self());
  }
  /// Without the lock.
  void handle() {
    if (is_over()) return;
    RpcExchange exchange{self()};
    try {
      rpc::find_method(host_->methods, method_)->handler(exchange);
    } catch (...) {
      fail(rpc::outcome_of_exception());
    }
  }

  // Without the lock, for the exchange.

  [[nodiscard]] std::string_view method() const { return method_; }
  [[nodiscard]] rpc::GatherList pieces() const { return pieces_; }
  [[nodiscard]] bool is_over() const { return over_.load(std::memory_order_acquire); }
  [[nodiscard]] bool is_answered() const { return answered_.load(std::memory_order_acquire); }
  void reply(std::vector<std::byte> bytes) {
    const CallEngine::Visit visit{host_->engine};
    answer({0, host_->session.incarnation()}, std::move(bytes));
  }
  void reply(rpc::GatherList pieces, dist::detail::KeptFunction<void> release) {
    const CallEngine::Visit visit{host_->engine};
    if (answered_.exchange(true) || over_) {
      if (release) host_->engine.after_visit(std::move(release));
      return;
    }
    release_ = std::move(release);
    send_reply({rpc::size_of(pieces), host_->session.incarnation()}, pieces);
  }
  void fail(rpc::Outcome outcome) {
    const CallEngine::Visit visit{host_->engine};
    answer(failed(std::move(outcome)), {});
  }

  /// The server stops.
  void end() {
    if (!answered_) answer(failed({rpc::Failure::lost, "the server has stopped", ""}), {});
    abandon();
  }

  void take(Packet) override { abandon(); }  // it says that the caller has cancelled
  void look(CallEngine::Clock::time_point) override {}
  void lose(const std::string&) override { abandon(); }
  void sent() override {
    host_->engine.remove_server_call(peer, number_);
    host_->engine.after_visit([host = host_, release = std::exchange(release_, {})] {
      if (release) release();
      const CallEngine::Visit visit{host->engine};
      if (--host->sends == 0) host->all_sent.notify_all();
    });
  }
  void received(std::vector<ReceivedPart> parts) override {
    if (over_) return;
    parts_ = std::move(parts);
    for (const ReceivedPart& part : parts_) pieces_.emplace_back(part.memory.get(), part.size);
    host_->enqueue(self());
  }
  void broken(std::string_view why) override { answer(host_->session.refused(why), {}); }
  void given_up() override { abandon(); }

 private:
  [[nodiscard]] std::shared_ptr<ServerCall> self() { return std::static_pointer_cast<ServerCall>(shared_from_this()); }
  [[nodiscard]] TransferKey key(bool of_reply) const { return {peer, number_, of_reply}; }
  [[nodiscard]] rpc::ReplyHead failed(rpc::Outcome outcome) const {
    return {0, host_->session.incarnation(), std::move(outcome)};
  }
  /// The answer where the call is not taken.
  [[nodiscard]] std::optional<rpc::ReplyHead> refusal(const Packet& packet) {
    rpc::ServerSession& session = host_->session;
    if (packet.content.size() != (head_.size > longest_content ? 0 : head_.size))
      return session.refused("the request has another size than it says");
    if (method_ == rpc::greeting_method)
      return head_.size == 0 ? std::nullopt : std::optional{session.refused("a greeting has no bytes")};
    std::optional<rpc::ReplyHead> refusal = session.refusal(head_, method_);
    if (!refusal && head_.size > host_->options.longest)
      refusal = session.refused(rpc::too_long(head_.size, host_->options.longest));
    return refusal;
  }

  void answer(rpc::ReplyHead head, std::vector<std::byte> bytes) {
    if (answered_.exchange(true) || over_) return;
    bytes_ = std::move(bytes);
    head.size = bytes_.size();
    const rpc::Piece piece = bytes_;
    send_reply(head, {&piece, 1});
  }
  void send_reply(const rpc::ReplyHead& head, rpc::GatherList pieces) {
    const Packet packet{.kind = PacketKind::reply, .call = number_, .head = head.frame()};
    if (head.size <= longest_content) {
      host_->engine.send(peer, packet, pieces);
      host_->engine.remove_server_call(peer, number_);
      if (release_) host_->engine.after_visit(std::exchange(release_, {}));
      return;
    }
    ++host_->sends;
    host_->engine.transfers().send(key(true), pieces, shared_from_this());
    host_->engine.send(peer, packet);
  }
  /// Nobody waits any more.
  void abandon() {
    const std::shared_ptr<OpenCall> self = shared_from_this();
    over_ = true;
    host_->engine.transfers().cease(key(true));
    host_->engine.transfers().withdraw(key(false));
    host_->engine.remove_server_call(peer, number_);
  }

  const std::shared_ptr<ServerHost> host_;
  const std::uint64_t number_;
  std::string method_;
  rpc::RequestHead head_;
  Packet packet_;
  std::vector<ReceivedPart> parts_;
  std::vector<rpc::Piece> pieces_;
  std::atomic<bool> over_{false};
  std::atomic<bool> answered_{false};
  std::vector<std::byte> bytes_;
  dist::detail::KeptFunction<void> release_;
};

inline void ServerHost::accept(std::size_t peer, Packet packet) {
  const auto call = std::make_shared<ServerCall>(shared_from_this(), peer, packet.call);
  engine.add_server_call(packet.call, call);
  dist::detail::add_live(calls_, call);
  call->begin(std::move(packet));
}

inline void ServerHost::end_calls() {
  stopped_ = true;
  waiting_.clear();
  for (const std::weak_ptr<ServerCall>& each : calls_)
    if (const auto call = each.lock()) call->end();
  calls_.clear();
  changed_.notify_all();
}

inline void ServerHost::run() {
  dist::detail::name_this_thread("dist rpc server");
  for (;;) {
    std::shared_ptr<ServerCall> next;
    {
      CallEngine::Visit visit{engine};
      changed_.wait(visit.lock, [&] { return stopped_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    next->handle();
  }
}

}  // namespace detail

inline RpcExchange::~RpcExchange() {
  if (call_ && !call_->is_answered()) fail("the handler gave no answer");
}
inline std::string_view RpcExchange::method() const { return call_->method(); }
inline rpc::GatherList RpcExchange::pieces() const { return call_->pieces(); }
inline bool RpcExchange::cancelled() const { return call_->is_over(); }
inline void RpcExchange::reply(std::vector<std::byte> bytes) { call_->reply(std::move(bytes)); }
inline void RpcExchange::reply(rpc::GatherList pieces, dist::detail::KeptFunction<void> release) {
  call_->reply(pieces, std::move(release));
}
inline void RpcExchange::fail(std::string_view text) { call_->fail({rpc::Failure::handler, std::string{text}, ""}); }

/// A server in a process of MPI, which listens at a port of its own rank. See rpc::Transport. It has `options.threads`
/// threads.
class RpcServer {
 public:
  /// The first server or channel of a process is made by all processes of MPI. Throws InvalidArgument for an address of no
  /// process (mpi::endpoint_of_rank), and for options of TLS, RendezvousError for that of another one, and where the port stays
  /// in use.
  RpcServer(const net::Endpoint& own, const rpc::ServerOptions& options, detail::ServerHost::Methods methods)
      : port_(net::port_number(own)), host_(std::make_shared<detail::ServerHost>(options, std::move(methods))) {
    detail::refuse(options.tls);
    detail::CallEngine& engine = host_->engine;
    const std::string problem = text("This task cannot listen at its own address ", to_string(own));
    if (rank_of(own, engine.peers().size()) != engine.peers().rank())
      throw RendezvousError(problem, text("this process is rank ", engine.peers().rank(), " of MPI"),
                            "Let the launcher number the tasks, as dist::MpiRolesResolver does");
    listen(problem);
    for (std::size_t i = 0; i < std::max<std::size_t>(1, options.threads); ++i)
      threads_.emplace_back([host = host_] { host->run(); });
  }
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;
  ~RpcServer() { stop(); }

  void stop() {
    if (threads_.empty()) return;
    detail::CallEngine& engine = host_->engine;
    {
      detail::CallEngine::Visit visit{engine};
      engine.stop_listening(port_);
      host_->end_calls();
      for (std::size_t peer = 0; peer < engine.peers().size(); ++peer)
        engine.send(peer, {.kind = detail::PacketKind::gone, .port = port_});
    }
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    detail::CallEngine::Visit visit{engine};
    engine.wait(visit, host_->all_sent, detail::CallEngine::Clock::time_point::max(),
                [&] { return host_->sends == 0; });
  }

 private:
  void listen(std::string_view problem) {
    using Clock = detail::CallEngine::Clock;
    const Clock::time_point end = Clock::now() + host_->options.port_in_use;
    for (;;) {
      {
        const detail::CallEngine::Visit visit{host_->engine};
        if (host_->engine.listen(port_, *host_)) return;
      }
      if (Clock::now() >= end)
        throw RendezvousError(problem, "another server of this process does", "Stop that one, or list another port");
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
  }

  const std::uint16_t port_;
  const std::shared_ptr<detail::ServerHost> host_;
  std::vector<std::thread> threads_;
};

}  // namespace dist::mpi
