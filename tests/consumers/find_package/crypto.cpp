#include <dist/net/handshake.hpp>

int main() {
  const dist::net::Proof proof = dist::net::hmac_sha256("secret", {});
  return dist::net::equal_proofs(proof, proof) ? 0 : 1;
}
