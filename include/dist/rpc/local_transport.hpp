#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/net/error.hpp>
#include <dist/rpc/rpc.hpp>

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
  class Answer;
  class Pending;
  class Host;
  struct Caller;
  struct Directory;

  [[nodiscard]] static Directory& directory();
  /// The server at an address, or nullptr where there is none that goes on.
  [[nodiscard]] static std::shared_ptr<Host> find(const std::string& address);
};

/// What came back. See rpc::Reply.
class Local::Reply {
 public:
  [[nodiscard]] rpc::ChunkSpan pieces() const;
  [[nodiscard]] std::uint64_t incarnation() const;

 private:
  friend class Local::Call;

  explicit Reply(std::shared_ptr<const Answer> answer) : answer_(std::move(answer)) {}

  std::shared_ptr<const Answer> answer_;  ///< of a call, which lives as long
};

/// See rpc::Exchange.
class Local::Exchange {
 public:
  Exchange(Exchange&&) noexcept = default;
  Exchange& operator=(Exchange&&) = delete;
  Exchange(const Exchange&) = delete;
  ~Exchange();

  [[nodiscard]] std::string_view method() const { return method_; }
  [[nodiscard]] rpc::ChunkSpan pieces() const { return pieces_; }
  [[nodiscard]] bool cancelled() const;
  /// Copies the request, which lies in the caller's memory.
  [[nodiscard]] Exchange keep();
  void reply(std::vector<std::byte> bytes);
  void reply(rpc::ChunkSpan pieces, detail::UniqueFunction<void> release);
  void fail(std::string_view text);

 private:
  friend class Local::Host;
  struct Request;

  /// The pieces are the caller's.
  Exchange(std::shared_ptr<Pending> pending, rpc::ChunkSpan pieces, std::uint64_t incarnation);

  void finish(Answer&& answer);
  void finish(rpc::Outcome outcome);

  std::uint64_t incarnation_;
  std::string_view method_;
  rpc::ChunkSpan pieces_;
  std::shared_ptr<const Request> kept_;  ///< which the two above refer to then
  std::shared_ptr<Pending> pending_;
};

/// See rpc::Transport. An address that another server has is waited for, up to `port_in_use`.
class Local::Server {
 public:
  Server(const net::Endpoint& own, const rpc::ServerOptions& options, std::vector<rpc::Method<Exchange>> methods);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() { stop(); }

  void stop();

 private:
  const std::string address_;
  std::shared_ptr<Host> host_;
};

class Local::Call {
 public:
  /// Throws RpcError where there is no reply.
  void wait();
  [[nodiscard]] bool is_done() const;
  void cancel();
  /// Waits.
  [[nodiscard]] Reply reply();

 private:
  friend class Local::Channel;

  explicit Call(std::shared_ptr<Pending> pending) : pending_(std::move(pending)) {}

  /// A call that waits for its server runs in the thread that sees the server first. True once it was sent.
  bool send_if_possible() const;

  std::shared_ptr<Pending> pending_;
};

/// See rpc::Transport.
class Local::Channel {
 public:
  Channel(const net::Endpoint& server, rpc::ChannelOptions options);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  [[nodiscard]] rpc::State state() const;
  [[nodiscard]] Call start(std::string_view method, rpc::ChunkSpan pieces, const rpc::CallOptions& options);
  Reply call(std::string_view method, rpc::ChunkSpan pieces, const rpc::CallOptions& options) {
    return start(method, pieces, options).reply();
  }

 private:
  /// The server, or nullptr where there is none.
  [[nodiscard]] std::shared_ptr<Host> host();

  const std::shared_ptr<const Caller> caller_;
  mutable std::mutex mutex_;
  std::shared_ptr<Host> host_;
  std::vector<std::weak_ptr<Pending>> open_;
};

static_assert(detail::satisfied<rpc::Transport<Local>> && detail::satisfied<rpc::WithinProcess<Local>>);

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/rpc/local_transport.ipp>
#endif
