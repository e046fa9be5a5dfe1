// expect: narrow
#include <dist/comm/communication_options.hpp>

int main() {
#ifdef CONTROL
  const dist::CommunicationOptions options{.bytes_per_pack = 1};
#else
  const dist::CommunicationOptions options{.bytes_per_pack = -1};
#endif
  return options.timeout ? 1 : 0;
}
