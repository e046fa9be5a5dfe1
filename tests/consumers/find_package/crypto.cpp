#include <dist/cluster/rendezvous/hmac.hpp>

int main() {
  const dist::rendezvous::Proof proof = dist::rendezvous::hmac_sha256("secret", {});
  return dist::rendezvous::equal_proofs(proof, proof) ? 0 : 1;
}
