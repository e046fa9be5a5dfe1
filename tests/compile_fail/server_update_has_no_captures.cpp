// expect: a scheduled function runs in another process, without its captures
#include <dist/server/requests.hpp>

struct Descend {
  float rate;
  float operator()(float weight, float gradient) const { return weight - rate * gradient; }
};

int main() {
  const float values[] = {1, 2};
#ifdef CONTROL
  const Descend update{0.5f};
#else
  const float rate = 0.5f;
  auto update = [rate](float weight, float gradient) { return weight - rate * gradient; };
#endif
  dist::server::PushRequest{}.dense(1, update, std::span<const float>{values});
}
