#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dist/net/connection.hpp>
#include <dist/net/deadline.hpp>
#include <dist/net/handshake.hpp>

namespace dist::net {

/// A process that completed the handshake.
struct Accepted {
  Connection connection;  ///< authenticated
  Handshake hello;        ///< identity of the peer
};

/// Accepts and authenticates connections concurrently, without blocking. Drops peers that do not reply, violate the
/// protocol or lack the secret, after `handshake` at the latest, and the oldest if too many handshakes are in progress.
class HandshakeServer {
 public:
  /// Settings of a HandshakeServer.
  struct Options {
    std::string secret;            ///< empty: no authentication
    std::uint64_t world = 0;       ///< number of tasks in the list
    std::uint64_t checksum = 0;    ///< `list_checksum`
    Milliseconds handshake{3000};  ///< for each connection
    std::size_t pending = 64;      ///< most handshakes in progress
    bool other_jobs = false;       ///< if another checksum means another job, which has its own rendezvous nearby
  };

  /// Accepts connections of the non-blocking socket `listening`.
  HandshakeServer(io::Descriptor listening, Options options)
      : listening_(std::move(listening)), options_(std::move(options)) {}

  /// The number of handshakes in progress.
  [[nodiscard]] std::size_t pending() const { return visitors_.size(); }
  /// The number of dropped or refused connections, and the last reason.
  [[nodiscard]] std::size_t turned_away() const { return turned_away_; }
  /// The reason of the last dropped or refused connection; empty: none.
  [[nodiscard]] const std::string& last_problem() const { return last_problem_; }
  /// The reason why the last worker with another list or a wrong secret was refused.
  [[nodiscard]] const std::string& disagreement() const { return disagreement_; }

  /// The last refusal of another list, if the peer had the secret (or none is required).
  [[nodiscard]] const std::optional<Refusal>& other_list() const { return other_list_; }

  /// Adds the sockets to poll before `advance`.
  void add_entries(std::vector<pollfd>& entries) const {
    entries.push_back({listening_.get(), POLLIN, 0});
    for (const Visitor& visitor : visitors_) entries.push_back(visitor.connection.poll_entry());
  }
  /// When to call `advance` at the latest.
  [[nodiscard]] Deadline next() const {
    Deadline next = Deadline::in(std::chrono::hours{1});
    for (const Visitor& visitor : visitors_) next = next.sooner(visitor.deadline);
    return next;
  }

  /// Accepts waiting peers. Passes authenticated ones to `admit(const Handshake&) -> std::optional<Refusal>` and,
  /// unless refused, to `enter(Accepted)`.
  template <class Admit, class Enter>
  void advance(Admit&& admit, Enter&& enter) {
    accept_waiting();
    for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
      std::optional<Accepted> guest;
      bool stays = false;
      try {
        stays = proceed(*visitor, guest, admit);
      } catch (const FrameError& error) {
        turn_away(error.what());
      }
      if (guest) enter(std::move(*guest));
      visitor = stays ? visitor + 1 : visitors_.erase(visitor);
    }
  }

 private:
  struct Visitor {
    Connection connection;
    Deadline deadline;
    Nonce nonce;
  };

  void turn_away(std::string problem) {
    ++turned_away_;
    last_problem_ = std::move(problem);
  }

