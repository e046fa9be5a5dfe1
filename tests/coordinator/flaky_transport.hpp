// Calls within the process, as of dist::Local, that fail at the request of a test.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/rpc/local_transport.hpp>
#include <dist/rpc/rpc.hpp>

namespace dist_test {

/// Faults for the next calls of a method to an address.
struct Fault {
  std::size_t calls = 1;
  dist::rpc::Outcome outcome{dist::rpc::Failure::lost, "the connection broke", ""};
  bool before = false;  ///< true: the call does not reach the server; false: its reply is lost
};

/// An rpc::Transport.
struct Flaky {
  static constexpr bool within_process = true;
  using Server = dist::Local::Server;
  using Exchange = dist::Local::Exchange;
  using Reply = dist::Local::Reply;

  static void fail(const dist::net::Endpoint& to, std::string_view method, Fault fault = {}) {
    const std::lock_guard lock{mutex()};
    faults()[{to_string(to), std::string{method}}] = std::move(fault);
  }

  class Call {
   public:
    void wait() {
      if (call_) call_->wait();
      if (outcome_) throw dist::RpcError(method_, peer_, *outcome_);
    }
    [[nodiscard]] bool is_done() const { return !call_ || call_->is_done(); }
    void cancel() {
      if (call_) call_->cancel();
    }
    [[nodiscard]] Reply reply() {
      wait();
      return call_->reply();
    }

   private:
    friend struct Flaky;
    std::string method_, peer_;
    std::optional<dist::Local::Call> call_;
    std::optional<dist::rpc::Outcome> outcome_;
  };

  class Channel {
   public:
    Channel(const dist::net::Endpoint& server, const dist::rpc::ChannelOptions& options)
        : peer_(to_string(server)), channel_(server, options) {}
    [[nodiscard]] dist::rpc::State state() const { return channel_.state(); }
    [[nodiscard]] Call start(std::string_view method, dist::rpc::ChunkSpan pieces,
                             const dist::rpc::CallOptions& options) {
      Call call;
      call.method_ = method;
      call.peer_ = peer_;
      const std::optional<Fault> fault = next_fault(peer_, call.method_);
      if (fault) call.outcome_ = fault->outcome;
      if (!fault || !fault->before) call.call_.emplace(channel_.start(method, pieces, options));
      return call;
    }
    Reply call(std::string_view method, dist::rpc::ChunkSpan pieces, const dist::rpc::CallOptions& options) {
      return start(method, pieces, options).reply();
    }

   private:
    const std::string peer_;
    dist::Local::Channel channel_;
  };

 private:
  using Faults = std::map<std::pair<std::string, std::string>, Fault>;
  static std::mutex& mutex() {
    static std::mutex mutex;
    return mutex;
  }
  static Faults& faults() {
    static Faults faults;
    return faults;
  }
  static std::optional<Fault> next_fault(const std::string& peer, const std::string& method) {
    const std::lock_guard lock{mutex()};
    const auto found = faults().find({peer, method});
    if (found == faults().end() || found->second.calls == 0) return std::nullopt;
    --found->second.calls;
    return found->second;
  }
};

static_assert(dist::detail::satisfied<dist::rpc::Transport<Flaky>>);

}  // namespace dist_test
