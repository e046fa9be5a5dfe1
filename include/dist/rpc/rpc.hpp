#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/future.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/short_list.hpp>
#include <dist/net/deadline.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/net/tls_files.hpp>

/// Remote procedure calls: the parts common to all transports. The transports are `dist::Local` and `dist::Grpc`.
namespace dist::rpc {

/// A contiguous piece of a request or reply.
using Chunk = std::span<const std::byte>;
/// The bytes of a request or reply, as a list of pieces.
using ChunkSpan = std::span<const Chunk>;
/// An owning list of pieces.
using ChunkList = detail::ShortList<Chunk, 4>;

/// Returns the total size of the pieces in bytes.
[[nodiscard]] inline std::uint64_t size_of(ChunkSpan pieces) {
  std::uint64_t size = 0;
  for (const Chunk piece : pieces) size += piece.size();
  return size;
}

/// Copies the pieces to `to`, which must have their total size.
void copy(ChunkSpan pieces, std::span<std::byte> to);
/// Returns a copy of the pieces as one block.
[[nodiscard]] std::vector<std::byte> joined(ChunkSpan pieces);

/// The reason for a missing reply. Transports never derive it from text sent by a peer.
enum class Failure : std::uint8_t {
  deadline = 1,        ///< the call has timed out
  cancelled = 2,       ///< the caller has cancelled the call
  lost = 3,            ///< the server is unreachable, stopped or disconnected; it may have executed the call
  refused = 4,         ///< the server does not belong to this job, or has rejected the request
  unknown_method = 5,  ///< the server does not have the method
  handler = 6,         ///< the server's handler has thrown; the error includes its exception
};

/// Returns the name of a failure for messages.
[[nodiscard]] std::string_view to_string_view(Failure failure);

/// The reason for a failed call, as seen by the transport.
struct Outcome {
  Failure failure = Failure::lost;  ///< kind of failure
  std::string why;                  ///< for `handler`: the text of the exception
  std::string thrown;               ///< for `handler`: the type of the exception
  /// True for `lost` if the server was silent for too long; false for a closed or refused connection.
  bool silent = false;
};

/// Describes the current exception of a handler. Must be called in a catch block.
[[nodiscard]] Outcome outcome_of_exception();

}  // namespace dist::rpc

namespace dist {

/// Error for a call without a reply. `failure()` is the reason.
class RpcError : public Error {
 public:
  /// The error of a call of `method` at the server `peer`.
  RpcError(std::string_view method, std::string_view peer, const rpc::Outcome& outcome);

  /// The kind of failure.
  [[nodiscard]] rpc::Failure failure() const noexcept { return outcome_.failure; }
  /// The server's address.
  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }
  /// The details of the failure; for a handler, the text of its exception.
  [[nodiscard]] const std::string& why() const noexcept { return outcome_.why; }
  /// True if the server was lost by a long silence.
  [[nodiscard]] bool was_silent() const noexcept { return outcome_.silent; }
  /// The type of the handler's exception, otherwise empty.
  [[nodiscard]] const std::string& thrown() const noexcept { return outcome_.thrown; }
  /// ExitCode::try_again if the server was lost or timed out, or the call was cancelled.
  [[nodiscard]] int exit_code() const noexcept override;

 private:
  rpc::Outcome outcome_;
  std::string peer_;
};

}  // namespace dist

