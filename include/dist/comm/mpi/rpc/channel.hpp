#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
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
#include <dist/core/condition_variable.hpp>
#include <dist/core/pointers.hpp>
#include <dist/net/endpoint.hpp>

namespace dist::mpi {

namespace detail {

/// What a channel shares with its calls.
class ClientLink final : public ServerWatch {
 public:
  ClientLink(const net::Endpoint& server, rpc::ChannelOptions its)
      : ServerWatch(rank_of(server, CallEngine::of_process().peers().size()), its.silence),
        port(net::port_number(server)),
        address(to_string(server)),
        options(std::move(its)) {}

  [[nodiscard]] bool is_ready() const override { return state == rpc::State::ready; }
  void gone(std::size_t process, std::optional<std::uint16_t> its_port) override {
    if (process == peer && its_port.value_or(port) == port && state != rpc::State::idle) state = rpc::State::lost;
  }

  CallEngine& engine = CallEngine::of_process();
  const std::uint16_t port;
  const std::string address;
  const rpc::ChannelOptions options;
  rpc::ClientSession session{options.secret};
  std::atomic<rpc::State> state{rpc::State::idle};  ///< changes during a Visit
};

/// A call of a client: the greeting first where the server's nonce is not known, then the call itself, again where no
/// server listens yet and the caller waits for one. All but the waiting happens under the engine's lock.
class ClientCall final : public OpenCall {
 public:
  ClientCall(std::shared_ptr<ClientLink> link, std::string_view method, rpc::GatherList pieces,
             const rpc::CallOptions& options)
      : OpenCall(link->peer, link->options.silence),
        link_(std::move(link)),
        method_(method),
        lent_pieces_(pieces.begin(), pieces.end()),
        size_(rpc::size_of(pieces)),
        wait_for_server_(options.wait_for_server),
        end_(options.timeout.count() == 0 ? CallEngine::Clock::time_point::max()
                                          : CallEngine::Clock::now() + options.timeout) {}

  void start() {
    const CallEngine::Visit visit{link_->engine};
    if (link_->state == rpc::State::idle) link_->state = rpc::State::connecting;
    if (method_.size() > longest_method)
      return finish({rpc::Failure::refused, text("the name of a method has ", method_.size(), " bytes"), ""});
    attempt();
  }
  /// Returns when the call is over, however it ended.
  void wait_for_end() {
    CallEngine::Visit visit{link_->engine};
    link_->engine.wait(visit, changed_, CallEngine::Clock::time_point::max(), [&] { return done_; });
  }
  /// Throws RpcError where there is no reply.
  void wait() {
    wait_for_end();
    if (outcome_) throw RpcError(method_, link_->address, *outcome_);
  }
  [[nodiscard]] bool is_done() const {
    const CallEngine::Visit visit{link_->engine};
    return done_;
  }
  void cancel(std::string_view why) {
    const CallEngine::Visit visit{link_->engine};
    finish({rpc::Failure::cancelled, std::string{why}, ""});
  }
  [[nodiscard]] rpc::GatherList pieces() const { return pieces_; }
  [[nodiscard]] std::uint64_t incarnation() const { return reply_.incarnation; }