  void accept_waiting() {
    for (std::size_t i = 0; i < options_.pending; ++i) {
      io::Descriptor socket{accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
      if (!socket) {
        // Without a free descriptor, the connection would stay queued and wake this process forever.
        if ((errno == EMFILE || errno == ENFILE) && !visitors_.empty()) visitors_.pop_front();
        return;
      }
      if (visitors_.size() >= options_.pending) {
        visitors_.pop_front();
        turn_away("too many handshakes are in progress");
      }
      const int on = 1;
      setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      visitors_.push_back(
          {Connection{std::move(socket), longest_handshake}, Deadline::in(options_.handshake), random_nonce()});
      RecordWriter challenge;
      challenge.number(static_cast<std::uint8_t>(options_.secret.empty() ? 0 : 1)).bytes(visitors_.back().nonce);
      visitors_.back().connection.send(static_cast<std::uint16_t>(HandshakeStep::challenge), challenge.content());
    }
  }

  /// True while the handshake continues.
  template <class Admit>
  bool proceed(Visitor& visitor, std::optional<Accepted>& guest, Admit& admit) {
    visitor.connection.flush();
    const bool alive = visitor.connection.receive();
    if (std::optional<Frame> frame = visitor.connection.next()) {
      if (frame->type != static_cast<std::uint16_t>(HandshakeStep::hello))
        throw FrameError("A peer sent a frame that is not part of a handshake", concat("frame ", frame->type),
                         "Run the same version in all processes of the job");
      RecordReader reader{frame->payload};
      const std::span<const std::byte> said = reader.bytes();
      const Nonce of_connector = nonce_from(reader.bytes());
      const std::span<const std::byte> proof = reader.bytes();
      reader.expect_end();
      Handshake hello = Handshake::from(said);

      std::optional<Refusal> refusal = check_secret(hello, visitor.nonce, of_connector, said, proof);
      if (!refusal) {
        refusal = check_list(hello);
        if (refusal && !refusal->passes) other_list_ = refusal;
      }
      if (refusal) disagreement_ = concat(refusal->problem, " (", refusal->why, ")");
      if (!refusal) refusal = admit(std::as_const(hello));
      if (refusal) {
        visitor.connection.send(static_cast<std::uint16_t>(HandshakeStep::refused), refusal_record(*refusal));
        turn_away(concat(refusal->problem, " (", refusal->why, ")"));
        return false;
      }
      RecordWriter welcome;
      if (options_.secret.empty())
        welcome.bytes({});
      else
        welcome.bytes(proof_of(options_.secret, "acceptor", visitor.nonce, of_connector, said));
      visitor.connection.send(static_cast<std::uint16_t>(HandshakeStep::welcome), welcome.content());
      guest = Accepted{std::move(visitor.connection), std::move(hello)};
      return false;
    }
    if (!alive || visitor.connection.failed()) {
      turn_away("a peer closed the connection before it identified itself");
      return false;
    }
    if (visitor.deadline.passed()) {
      turn_away(concat("a peer did not identify itself within ", options_.handshake));
      return false;
    }
    return true;
  }

  [[nodiscard]] std::optional<Refusal> check_secret(const Handshake& hello, const Nonce& ours, const Nonce& theirs,
                                                    std::span<const std::byte> said,
                                                    std::span<const std::byte> proof) const {
    if (options_.secret.empty()) return std::nullopt;
    if (equal_proofs(proof_of(options_.secret, "connector", ours, theirs, said), proof)) return std::nullopt;
    return Refusal{concat("Worker ", hello.rank, " on host '", hello.host, "' does not have the secret of the job"),
                   proof.empty() ? "it sent no proof" : "its proof is wrong",
                   "Give the same DIST_JOB_SECRET to all tasks"};
  }

  [[nodiscard]] std::optional<Refusal> check_list(const Handshake& hello) const {
    if (hello.world == options_.world && hello.checksum == options_.checksum) return std::nullopt;
    if (options_.other_jobs && hello.checksum != options_.checksum)
      return Refusal{concat("Worker ", hello.rank, " on host '", hello.host, "' belongs to another job"),
                     "it has another MASTER_PORT or TORCHELASTIC_RUN_ID",
                     "Give the same values to all workers of a job", true};
    return Refusal{concat("Worker ", hello.rank, " on host '", hello.host, "' has another list of tasks"),
                   hello.world != options_.world
                       ? concat("its list has ", hello.world, " tasks, the list here has ", options_.world)
                       : concat("both have ", hello.world, " tasks, but names, ports, order or the job's name differ"),
                   "Give the same cluster to all tasks"};
  }

  io::Descriptor listening_;
  Options options_;
  std::deque<Visitor> visitors_;
  std::size_t turned_away_ = 0;
  std::string last_problem_;
  std::string disagreement_;
  std::optional<Refusal> other_list_;
};

}  // namespace dist::net
