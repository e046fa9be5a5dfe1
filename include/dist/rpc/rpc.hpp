#pragma once

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

/// Remote procedure calls: what every transport between a server and its clients has in common. The transports are
/// `dist::Local` and `dist::Grpc`.
namespace dist::rpc {

using Chunk = std::span<const std::byte>;
/// The bytes of a request or a reply, one piece of memory after another.
using ChunkSpan = std::span<const Chunk>;
/// A list of pieces that is made step by step.
using ChunkList = detail::ShortList<Chunk, 4>;

[[nodiscard]] inline std::uint64_t size_of(ChunkSpan pieces) {
  std::uint64_t size = 0;
  for (const Chunk piece : pieces) size += piece.size();
  return size;
}

/// Copies the pieces one after another to `to`, which is as long as all of them.
void copy(ChunkSpan pieces, std::span<std::byte> to);
[[nodiscard]] std::vector<std::byte> joined(ChunkSpan pieces);

/// Why a call has no reply. Transports decide this by what happened, never by a text that a peer sent.
enum class Failure : std::uint8_t {
  deadline = 1,        ///< the call's time was up
  cancelled = 2,       ///< the caller cancelled it
  lost = 3,            ///< the server was not reached, or is gone, stopped or cut off; it may have done what was asked
  refused = 4,         ///< the server, or what listens there, does not belong to this job, or the request is malformed
  unknown_method = 5,  ///< the server has no such method
  handler = 6,         ///< the server's handler failed: what it threw stands in the error
};

[[nodiscard]] std::string_view to_string_view(Failure failure);

/// What ended a call, as a transport knows it.
struct Outcome {
  Failure failure = Failure::lost;
  std::string why;     ///< for `handler` the text of what was thrown
  std::string thrown;  ///< for `handler` its type
  /// For `lost`: the server was silent for too long. Else the connection was closed or refused.
  bool silent = false;
};

/// What a handler threw. To be called where it is caught.
[[nodiscard]] Outcome outcome_of_exception();

}  // namespace dist::rpc

namespace dist {

/// A call to another process has no reply. `failure()` says why.
class RpcError : public Error {
 public:
  RpcError(std::string_view method, std::string_view peer, const rpc::Outcome& outcome);

  [[nodiscard]] rpc::Failure failure() const noexcept { return outcome_.failure; }
  /// The address of the server.
  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }
  /// How the failure was noticed; of a handler, the text of what it threw.
  [[nodiscard]] const std::string& why() const noexcept { return outcome_.why; }
  /// True if the server was lost after a long silence.
  [[nodiscard]] bool was_silent() const noexcept { return outcome_.silent; }
  /// The type of what the server's handler threw, else empty.
  [[nodiscard]] const std::string& thrown() const noexcept { return outcome_.thrown; }
  /// ExitCode::try_again if the server was lost or late or the call was cancelled.
  [[nodiscard]] int exit_code() const noexcept override;

 private:
  [[nodiscard]] static std::string problem_of(std::string_view method, std::string_view peer,
                                              const rpc::Outcome& outcome);
  [[nodiscard]] static std::string_view suggestion_for(rpc::Failure failure);

  rpc::Outcome outcome_;
  std::string peer_;
};

}  // namespace dist

