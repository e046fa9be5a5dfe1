#pragma once

#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/rpc/rpc.hpp>

namespace dist::grpc {

class ClientThread;
class ClientLink;
class ClientCall;

/// A reply in the memory in which it was received. See rpc::Reply.
class Reply {
 public:
  explicit Reply(std::shared_ptr<const ClientCall> call) : call_(std::move(call)) {}

  [[nodiscard]] rpc::ChunkSpan pieces() const;
  [[nodiscard]] std::uint64_t incarnation() const;

 private:
  std::shared_ptr<const ClientCall> call_;
};

/// See rpc::Call.
class Call {
 public:
  explicit Call(std::shared_ptr<ClientCall> call) : call_(std::move(call)) {}

  void wait() const;
  [[nodiscard]] bool is_done() const;
  void cancel();
  [[nodiscard]] Reply reply() const;

 private:
  std::shared_ptr<ClientCall> call_;
};

/// A connection to a server, established on first use. See rpc::Transport.
class Channel {
 public:
  Channel(const net::Endpoint& server, rpc::ChannelOptions options);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  /// The state includes losses of an idle connection, which are detected with a small delay.
  [[nodiscard]] rpc::State state() const;
  [[nodiscard]] Call start(std::string_view method, rpc::ChunkSpan pieces, const rpc::CallOptions& options);
  Reply call(std::string_view method, rpc::ChunkSpan pieces, const rpc::CallOptions& options) {
    return start(method, pieces, options).reply();
  }

 private:
  const std::shared_ptr<ClientThread> thread_;
  const std::shared_ptr<ClientLink> link_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<ClientCall>> open_;
};

}  // namespace dist::grpc

#ifndef DIST_COMPILED
#include <dist/rpc/grpc/channel.ipp>
#endif
