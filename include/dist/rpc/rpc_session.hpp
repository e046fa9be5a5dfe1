#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/net/frame.hpp>
#include <dist/net/handshake.hpp>
#include <dist/rpc/rpc.hpp>

/// Authentication of calls between processes with the secret of the job, and the heads of their messages.
///
/// A client requests the server's nonce once; the reply proves that the server knows the secret. Each call carries the
/// nonces of both sides, an increasing number, and a proof of these, the method and the size of the request
/// (`net::proof_of`). The server stores the numbers of each client to reject recorded calls. If it has stored too many,
/// it changes its nonce, and clients request it again. The data itself is not authenticated: only TLS protects it
/// (net/tls_files.hpp).
namespace dist::rpc {

/// The type of the frame (net/frame.hpp) before the bytes of a request.
inline constexpr std::uint16_t request_frame = 32;
/// The type of the frame before the bytes of a reply.
inline constexpr std::uint16_t reply_frame = 33;
/// The maximum size of a head.
inline constexpr std::size_t longest_head = 8192;
/// The method that requests the server's nonce.
inline constexpr std::string_view greeting_method = "greeting";

/// The head of a request.
struct RequestHead {
  std::uint64_t size = 0;             ///< of the following bytes
  net::Nonce of_server{};             ///< zero without a secret
  net::Nonce of_client{};             ///< random number of the client's session; zero without a secret
  std::uint64_t number = 0;           ///< of the call in the client's session, ascending
  std::vector<std::byte> proof = {};  ///< empty without a secret

  /// Returns the serialised head.
  [[nodiscard]] std::vector<std::byte> frame() const {
    net::RecordWriter writer;
    writer.number(size).bytes(of_server).bytes(of_client).number(number).bytes(proof);
    std::vector<std::byte> bytes;
    net::append_frame(bytes, request_frame, writer.content());
    return bytes;
  }
  /// Parses a frame. Throws FrameError.
  [[nodiscard]] static RequestHead from(const net::Frame& frame) {
    if (frame.type != request_frame)
      throw net::FrameError("A caller sent a frame that is not a request", concat("frame ", frame.type), "");
    net::RecordReader reader{frame.payload};
    RequestHead head;
    head.size = reader.number<std::uint64_t>();
    head.of_server = net::nonce_from(reader.bytes());
    head.of_client = net::nonce_from(reader.bytes());
    head.number = reader.number<std::uint64_t>();
    const Chunk proof = reader.bytes();
    head.proof.assign(proof.begin(), proof.end());
    reader.expect_end();
    return head;
  }
  /// The proven content, in addition to the nonces.
  [[nodiscard]] std::vector<std::byte> said(std::string_view method) const {
    net::RecordWriter writer;
    writer.number(number).string(method).number(size);
    return {writer.content().begin(), writer.content().end()};
  }
};

/// The head of a reply.
struct ReplyHead {
  std::uint64_t size = 0;               ///< of the following bytes
  std::uint64_t incarnation = 0;        ///< number of the server, which changes when it restarts
  std::optional<Outcome> failure = {};  ///< set if the call failed
  bool greet_again = false;             ///< the server has changed its nonce, and has not executed the call

  /// Returns the serialised head. The texts of a failure are truncated.
  [[nodiscard]] std::vector<std::byte> frame() const {
    constexpr std::size_t longest_text = 4096;
    net::RecordWriter writer;
    writer.number(size).number(incarnation).number(static_cast<std::uint8_t>(greet_again ? 1 : 0));
    writer.number(static_cast<std::uint8_t>(failure ? failure->failure : Failure{}));
    if (failure)
      writer.string(std::string_view{failure->why}.substr(0, longest_text))
          .string(std::string_view{failure->thrown}.substr(0, 256));
    std::vector<std::byte> bytes;
    net::append_frame(bytes, reply_frame, writer.content());
    return bytes;
  }
  /// Parses a frame. Throws FrameError.
  [[nodiscard]] static ReplyHead from(const net::Frame& frame) {
    if (frame.type != reply_frame)
      throw net::FrameError("A server sent a frame that is not a reply", concat("frame ", frame.type), "");
    net::RecordReader reader{frame.payload};
    ReplyHead head;
    head.size = reader.number<std::uint64_t>();
    head.incarnation = reader.number<std::uint64_t>();
    head.greet_again = reader.number<std::uint8_t>() != 0;
    const auto failure = reader.number<std::uint8_t>();
    if (failure > static_cast<std::uint8_t>(Failure::handler))
      throw net::FrameError("A server's failure is of an unknown kind", concat("number ", failure), "");
    if (failure != 0) {
      head.failure = Outcome{static_cast<Failure>(failure), reader.string(), ""};
      head.failure->thrown = reader.string();
    }
    reader.expect_end();
    return head;
  }
};

/// The client's side, one for each channel. Thread-safe.
class ClientSession {
 public:
  /// `secret` is the secret of the job; empty: no authentication.
  explicit ClientSession(std::string secret)
      : secret_(std::move(secret)), of_client_(secret_.empty() ? net::Nonce{} : net::random_nonce()) {}