namespace dist::rpc {

/// Whether the server is gone or cannot be reached, so that another try may help, or another server.
[[nodiscard]] inline bool is_lost(const RpcError& error) noexcept { return error.failure() == Failure::lost; }

/// The connection to a server, as far as its channel knows.
enum class State : std::uint8_t {
  idle,        ///< not connected, because nothing was asked of it yet
  connecting,  ///< trying
  ready,       ///< connected
  lost,        ///< the last attempt failed or the connection broke; calls try again
};

/// For how long a peer may be silent before it is lost, unless its connection closes: longer than a container may go without its
/// share of the processors.
inline constexpr net::Milliseconds default_silence{30'000};

struct ServerOptions {
  std::size_t threads = 2;  ///< that run handlers, however many clients there are
  std::string secret = {};  ///< of the job; empty: every caller is believed (`net::job_secret()`)
  net::TlsFiles tls = {};   ///< of this task; none: nothing is encrypted (`net::job_tls()`)
  std::uint64_t longest = std::uint64_t{1} << 40;  ///< bytes of a request; a longer one is refused
  bool peers_elsewhere = false;                 ///< clients are on other hosts: an address of this machine is a mistake
  net::Milliseconds silence = default_silence;  ///< a client that is silent for so long is lost
  net::Milliseconds port_in_use{5'000};         ///< for the process before to give the port up
};

struct ChannelOptions {
  std::string secret = {};  ///< of the job; empty: none
  net::TlsFiles tls = {};   ///< of this task, where the server has them, too; none: not encrypted
  std::uint64_t longest = std::uint64_t{1} << 40;  ///< bytes of a reply; a longer one is refused
  net::Milliseconds silence = default_silence;     ///< a server that is silent for so long is lost
  /// A channel that did not find its server looks again after so long at most; until then calls are lost at once. Who tries
  /// again pauses for as long.
  net::Milliseconds reconnect{200};
};

/// Takes the bytes of a reply in their order, in any thread.
class ReplySink {
 public:
  virtual void take(Chunk bytes) noexcept = 0;

 protected:
  ~ReplySink() = default;
};

struct CallOptions {
  std::chrono::nanoseconds timeout{0};  ///< until the whole reply is here; 0: as long as it takes
  bool wait_for_server = false;         ///< until it listens, rather than fail at once where it does not
  /// Lent until the call is done. A transport that receives a long reply in parts gives it their bytes as they come, while they
  /// are in the caches; what it was not given is in the `pieces()` of the reply.
  ReplySink* sink = nullptr;
};

/// A function of a server. Several threads call it at the same time; see RpcTransport.
template <class Exchange>
struct Method {
  std::string name;
  detail::UniqueFunction<void, Exchange&> handler;
};

/// The method of that name, or nullptr.
template <class Exchange>
[[nodiscard]] const Method<Exchange>* find_method(const std::vector<Method<Exchange>>& methods, std::string_view name) {
  for (const Method<Exchange>& method : methods)
    if (method.name == name) return &method;
  return nullptr;
}
/// For messages: "it knows 'pull', 'push'".
template <class Exchange>
[[nodiscard]] std::string known_methods(const std::vector<Method<Exchange>>& methods) {
  std::string known = "it knows";
  for (const Method<Exchange>& method : methods)
    known += concat(&method == methods.data() ? " " : ", ", quoted(method.name));
  return methods.empty() ? "it knows none" : known;
}
[[nodiscard]] std::string too_long(std::uint64_t size, std::uint64_t longest);

/// What a handler has to do with: a request, and the one who waits for the reply to it.
/// - `method()`, `pieces()`: what is asked. The pieces are valid until the handler returns.
/// - `cancelled()`: nobody waits any more, because the caller cancelled, its time was up, or it is gone.
/// - `reply(bytes)`: answers with bytes that it takes.
/// - `reply(pieces, release)`: answers with memory that is not copied. The list itself may go; its memory stays, unchanged,
///   until `release` is called, in any thread, once, also where nobody waits any more.
/// - `fail(text)`: answers with an error of the caller's, `Failure::handler`.
/// - `keep()`: the exchange itself, to be answered later by any thread; its pieces are valid as long as it is.
/// A call is answered once. What a handler throws is the answer, too, and so is that it returned without one.
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

/// What came back, or what of it no ReplySink has taken: `pieces()` are valid as long as a copy of the reply lives. `incarnation()` is a number of the server
/// that answered: another one at the same address, such as one that was started again, has another number.
template <class R>
concept Reply = std::copyable<R> && requires(const R& reply) {
  { reply.pieces() } -> std::same_as<ChunkSpan>;
  { reply.incarnation() } -> std::same_as<std::uint64_t>;
};

/// A call that goes on: `wait` throws RpcError where there is no reply.
template <class C, class R>
concept Call = Future<C> && requires(C& call) {
  call.cancel();
  { call.reply() } -> std::same_as<R>;
};

/// What moves calls between processes, or within one: an empty type with these parts.
///
/// `Server{endpoint, options, methods}` listens at that address only and returns once it does; it throws RendezvousError
/// where it cannot. `stop()`, which the destructor calls, ends the calls that were not answered, and returns when no
/// handler runs. A handler may run in the thread of its caller, so it must not wait for other calls of that caller; what
/// has to wait keeps its exchange.
///
/// `Channel{endpoint, options}` connects when it is first used, and again after a loss. Thread-safe.
/// `start(method, pieces, options)` begins a call and returns. The pieces are lent: they are not copied (small ones may
/// be), and stay, unchanged, until the call is done. A call that ended early is done when nothing reads them any more,
/// which takes up to `silence` where the server has stopped. `call` is `start` and `reply` in one. Messages are of any
/// size up to `longest`. Calls of one channel may overtake each other; one that was waited for is before the next. The
/// destructor cancels what goes on.
///
/// Every call proves that the caller knows the secret of the job, if there is one, and no recorded call is taken twice. Where
/// the options name certificates, calls between processes are encrypted, and each side proves by its certificate that it belongs
/// to the job; a transport that cannot do this refuses the options.
///
/// A channel that is `ready` sees within about `silence` that its server is gone or has stopped, also while there is no call: clients
/// that use the memory of a server rely on it (server::SharedMemoryAccess).
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

/// A transport with something to set in a process that exists to serve, before its first server is made.
template <class T>
concept PreparesToServe = requires {
  T::prepare_to_serve();
};

/// A transport between the threads of one process: who serves there has no process of its own.
template <class T>
concept WithinProcess = requires {
  requires T::within_process;
};

}  // namespace dist::rpc

namespace dist::detail {

/// Adds to a list of what others own, and takes out what they have dropped whenever the list would grow.
template <class T>
void add_live(std::vector<std::weak_ptr<T>>& list, const std::shared_ptr<T>& added) {
  if (list.size() == list.capacity()) {
    std::erase_if(list, [](const std::weak_ptr<T>& entry) { return entry.expired(); });
    list.reserve(std::max<std::size_t>(16, 2 * list.size()));
  }
  list.push_back(added);
}

}  // namespace dist::detail

#ifndef DIST_COMPILED
#include <dist/rpc/rpc.ipp>
#endif
