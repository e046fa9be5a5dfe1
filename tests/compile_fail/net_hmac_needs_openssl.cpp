// expect: <openssl/hmac.h> of OpenSSL was not found: install libssl-dev, and link dist::crypto
// flags: -nostdinc
#include <dist/net/handshake.hpp>

int main() {}
