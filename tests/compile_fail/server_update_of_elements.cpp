// expect: an update on a server must be callable as update(old, given), or as update(weight, gradient, slots)
#include <dist/server/requests.hpp>

int main() {
  const float values[] = {1, 2};
#ifdef CONTROL
  auto update = [](float old, float given) { return old - 2 * given; };
#else
  auto update = [](float old) { return -old; };
#endif
  dist::server::PushRequest{}.dense(1, update, std::span<const float>{values});
}
