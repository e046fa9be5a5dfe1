// expect: a list of values without any bytes cannot be sent
#include <dist/server/archive.hpp>

int main() {
#ifdef CONTROL
  static_cast<void>(dist::to_bytes(std::vector<std::tuple<int>>(3)));
#else
  static_cast<void>(dist::to_bytes(std::vector<std::tuple<>>(3)));
#endif
}
