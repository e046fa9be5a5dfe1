#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/log.hpp>
#include <dist/device/slow_wait.hpp>
#include <dist/net/connection.hpp>
#include <dist/net/deadline.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/net/handshake.hpp>
#include <dist/net/socket_address.hpp>

namespace dist::net {

/// Connects to a task and identifies this process, without blocking (except in the system's resolver). Retries
/// temporary failures: an unknown name, a refused connection, or a peer that does not reply or disconnects, at
/// intervals from 20 ms to half a second. The caller keeps the deadline.
class Dialer {
 public:
  /// Settings of a Dialer.
  struct Options {
    std::string secret{};                      ///< empty: no authentication
    Milliseconds attempt{3000};                ///< for one connection, until the peer requests the handshake
    std::size_t longest = longest_handshake;   ///< frames of the connection after the handshake
    Milliseconds refusals{0};                  ///< for retries after a temporary refusal
    std::vector<std::uint16_t> other_ports{};  ///< alternative ports of the peer, tried in turn
    /// For the peer's welcome after our hello: it may have admitted us already, and its machine may be busy.
    Milliseconds welcome{30'000};
  };

  /// Starts with the first call of `advance`. `hello` identifies this process.
  Dialer(Endpoint peer, Handshake hello, Options options)
      : peer_(std::move(peer)),
        hello_(std::move(hello)),
        options_(std::move(options)),
        refusals_(Deadline::in(options_.refusals)),
        next_(Deadline::in({})) {}

  /// True once the peer has accepted; `take` then returns the connection.
  [[nodiscard]] bool welcomed() const { return state_ == State::welcomed; }
  /// Returns the connection to the peer, once.
  [[nodiscard]] Connection take() { return std::move(connection_); }
  /// The reason why the last attempt failed.
  [[nodiscard]] const std::string& last_problem() const { return problem_; }

  /// The parts of the RendezvousError that `advance` threw.
  [[nodiscard]] const std::optional<Refusal>& refusal() const { return refusal_; }

  /// For `poll`; the descriptor is -1 between attempts.
  [[nodiscard]] pollfd poll_entry() const {
    if (state_ == State::connecting) return {socket_.get(), POLLOUT, 0};
    if (state_ == State::waiting) return {-1, 0, 0};
    return connection_.poll_entry();
  }
  /// When to call `advance` at the latest.
  [[nodiscard]] Deadline next() const { return next_; }

  /// Proceeds without waiting. Throws RendezvousError if the peer permanently refuses.
  void advance() {
    if (state_ == State::waiting && next_.passed()) begin();
    if (state_ == State::connecting) connecting();
    if (state_ == State::greeting) {
      try {
        greeting();
      } catch (const FrameError& error) {
        again(concat("the peer is not a process of this job: ", error.what()));
      }
    }
    if (state_ != State::waiting && state_ != State::welcomed && next_.passed())
      again(state_ == State::connecting ? "the connection attempt timed out"
            : answered_                 ? "the peer does not complete the handshake"
                                        : "connected, but the peer sends nothing");
  }

 private:
  enum class State { waiting, connecting, greeting, welcomed };

  void begin() {
    const Resolved resolved = resolve(peer_);
    if (resolved.addresses.empty()) return again(resolved.problem);
    const std::size_t ports = 1 + options_.other_ports.size();
    const std::size_t port = attempts_ % ports;
    SocketAddress address = resolved.addresses[attempts_++ / ports % resolved.addresses.size()];
    if (port != 0) address = address.at_port(options_.other_ports[port - 1]);
    socket_.reset(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_) return again(system_text());
    next_ = Deadline::in(options_.attempt);
    state_ = State::connecting;
    if (connect(socket_.get(), address.get(), address.size) != 0 && errno != EINPROGRESS) again(system_text());
  }

  void connecting() {
    pollfd entry = poll_entry();
    if (poll(&entry, 1, 0) != 1) return;
    int problem = 0;
    socklen_t size = sizeof problem;
    getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &problem, &size);
    if (problem != 0) return again(system_text(problem));
    if (is_own_end()) {
      leave_port();
      return again("no process listens there");
    }
    const int on = 1;
    setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connection_ = Connection{std::move(socket_), longest_handshake};
    state_ = State::greeting;
  }

  /// True if connected to itself: the system may assign the target port as the local port.
  [[nodiscard]] bool is_own_end() const {
    SocketAddress here, there;
    here.size = there.size = sizeof here.storage;
    return getsockname(socket_.get(), here.get(), &here.size) == 0 &&
           getpeername(socket_.get(), there.get(), &there.size) == 0 && here.size == there.size &&
           std::memcmp(&here.storage, &there.storage, here.size) == 0;
  }

