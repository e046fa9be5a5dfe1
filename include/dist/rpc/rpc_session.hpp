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
#include <dist/rpc/nonce_filter.hpp>
#include <dist/rpc/rpc.hpp>

/// How calls between processes prove that the caller knows the secret of the job, and what stands before their bytes.
///
/// A client asks for the server's nonce once, and the server proves then that it knows the secret. Each call carries the
/// nonces of both, a number that grows, and the proof for these, the method and the size of the request
/// (`net::proof_of`). The server remembers which numbers of a client it has seen, so that a recorded call is refused;
/// where it would have to remember too much it takes another nonce, and clients ask again. The bytes themselves are not
/// proven: who can change them on their way is kept away by TLS (net/tls_files.hpp).
namespace dist::rpc {

/// The types of the frames (net/frame.hpp) that stand before the bytes of a message.
inline constexpr std::uint16_t request_frame = 32;
inline constexpr std::uint16_t reply_frame = 33;
/// A frame before a message is not longer.
inline constexpr std::size_t longest_head = 8192;
/// The method that asks for the server's nonce.
inline constexpr std::string_view greeting_method = "greeting";

/// What stands before the bytes of a request.
struct RequestHead {
  std::uint64_t size = 0;  ///< of the bytes that follow
  net::Nonce of_server{};  ///< zeros without a secret
  net::Nonce of_client{};
  std::uint64_t number = 0;
  std::vector<std::byte> proof = {};  ///< empty without a secret

  [[nodiscard]] std::vector<std::byte> frame() const {
    net::RecordWriter writer;
    writer.number(size).bytes(of_server).bytes(of_client).number(number).bytes(proof);
    std::vector<std::byte> bytes;
    net::append_frame(bytes, request_frame, writer.content());
    return bytes;
  }
  /// Throws FrameError.
  [[nodiscard]] static RequestHead from(const net::Frame& frame) {
    if (frame.type != request_frame)
      throw net::FrameError("A caller sends what is no request", concat("frame ", frame.type), "");
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
  /// What the proof is for, besides the nonces.
  [[nodiscard]] std::vector<std::byte> said(std::string_view method) const {
    net::RecordWriter writer;
    writer.number(number).string(method).number(size);
    return {writer.content().begin(), writer.content().end()};
  }
};

/// What stands before the bytes of a reply.
struct ReplyHead {
  std::uint64_t size = 0;  ///< of the bytes that follow
  std::uint64_t incarnation = 0;
  std::optional<Outcome> failure = {};
  bool greet_again = false;  ///< the server has another nonce now; it has not looked at the call

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
  /// Throws FrameError.
  [[nodiscard]] static ReplyHead from(const net::Frame& frame) {
    if (frame.type != reply_frame)
      throw net::FrameError("A server sends what is no reply", concat("frame ", frame.type), "");
    net::RecordReader reader{frame.payload};
    ReplyHead head;
    head.size = reader.number<std::uint64_t>();
    head.incarnation = reader.number<std::uint64_t>();
    head.greet_again = reader.number<std::uint8_t>() != 0;
    const auto failure = reader.number<std::uint8_t>();
    if (failure > static_cast<std::uint8_t>(Failure::handler))
      throw net::FrameError("A server's failure is of no known kind", concat("number ", failure), "");
    if (failure != 0) {
      head.failure = Outcome{static_cast<Failure>(failure), reader.string(), ""};
      head.failure->thrown = reader.string();
    }
    reader.expect_end();
    return head;
  }
};

/// A client's part: one for each channel. Thread-safe.
class ClientSession {
 public:
  explicit ClientSession(std::string secret)
      : secret_(std::move(secret)), of_client_(secret_.empty() ? net::Nonce{} : net::random_nonce()) {}

  /// Whether the server's nonce must be asked for before a call.
  [[nodiscard]] bool must_greet() const {
    if (secret_.empty()) return false;
    const std::lock_guard lock{mutex_};
    return !of_server_;
  }
  /// The head of the greeting, of which the request has no bytes.
  [[nodiscard]] RequestHead greeting() const { return {0, {}, of_client_, 0, {}}; }
  /// Takes the server's answer to the greeting. What keeps the server from being believed, or nothing.
  [[nodiscard]] std::optional<Outcome> greeted(Chunk answer) {
    if (answer.empty()) return Outcome{Failure::refused, "the server was started without the secret of the job", ""};
    net::RecordReader reader{answer};
    const net::Nonce nonce = net::nonce_from(reader.bytes());
    const Chunk proof = reader.bytes();
    reader.expect_end();
    if (!net::equal_proofs(net::proof_of(secret_, "server", nonce, of_client_, {}), proof))
      return Outcome{Failure::refused, "the server does not know the secret of the job", ""};
    const std::lock_guard lock{mutex_};
    of_server_ = nonce;
    return std::nullopt;
  }
  /// The server has another nonce than `old`.
  void forget(const net::Nonce& old) {
    const std::lock_guard lock{mutex_};
    if (of_server_ == old) of_server_.reset();
  }
  /// The head of a call. After `greeted`, if there is a secret.
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

/// A server's part. Thread-safe.
class ServerSession {
 public:
  /// Clients whose numbers are remembered at the same time.
  explicit ServerSession(std::string secret, std::size_t most_clients = 4096)
      : secret_(std::move(secret)), most_clients_(most_clients), nonce_(net::random_nonce()) {
    const net::Nonce random = net::random_nonce();
    incarnation_ = net::RecordReader{random}.number<std::uint64_t>();
  }

  [[nodiscard]] std::uint64_t incarnation() const { return incarnation_; }

  /// The bytes that answer a greeting.
  [[nodiscard]] std::vector<std::byte> answer(const RequestHead& greeting) const {
    if (secret_.empty()) return {};
    net::RecordWriter writer;
    const std::lock_guard lock{mutex_};
    writer.bytes(nonce_).bytes(net::proof_of(secret_, "server", nonce_, greeting.of_client, {}));
    return {writer.content().begin(), writer.content().end()};
  }

  /// Whether a call is taken: the head of the answer where it is not.
  [[nodiscard]] std::optional<ReplyHead> refusal(const RequestHead& head, std::string_view method) {
    if (secret_.empty()) return std::nullopt;
    if (head.proof.empty()) return refused("the caller has no secret, and this job has one");
    if (!net::equal_proofs(net::proof_of(secret_, "caller", head.of_server, head.of_client, head.said(method)),
                           head.proof))
      return refused("the caller does not know the secret of the job");
    const std::lock_guard lock{mutex_};
    if (head.of_server != nonce_) return ReplyHead{0, incarnation_, {}, true};
    if (!clients_.contains(head.of_client) && clients_.size() >= most_clients_) {
      clients_.clear();
      nonce_ = net::random_nonce();
      return ReplyHead{0, incarnation_, {}, true};
    }
    if (!clients_[head.of_client].take(head.number)) return refused("the call has come before");
    return std::nullopt;
  }
  [[nodiscard]] ReplyHead refused(std::string_view why) const {
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
