// expect: dist::Implementation
#include <dist/comm/communication_options.hpp>

int main() {
#ifdef CONTROL
  const dist::CommunicationOptions options{.implementation = dist::Implementation::ring};
#else
  const dist::CommunicationOptions options{.implementation = "RING"};
#endif
  return options.timeout ? 1 : 0;
}