  void take(Packet packet) override {
    if (over_ || has_reply_head_) return;
    if (packet.kind == PacketKind::absent) return take_absence();
    link_->state = rpc::State::ready;
    has_reply_head_ = true;
    try {
      reply_ = packet.message_head<rpc::ReplyHead>();
    } catch (const net::FrameError& error) {
      return finish({rpc::Failure::refused, error.what(), ""});
    }
    if (reply_.size > link_->options.longest)
      return finish({rpc::Failure::refused, rpc::too_long(reply_.size, link_->options.longest), ""});
    if (reply_.size > longest_content) {
      link_->engine.transfers().receive(key(true), reply_.size, shared_from_this());
      return;
    }
    if (packet.content.size() != reply_.size)
      return finish({rpc::Failure::refused,
                     packet.content.size() > reply_.size ? "the reply is longer than it says"
                                                         : "the reply is shorter than it says",
                     ""});
    packet_ = std::move(packet);
    pieces_ = {packet_.content};
    take_whole_reply();
  }
  void received(std::vector<ReceivedPart> parts) override {
    if (over_) return;
    parts_ = std::move(parts);
    pieces_.clear();
    for (const ReceivedPart& part : parts_) pieces_.emplace_back(part.memory.get(), part.size);
    take_whole_reply();
  }
  void sent() override {
    --sends_;
    settle();
  }
  void broken(std::string_view why) override { finish({rpc::Failure::refused, std::string{why}, ""}); }
  void given_up() override { finish({rpc::Failure::lost, "the reply ended early", ""}); }
  void look(CallEngine::Clock::time_point now) override {
    if (over_) return;
    if (now >= end_) return finish({rpc::Failure::deadline, "nobody has answered", ""});
    if (again_at_ && now >= *again_at_) attempt();
  }
  void lose(const std::string& why) override { finish({rpc::Failure::lost, why, ""}); }

 private:
  /// So often a server may say that it has another nonce, or its successor.
  static constexpr std::size_t most_greetings = 8;
  /// Until a caller that waits for a server asks again whether it listens.
  static constexpr std::chrono::milliseconds before_next_attempt{10};

  [[nodiscard]] TransferKey key(bool of_reply) const { return {peer, number_, of_reply}; }

  void attempt() {
    CallEngine& engine = link_->engine;
    engine.remove_client_call(number_);
    again_at_.reset();
    if (engine.peers().lost(peer)) return finish({rpc::Failure::lost, *engine.peers().lost(peer), ""});
    number_ = engine.add_client_call(shared_from_this());
    has_reply_head_ = false;
    greeting_ = link_->session.must_greet();
    head_ = greeting_ ? link_->session.greeting() : link_->session.head(method_, size_);
    const bool transfers = !greeting_ && size_ > longest_content;
    if (transfers) {
      ++sends_;
      engine.transfers().send(key(false), lent_pieces_, shared_from_this());
    }
    engine.send(peer,
                {.kind = PacketKind::request,
                 .call = number_,
                 .port = link_->port,
                 .method = greeting_ ? std::string{rpc::greeting_method} : method_,
                 .head = head_.frame()},
                greeting_ || transfers ? rpc::GatherList{} : rpc::GatherList{lent_pieces_});
  }
  void take_absence() {
    link_->engine.transfers().cease(key(false));
    if (wait_for_server_)
      again_at_ = CallEngine::Clock::now() + before_next_attempt;
    else
      finish({rpc::Failure::lost, text("no server listens there, in ", link_->engine.peers().name(peer)), ""});
    link_->state = rpc::State::lost;
  }
  void take_whole_reply() {
    link_->engine.transfers().cease(key(false));  // who answers early reads no further
    if (reply_.greet_again) {
      link_->session.forget(head_.of_server);
      if (++greetings_ < most_greetings) return attempt();
      return finish({rpc::Failure::refused, "the server has another nonce at every attempt", ""});
    }
    if (reply_.failure || !greeting_) return finish(reply_.failure);
    try {
      if (const std::optional<rpc::Outcome> outcome = link_->session.greeted(rpc::joined(pieces_)))
        return finish(outcome);
    } catch (const net::FrameError& error) {
      return finish({rpc::Failure::refused, error.what(), ""});
    }
    attempt();
  }
  void finish(rpc::Outcome outcome) { finish(std::optional{std::move(outcome)}); }
  void finish(std::optional<rpc::Outcome> outcome) {
    if (over_) return;
    over_ = true;
    outcome_ = std::move(outcome);
    CallEngine& engine = link_->engine;
    const std::shared_ptr<OpenCall> self = shared_from_this();
    if (outcome_ && number_ != 0) {
      engine.transfers().cease(key(false));
      engine.transfers().withdraw(key(true));
      engine.send(peer, {.kind = PacketKind::cancel, .call = number_});
    }
    engine.remove_client_call(number_);
    settle();
  }
  void settle() {
    if (!over_ || sends_ != 0 || done_) return;
    done_ = true;
    lent_pieces_.clear();
    changed_.notify_all();
  }

