// expect: a std::string_view cannot be sent, because its text is in this process
#include <dist/server/archive.hpp>

int main() {
#ifdef CONTROL
  static_cast<void>(dist::to_bytes(std::tuple{1, std::string{"text"}}));
#else
  static_cast<void>(dist::to_bytes(std::tuple{1, std::string_view{"text"}}));
#endif
}
