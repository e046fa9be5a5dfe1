// expect: a pointer cannot be sent, because its target is in this process
#include <dist/server/archive.hpp>

int main() {
#ifdef CONTROL
  static_cast<void>(dist::to_bytes(std::string{"text"}));
#else
  const char* text = "text";
  static_cast<void>(dist::to_bytes(text));
#endif
}
