#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/rpc/rpc.hpp>

namespace dist::grpc {

class ServerHost;
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
  /// Replies with an error of another kind.
  void fail(rpc::Outcome outcome);

 private:
  std::shared_ptr<ServerCall> call_;
};

/// See rpc::Transport. It has `options.threads` threads, one more for the connections, and the core's threads.
class Server {
 public:
  Server(const net::Endpoint& own, rpc::ServerOptions options, std::vector<rpc::Method<Exchange>> methods);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() { stop(); }

  void stop();

 private:
  void listen(const net::Endpoint& own);
  void destroy();

  std::shared_ptr<ServerHost> host_;
};

}  // namespace dist::grpc

#ifndef DIST_COMPILED
#include <dist/rpc/grpc/server.ipp>
#endif
