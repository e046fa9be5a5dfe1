// expect: <openssl/hmac.h> of OpenSSL was not found: install libssl-dev, and link dist::crypto
// flags: -nostdinc
#include <dist/cluster/rendezvous/hmac.hpp>

int main() {}
