#include <dist/net/handshake.hpp>

#include <doctest/doctest.h>

#include <string>

using dist::net::equal_proofs;
using dist::net::hmac_sha256;
using dist::net::Proof;

namespace {

std::string hexadecimal(const Proof& proof) {
  std::string digits;
  for (const std::byte byte : proof)
    for (const int shift : {4, 0}) digits += "0123456789abcdef"[(std::to_integer<int>(byte) >> shift) & 15];
  return digits;
}

Proof proof(std::string_view secret, std::string_view message) {
  return hmac_sha256(secret, std::as_bytes(std::span{message}));
}

}  // namespace

TEST_CASE("hmac_sha256 passes the test vectors of RFC 4231") {
  CHECK(hexadecimal(proof(std::string(20, '\x0b'), "Hi There")) ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hexadecimal(proof("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hexadecimal(proof(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("proofs are equal only if all bytes and the length are equal") {
  const Proof one = proof("secret", "message");
  Proof other = one;
  CHECK(equal_proofs(one, other));
  for (std::byte& byte : other) {
    byte ^= std::byte{1};
    CHECK_FALSE(equal_proofs(one, other));
    byte ^= std::byte{1};
  }
  CHECK_FALSE(equal_proofs(one, std::span<const std::byte>{one}.first(31)));
  CHECK_FALSE(equal_proofs(one, {}));
}