namespace dist::rpc {

/// True if the server is lost or unreachable: another attempt or server may help.
[[nodiscard]] inline bool is_lost(const RpcError& error) noexcept { return error.failure() == Failure::lost; }

/// The connection to a server, as known to its channel.
enum class State : std::uint8_t {
  idle,  ///< not connected, because nothing was sent yet
  connecting,
  ready,
  lost,  ///< the last attempt failed or the connection broke; calls reconnect
};

/// The default time without data after which a peer is lost, despite an open connection. Longer than a CPU quota may
/// suspend a container.
inline constexpr net::Milliseconds default_silence{30'000};

struct ServerOptions {
  std::size_t threads = 2;  ///< number of handler threads, independent of the number of clients
  std::string secret = {};  ///< of the job; empty: accepts every caller (`net::job_secret()`)
  net::TlsFiles tls = {};   ///< certificates of this task; none: no encryption (`net::job_tls()`)
  std::uint64_t longest = std::uint64_t{1} << 40;  ///< maximum bytes of a request; longer ones are rejected
  bool peers_elsewhere = false;                    ///< clients are on other hosts: a loopback address is an error
  net::Milliseconds silence = default_silence;     ///< time without data after which a client is lost
  net::Milliseconds port_in_use{5'000};            ///< how long to wait for an earlier process to release the port
};

struct ChannelOptions {
  std::string secret = {};  ///< of the job; empty: none
  net::TlsFiles tls = {};   ///< certificates of this task, if the server has them, too; none: no encryption
  std::uint64_t longest = std::uint64_t{1} << 40;  ///< maximum bytes of a reply; longer ones are rejected
  net::Milliseconds silence = default_silence;     ///< time without data after which a server is lost
  /// The maximum pause before a channel reconnects to a missing server; until then, calls fail at once. Callers should
  /// repeat calls after the same pause.
  net::Milliseconds reconnect{200};
};

/// Receives the bytes of a reply in order, in any thread.
class ReplySink {
 public:
  virtual void take(Chunk bytes) noexcept = 0;

 protected:
  ~ReplySink() = default;
};

struct CallOptions {
  std::chrono::nanoseconds timeout{0};  ///< for the complete reply; 0: no limit
  bool wait_for_server = false;         ///< true: waits until the server listens; false: fails at once if it does not
  /// Must outlive the call. A transport that receives a reply in parts passes them to the sink while they are in the
  /// cache; the rest is in the `pieces()` of the reply.
  ReplySink* sink = nullptr;
};

/// A method of a server. Several threads call it concurrently; see Transport.
template <class Exchange>
struct Method {
  std::string name;
  detail::UniqueFunction<void, Exchange&> handler;
};

/// Returns the method with that name, or nullptr.
template <class Exchange>
[[nodiscard]] const Method<Exchange>* find_method(const std::vector<Method<Exchange>>& methods, std::string_view name) {
  for (const Method<Exchange>& method : methods)
    if (method.name == name) return &method;
  return nullptr;
}
/// Lists the methods for messages: "it has 'pull', 'push'".
template <class Exchange>
[[nodiscard, gnu::cold]] std::string known_methods(const std::vector<Method<Exchange>>& methods) {
  std::string known = "it has";
  for (const Method<Exchange>& method : methods)
    known += concat(&method == methods.data() ? " " : ", ", quoted(method.name));
  return methods.empty() ? "it has none" : known;
}
[[nodiscard]] std::string too_long(std::uint64_t size, std::uint64_t longest);

/// The input of a handler: a request, and the means to reply.
/// - `method()`, `pieces()`: the request. The pieces are valid until the handler returns.
/// - `cancelled()`: true if no one waits for the reply, because the caller cancelled, timed out or is lost.
/// - `reply(bytes)`: replies with bytes, and takes ownership of them.
/// - `reply(pieces, release)`: replies with borrowed memory, which must stay unchanged until `release` is called: once, in
///   any thread, even if no one waits. The list itself may be destroyed.
/// - `fail(text)`: replies with an error, `Failure::handler`.
/// - `keep()`: returns the exchange, so that any thread can reply later. Its pieces are valid as long as it exists.
///
/// A call gets one reply. If the handler throws, or returns without a reply, the reply is an error.
template <class E>
concept Exchange = std::move_constructible<E> && requires(E& exchange, const E& seen, std::vector<std::byte> bytes,
                                                          ChunkSpan pieces, detail::UniqueFunction<void> release) {
  { seen.method() } -> std::convertible_to<std::string_view>;
  { seen.pieces() } -> std::same_as<ChunkSpan>;
  { seen.cancelled() } -> std::same_as<bool>;
  { exchange.keep() } -> std::same_as<E>;
  exchange.reply(std::move(bytes));
  exchange.reply(pieces, release);
  exchange.fail("why");
};

/// A reply. `pieces()` are its bytes, except those passed to a ReplySink, valid as long as a copy of the reply exists.
/// `incarnation()` is a number of the server, which changes when it restarts.
template <class R>
concept Reply = std::copyable<R> && requires(const R& reply) {
  { reply.pieces() } -> std::same_as<ChunkSpan>;
  { reply.incarnation() } -> std::same_as<std::uint64_t>;
};

/// A pending call. `wait` throws RpcError if the call failed.
template <class C, class R>
concept Call = Future<C> && requires(C& call) {
  call.cancel();
  { call.reply() } -> std::same_as<R>;
};

/// Makes calls between or within processes: an empty type with these members.
///
/// `Server{endpoint, options, methods}` listens at that address only, once it is constructed, or throws
/// RendezvousError. `stop()`, which the destructor calls, ends unanswered calls, and returns when no handler runs. A
/// handler may run in its caller's thread, so it must not wait for other calls of that caller; to wait, it keeps its
/// exchange.
///
/// `Channel{endpoint, options}` connects on first use, and reconnects after a loss. Thread-safe. `start(method, pieces,
/// options)` starts a call without waiting. The pieces must stay unchanged until the call is done (small ones may be
/// copied). A call that was ended early is done when nothing reads them, which takes up to `silence` if the server has
/// stopped. `call` combines `start` and `reply`. Messages may have any size up to `longest`. Concurrent calls of a
/// channel may be reordered, but follow all calls that are done. The destructor cancels pending calls.
///
/// If the job has a secret, every call proves that the caller has it, and recorded calls are rejected. If the options
/// name certificates, calls between processes are encrypted, and each side proves with its certificate that it belongs
/// to the job; a transport without encryption rejects the options.
///
/// A channel in state `ready` notices within about `silence` that its server has exited or stopped, even without a
/// call. Clients that use a server's memory depend on this (server::SharedMemoryAccess).
template <class T>
concept Transport = requires {
  typename T::Server;
  typename T::Channel;
  typename T::Call;
  typename T::Reply;
  requires Exchange<typename T::Exchange>;
  requires Reply<typename T::Reply>;
  requires Call<typename T::Call, typename T::Reply>;
  requires std::constructible_from<typename T::Server, net::Endpoint, ServerOptions,
                                   std::vector<Method<typename T::Exchange>>>;
  requires std::constructible_from<typename T::Channel, net::Endpoint, ChannelOptions>;
}
&&requires(typename T::Server& server, typename T::Channel& channel, std::string_view method, ChunkSpan pieces,
           const CallOptions& options) {
  server.stop();
  { channel.state() } -> std::same_as<State>;
  { channel.start(method, pieces, options) } -> std::same_as<typename T::Call>;
  { channel.call(method, pieces, options) } -> std::same_as<typename T::Reply>;
};

/// A transport that prepares processes that exist to serve, before their first server is created.
template <class T>
concept PreparesToServe = requires {
  T::prepare_to_serve();
};

/// A transport between threads of one process, which includes the servers.
template <class T>
concept WithinProcess = requires {
  requires T::within_process;
};

}  // namespace dist::rpc

namespace dist::detail {

/// Adds an object to a list of weak pointers, and removes expired ones before the list grows.
template <class T>
void add_live(std::vector<std::weak_ptr<T>>& list, const std::shared_ptr<T>& added) {
  if (list.size() == list.capacity()) {
    std::erase_if(list, [](const std::weak_ptr<T>& entry) { return entry.expired(); });
    list.reserve(std::max<std::size_t>(16, 2 * list.size()));
  }
  list.push_back(added);
}

}  // namespace dist::detail

namespace dist::rpc {

/// The numbers of a client's calls that have arrived. Calls may be reordered, but by at most `width`.
class NonceFilter {
 public:
  /// The maximum distance of calls that are reordered.
  static constexpr std::uint64_t width = 4096;

  /// True if the filter can tell whether the number has arrived before.
  [[nodiscard]] bool remembers(std::uint64_t number) const { return number + width > highest_; }
  /// True if the number is known to have arrived.
  [[nodiscard]] bool has(std::uint64_t number) const {
    return remembers(number) && number <= highest_ && (seen_[number % width / 64] & bit(number)) != 0;
  }
  /// Records a number. Returns false if it has arrived before, or is too old to tell.
  [[nodiscard]] bool take(std::uint64_t number) {
    if (!remembers(number)) return false;
    if (number > highest_) {
      for (std::uint64_t passed = std::max(highest_ + 1, number < width ? 0 : number - width + 1); passed < number;
           ++passed)
        at(passed) &= ~bit(passed);
      highest_ = number;
    } else if ((at(number) & bit(number)) != 0) {
      return false;
    }
    at(number) |= bit(number);
    return true;
  }

 private:
  [[nodiscard]] std::uint64_t& at(std::uint64_t number) { return seen_[number % width / 64]; }
  [[nodiscard]] static std::uint64_t bit(std::uint64_t number) { return std::uint64_t{1} << number % 64; }

  std::uint64_t highest_ = 0;
  std::array<std::uint64_t, width / 64> seen_{};
};

}  // namespace dist::rpc

#ifndef DIST_COMPILED
#include <dist/rpc/rpc.ipp>
#endif
