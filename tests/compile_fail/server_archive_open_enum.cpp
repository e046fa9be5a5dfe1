// expect: an enum without a fixed type cannot be sent, because not every number is one of its values
#include <dist/server/archive.hpp>

enum class Fixed { one, two };
enum Open { three, four };

int main() {
#ifdef CONTROL
  static_cast<void>(dist::to_bytes(Fixed::one));
#else
  static_cast<void>(dist::to_bytes(three));
#endif
}
