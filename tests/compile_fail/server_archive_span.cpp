// expect: a span or a view cannot be sent, because its elements are in this process
#include <dist/server/archive.hpp>

int main() {
#ifdef CONTROL
  static_cast<void>(dist::to_bytes(std::vector<float>(3)));
#else
  std::vector<float> elements(3);
  static_cast<void>(dist::to_bytes(std::optional{std::span<float>{elements}}));
#endif
}