  /// True if the server's nonce must be requested before a call.
  [[nodiscard]] bool must_greet() const {
    if (secret_.empty()) return false;
    const std::lock_guard lock{mutex_};
    return !of_server_;
  }
  /// The head of a greeting, a request without data.
  [[nodiscard]] RequestHead greeting() const { return {0, {}, of_client_, 0, {}}; }
  /// Processes the reply to a greeting. Returns the reason if the server is rejected.
  [[nodiscard, gnu::cold]] std::optional<Outcome> greeted(Chunk answer) {
    if (answer.empty()) return Outcome{Failure::refused, "the server was started without the secret of the job", ""};
    net::RecordReader reader{answer};
    const net::Nonce nonce = net::nonce_from(reader.bytes());
    const Chunk proof = reader.bytes();
    reader.expect_end();
    if (!net::equal_proofs(net::proof_of(secret_, "server", nonce, of_client_, {}), proof))
      return Outcome{Failure::refused, "the server does not have the secret of the job", ""};
    const std::lock_guard lock{mutex_};
    of_server_ = nonce;
    return std::nullopt;
  }
  /// Discards the server's nonce if it is still `old`.
  void forget(const net::Nonce& old) {
    const std::lock_guard lock{mutex_};
    if (of_server_ == old) of_server_.reset();
  }
  /// The head of a call. With a secret, requires `greeted`.
  [[nodiscard]] RequestHead head(std::string_view method, std::uint64_t size) {
    RequestHead head{size, {}, of_client_, 0, {}};
    if (secret_.empty()) return head;
    {
      const std::lock_guard lock{mutex_};
      head.of_server = of_server_.value_or(net::Nonce{});
      head.number = ++number_;
    }
    const net::Proof proof = net::proof_of(secret_, "caller", head.of_server, head.of_client, head.said(method));
    head.proof.assign(proof.begin(), proof.end());
    return head;
  }

 private:
  const std::string secret_;
  const net::Nonce of_client_;
  mutable std::mutex mutex_;
  std::optional<net::Nonce> of_server_;
  std::uint64_t number_ = 0;
};

/// The server's side. Thread-safe.
class ServerSession {
 public:
  /// `most_clients` is the maximum number of clients whose numbers are stored.
  explicit ServerSession(std::string secret, std::size_t most_clients = 4096)
      : secret_(std::move(secret)), most_clients_(most_clients), nonce_(net::random_nonce()) {
    const net::Nonce random = net::random_nonce();
    incarnation_ = net::RecordReader{random}.number<std::uint64_t>();
  }

  /// The random number of this server.
  [[nodiscard]] std::uint64_t incarnation() const { return incarnation_; }

  /// Returns the reply to a greeting: the nonce, and the proof that the server has the secret. Empty without a secret.
  [[nodiscard, gnu::cold]] std::vector<std::byte> answer(const RequestHead& greeting) const {
    if (secret_.empty()) return {};
    net::RecordWriter writer;
    const std::lock_guard lock{mutex_};
    writer.bytes(nonce_).bytes(net::proof_of(secret_, "server", nonce_, greeting.of_client, {}));
    return {writer.content().begin(), writer.content().end()};
  }

  /// Returns the head of the reply if the call is rejected.
  [[nodiscard]] std::optional<ReplyHead> refusal(const RequestHead& head, std::string_view method) {
    if (secret_.empty()) return std::nullopt;
    if (head.proof.empty()) return refused("the caller has no secret, but this job has one");
    if (!net::equal_proofs(net::proof_of(secret_, "caller", head.of_server, head.of_client, head.said(method)),
                           head.proof))
      return refused("the caller does not have the secret of the job");
    const std::lock_guard lock{mutex_};
    if (head.of_server != nonce_) return ReplyHead{0, incarnation_, {}, true};
    if (!clients_.contains(head.of_client) && clients_.size() >= most_clients_) {
      clients_.clear();
      nonce_ = net::random_nonce();
      return ReplyHead{0, incarnation_, {}, true};
    }
    if (!clients_[head.of_client].take(head.number)) return refused("the server has already received this call");
    return std::nullopt;
  }
  /// Returns the head for a call that is rejected because of `why`.
  [[nodiscard, gnu::cold]] ReplyHead refused(std::string_view why) const {
    return {0, incarnation_, Outcome{Failure::refused, std::string{why}, ""}, false};
  }

 private:
  const std::string secret_;
  const std::size_t most_clients_;
  std::uint64_t incarnation_ = 0;
  mutable std::mutex mutex_;
  net::Nonce nonce_;
  std::map<net::Nonce, NonceFilter> clients_;
};

}  // namespace dist::rpc
