#pragma once

#if !__has_include(<openssl/hmac.h>)
#error "<openssl/hmac.h> of OpenSSL was not found: install libssl-dev, and link dist::crypto (without CMake: -lcrypto)"
#endif

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/hash.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/net/error.hpp>
#include <dist/net/frame.hpp>

namespace dist::net {

/// Proves possession of the job's secret without revealing it: HMAC-SHA256 (RFC 2104, FIPS 180-4).
using Proof = std::array<std::byte, 32>;

/// Returns the proof for `message`.
[[nodiscard]] inline Proof hmac_sha256(std::string_view secret, std::span<const std::byte> message) {
  Proof proof{};
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(message.data()), message.size(),
       reinterpret_cast<unsigned char*>(proof.data()), &size);
  return proof;
}

/// Compares two proofs in constant time.
[[nodiscard]] inline bool equal_proofs(const Proof& left, std::span<const std::byte> right) {
  return right.size() == left.size() && CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

/// The frames of a handshake: `challenge` from the accepting side, `hello` in reply, then `welcome` or `refused`. Types
/// from 16 on belong to users of the connection.
enum class HandshakeStep : std::uint16_t { challenge = 1, hello = 2, welcome = 3, refused = 4 };

/// The longest handshake frame, in bytes.
inline constexpr std::size_t longest_handshake = 4096;

/// A random number that a peer uses once, so that an old handshake is not valid again.
using Nonce = std::array<std::byte, 32>;

/// Throws RendezvousError.
[[nodiscard]] inline Nonce random_nonce() {
  Nonce nonce;
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size()))
    throw RendezvousError("The system does not provide random bytes", system_text(), "Check getrandom(2)");
  return nonce;
}

/// Throws FrameError.
[[nodiscard]] inline Nonce nonce_from(std::span<const std::byte> bytes) {
  Nonce nonce;
  if (bytes.size() != nonce.size())
    throw FrameError("A peer's nonce has the wrong size", "not 32 bytes",
                     "Run the same version in all processes of the job");
  std::copy(bytes.begin(), bytes.end(), nonce.begin());
  return nonce;
}

/// Returns a hash of a list of tasks and the job's name, sensitive to the order.
[[nodiscard]] inline std::uint64_t list_checksum(std::span<const Endpoint> tasks, std::string_view job) {
  std::uint64_t checksum = dist::detail::hash_of(job);
  for (const Endpoint& task : tasks)
    for (const std::string* const part : {&task.host, &task.port})
      checksum = dist::detail::combine(checksum, dist::detail::hash_of(*part));
  return checksum;
}

/// The data with which a process identifies itself.
struct Handshake {
  /// The kind of the process.
  enum class Role : std::uint8_t { worker = 1, server = 2 };

  Role role = Role::worker;    ///< kind of the process
  std::uint64_t rank = 0;      ///< of the worker, or the worker that started the server
  std::uint64_t world = 0;     ///< number of tasks in the process's list
  std::uint64_t checksum = 0;  ///< `list_checksum`
  std::string host;            ///< the machine's own host name
  std::string machine;         ///< unique to the machine, see `machine_id`

  /// Returns the serialised data, the content of a frame.
  [[nodiscard]] std::vector<std::byte> record() const {
    RecordWriter writer;
    writer.number(static_cast<std::uint8_t>(role)).number(rank).number(world).number(checksum);
    writer.string(host).string(machine);
    return {writer.content().begin(), writer.content().end()};
  }
  /// Throws FrameError.
  [[nodiscard]] static Handshake from(std::span<const std::byte> record) {
    RecordReader reader{record};
    Handshake hello;
    const auto role = reader.number<std::uint8_t>();
    if (role != 1 && role != 2)
      throw FrameError("A peer has an unknown role", concat("number ", role),
                       "Run the same version in all processes of the job");
    hello.role = static_cast<Role>(role);
    hello.rank = reader.number<std::uint64_t>();
    hello.world = reader.number<std::uint64_t>();
    hello.checksum = reader.number<std::uint64_t>();
    hello.host = reader.string(256);
    hello.machine = reader.string(256);
    reader.expect_end();
    for (const char character : hello.host + hello.machine)
      if (character < ' ' || character > '~')
        throw FrameError("A peer's name has characters that are not allowed in host names",
                         concat("code ", int{character}), "Run the same version in all processes of the job");
    return hello;
  }
};

/// One side's proof, of its role, both nonces, and its data.
[[nodiscard]] inline Proof proof_of(std::string_view secret, std::string_view side, const Nonce& of_acceptor,
                                    const Nonce& of_connector, std::span<const std::byte> said) {
  RecordWriter message;
  message.string(side).bytes(of_acceptor).bytes(of_connector).bytes(said);
  return hmac_sha256(secret, message.content());
}

/// Truncates long parts, so that refusals fit into a handshake.
[[nodiscard]] inline std::vector<std::byte> refusal_record(const Refusal& refusal) {
  constexpr std::size_t longest = 1200;
  RecordWriter writer;
  for (const std::string* part : {&refusal.problem, &refusal.why, &refusal.suggestion})
    writer.string(std::string_view{*part}.substr(0, longest));
  writer.number(static_cast<std::uint8_t>(refusal.passes));
  return {writer.content().begin(), writer.content().end()};
}

/// Throws FrameError.
[[nodiscard]] inline Refusal refusal_from(std::span<const std::byte> record) {
  RecordReader reader{record};
  Refusal refusal;
  refusal.problem = reader.string();
  refusal.why = reader.string();
  refusal.suggestion = reader.string();
  refusal.passes = reader.number<std::uint8_t>() != 0;
  reader.expect_end();
  return refusal;
}

}  // namespace dist::net
