// expect: a pointer cannot be sent, as what it points to is in this process
#include <dist/server/archive.hpp>

int main() {
#ifdef CONTROL
  static_cast<void>(dist::to_bytes(std::string{"text"}));
#else
  const char* text = "text";
  static_cast<void>(dist::to_bytes(text));
#endif
}
