#pragma once

#if !__has_include(<openssl/hmac.h>)
#error "<openssl/hmac.h> of OpenSSL was not found: install libssl-dev, and link dist::crypto (without CMake: -lcrypto)"
#endif

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace dist::net {

/// The proof that a peer knows the secret of the job, without revealing it: HMAC-SHA256 (RFC 2104, FIPS 180-4).
using Proof = std::array<std::byte, 32>;

/// The proof for `message` of a process that knows `secret`.
[[nodiscard]] inline Proof hmac_sha256(std::string_view secret, std::span<const std::byte> message) {
  Proof proof{};
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(message.data()), message.size(),
       reinterpret_cast<unsigned char*>(proof.data()), &size);
  return proof;
}

/// Takes the same time wherever two proofs differ.
[[nodiscard]] inline bool equal_proofs(const Proof& left, std::span<const std::byte> right) {
  return right.size() == left.size() && CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

}  // namespace dist::net
