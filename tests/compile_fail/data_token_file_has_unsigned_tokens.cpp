// expect: token_file: the tokens of a file are std::uint8_t, std::uint16_t or std::uint32_t
#include <cstdint>

#include <dist/data/token_file.hpp>

int main() {
#ifdef CONTROL
  static_cast<void>(dist::data::token_file<std::uint16_t>("tokens.bin", 8));
#else
  static_cast<void>(dist::data::token_file<std::int32_t>("tokens.bin", 8));
#endif
}