  const std::shared_ptr<ClientLink> link_;
  const std::string method_;
  std::vector<rpc::Piece> lent_pieces_;
  const std::uint64_t size_;
  const bool wait_for_server_;
  const CallEngine::Clock::time_point end_;
  mutable dist::detail::ConditionVariable changed_;

  std::uint64_t number_ = 0;  ///< of the attempt
  std::optional<CallEngine::Clock::time_point> again_at_;
  std::size_t greetings_ = 0;
  bool greeting_ = false;
  rpc::RequestHead head_;
  std::size_t sends_ = 0;  ///< attempts of which MPI may read the pieces
  bool has_reply_head_ = false;
  rpc::ReplyHead reply_;
  Packet packet_;
  std::vector<ReceivedPart> parts_;
  std::vector<rpc::Piece> pieces_;
  bool over_ = false;                    ///< it is known what the call came to
  std::optional<rpc::Outcome> outcome_;  ///< why there is no reply
  bool done_ = false;                    ///< and MPI reads the pieces no longer
};

}  // namespace detail

/// A reply in the memory in which it was received. See rpc::Reply.
class RpcReply {
 public:
  explicit RpcReply(std::shared_ptr<const detail::ClientCall> call) : call_(std::move(call)) {}

  [[nodiscard]] rpc::GatherList pieces() const { return call_->pieces(); }
  [[nodiscard]] std::uint64_t incarnation() const { return call_->incarnation(); }

 private:
  std::shared_ptr<const detail::ClientCall> call_;
};

/// See rpc::Call.
class RpcCall {
 public:
  explicit RpcCall(std::shared_ptr<detail::ClientCall> call) : call_(std::move(call)) {}

  void wait() const { call_->wait(); }
  [[nodiscard]] bool is_done() const { return call_->is_done(); }
  void cancel() { call_->cancel("by the caller"); }
  [[nodiscard]] RpcReply reply() const {
    wait();
    return RpcReply{call_};
  }

 private:
  std::shared_ptr<detail::ClientCall> call_;
};

/// Calls to a server in a process of MPI, which may be this one. See rpc::Transport.
class RpcChannel {
 public:
  /// The first server or channel of a process is made by all processes of MPI. Throws InvalidArgument for an address of no
  /// process (mpi::endpoint_of_rank), and for options of TLS.
  RpcChannel(const net::Endpoint& server, rpc::ChannelOptions options)
      : link_(std::make_shared<detail::ClientLink>(server, std::move(options))) {
    detail::refuse(link_->options.tls);
    const detail::CallEngine::Visit visit{link_->engine};
    link_->engine.watch(link_);
  }
  RpcChannel(const RpcChannel&) = delete;
  RpcChannel& operator=(const RpcChannel&) = delete;
  ~RpcChannel() {
    for (const std::weak_ptr<detail::ClientCall>& open : open_)
      if (const auto call = open.lock()) call->cancel("its channel has gone");
    for (const std::weak_ptr<detail::ClientCall>& open : open_)
      if (const auto call = open.lock()) call->wait_for_end();
  }

  [[nodiscard]] rpc::State state() const { return link_->state; }
  [[nodiscard]] RpcCall start(std::string_view method, rpc::GatherList pieces, const rpc::CallOptions& options) {
    auto call = std::make_shared<detail::ClientCall>(link_, method, pieces, options);
    {
      const std::lock_guard lock{mutex_};
      dist::detail::add_live(open_, call);
    }
    call->start();
    return RpcCall{std::move(call)};
  }
  RpcReply call(std::string_view method, rpc::GatherList pieces, const rpc::CallOptions& options) {
    return start(method, pieces, options).reply();
  }

 private:
  const std::shared_ptr<detail::ClientLink> link_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<detail::ClientCall>> open_;
};

}  // namespace dist::mpi