  /// Makes the socket release its port when it closes, not a minute later: the peer needs it to listen.
  void leave_port() {
    const linger at_once{1, 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }

  void greeting() {
    const bool alive = connection_.receive();
    connection_.flush();
    while (std::optional<Frame> frame = connection_.next()) {
      switch (static_cast<HandshakeStep>(frame->type)) {
        case HandshakeStep::challenge:
          answer(*frame);
          break;
        case HandshakeStep::welcome:
          return welcome(*frame);
        case HandshakeStep::refused: {
          Refusal refusal = refusal_from(frame->payload);
          if (refusal.passes && !refusals_.passed()) return again(concat(refusal.problem, ": ", refusal.why));
          refuse(std::move(refusal));
        }
        default:
          throw FrameError("A peer sent a frame that is not part of a handshake", concat("frame ", frame->type),
                           "Run the same version in all processes of the job");
      }
    }
    if (!alive || connection_.failed()) again("the peer closed the connection during the handshake");
  }

  void answer(const Frame& challenge) {
    RecordReader reader{challenge.payload};
    const bool wanted = reader.number<std::uint8_t>() != 0;
    of_acceptor_ = nonce_from(reader.bytes());
    reader.expect_end();
    if (!wanted && !options_.secret.empty())
      refuse({concat("The task at ", to_string(peer_), " was started without the secret of the job"),
              "this task has a secret, and rejects peers without it",
              "Give the same DIST_JOB_SECRET to all tasks, or to none"});
    of_us_ = random_nonce();
    const std::vector<std::byte> said = hello_.record();
    RecordWriter writer;
    writer.bytes(said).bytes(of_us_);
    if (options_.secret.empty())
      writer.bytes({});
    else
      writer.bytes(proof_of(options_.secret, "connector", of_acceptor_, of_us_, said));
    connection_.send(static_cast<std::uint16_t>(HandshakeStep::hello), writer.content());
    answered_ = true;
    next_ = Deadline::in(options_.welcome);
  }

  void welcome(const Frame& frame) {
    if (!answered_)
      throw FrameError("A peer accepted this process before it identified itself", "no challenge arrived",
                       "Run the same version in all processes of the job");
    RecordReader reader{frame.payload};
    const std::span<const std::byte> proof = reader.bytes();
    if (!options_.secret.empty() &&
        !equal_proofs(proof_of(options_.secret, "acceptor", of_acceptor_, of_us_, hello_.record()), proof))
      refuse({concat("The task at ", to_string(peer_), " does not have the secret of the job"), "its proof is wrong",
              "Give the same DIST_JOB_SECRET to all tasks"});
    connection_.allow(options_.longest);
    state_ = State::welcomed;
  }

  [[noreturn]] void refuse(Refusal refusal) {
    refusal_ = std::move(refusal);
    throw RendezvousError(refusal_->problem, refusal_->why, refusal_->suggestion);
  }

  void again(std::string problem) {
    problem_ = std::move(problem);
    socket_.reset();
    connection_ = Connection{};
    answered_ = false;
    state_ = State::waiting;
    next_ = Deadline::in(pause_);
    pause_ = std::min(pause_ * 3 / 2, Milliseconds{500});
  }

  Endpoint peer_;
  Handshake hello_;
  Options options_;
  Deadline refusals_;
  State state_ = State::waiting;
  Deadline next_;
  Milliseconds pause_{20};
  std::size_t attempts_ = 0;
  std::string problem_ = "not tried yet";
  std::optional<Refusal> refusal_;
  io::Descriptor socket_;
  Connection connection_;
  bool answered_ = false;
  Nonce of_acceptor_{};
  Nonce of_us_{};
};

/// Connects and identifies this process. Prints once, after `patience`, what it is waiting for. Throws
/// DeadlineExceeded, with the name of the peer and the last problem, or RendezvousError if the peer refuses.
[[nodiscard]] inline Connection dial(Dialer& dialer, const std::string& whom, Milliseconds within, Deadline deadline,
                                     Milliseconds patience = default_patience) {
  const Deadline said_at = Deadline::in(patience);
  bool said = false;
  SlowWait slow;
  for (;;) {
    dialer.advance();
    if (dialer.welcomed()) return dialer.take();
    slow.note([&] { return concat("for ", whom, " (", dialer.last_problem(), ")"); });
    if (deadline.passed())
      throw DeadlineExceeded(concat(whom, " has not joined within ", within), dialer.last_problem(),
                             "Start it, check its address, check that no firewall blocks its port, or set a longer "
                             "timeout");
    if (!said && said_at.passed()) {
      said = true;
      log_line(concat(whom, " has not joined yet (", dialer.last_problem(), "); waiting up to ", within));
    }
    pollfd entry = dialer.poll_entry();
    poll(&entry, 1, deadline.sooner(dialer.next()).poll_timeout(said ? Milliseconds{1000} : said_at.left()));
  }
}

}  // namespace dist::net
