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

/// An rpc::Transport between threads of one process, for tests and for servers in the same process. Handlers run in the
/// caller's thread and read the caller's memory, without thread switch or copy. Addresses are only names.
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
  /// Returns the running server at an address, or nullptr.
  [[nodiscard]] static std::shared_ptr<Host> find(const std::string& address);
};

/// See rpc::Reply.
class Local::Reply {
 public:
  [[nodiscard]] rpc::ChunkSpan pieces() const;
  [[nodiscard]] std::uint64_t incarnation() const;

 private:
  friend class Local::Call;

  explicit Reply(std::shared_ptr<const Answer> answer) : answer_(std::move(answer)) {}

  std::shared_ptr<const Answer> answer_;  ///< owned by a call, which it keeps alive
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
  /// Copies the request, which is in the caller's memory.
  [[nodiscard]] Exchange keep();
  void reply(std::vector<std::byte> bytes);
  void reply(rpc::ChunkSpan pieces, detail::UniqueFunction<void> release);
  void fail(std::string_view text);

 private:
  friend class Local::Host;
  struct Request;

  /// The caller owns the pieces.
  Exchange(std::shared_ptr<Pending> pending, rpc::ChunkSpan pieces, std::uint64_t incarnation);

  void finish(Answer&& answer);
  void finish(rpc::Outcome outcome);

  std::uint64_t incarnation_;
  std::string_view method_;
  rpc::ChunkSpan pieces_;
  std::shared_ptr<const Request> kept_;  ///< owns the method and pieces of a kept exchange
  std::shared_ptr<Pending> pending_;
};

/// See rpc::Transport. If another server has the address, waits for up to `port_in_use`.
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

/// See rpc::Call.
class Local::Call {
 public:
  /// Waits until the call is done. Throws RpcError if it failed.
  void wait();
  [[nodiscard]] bool is_done() const;
  void cancel();
  /// Waits for the reply.
  [[nodiscard]] Reply reply();

 private:
  friend class Local::Channel;

  explicit Call(std::shared_ptr<Pending> pending) : pending_(std::move(pending)) {}

  /// Sends a call that waits for its server, in the first thread that finds the server. True if the call was sent.
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
