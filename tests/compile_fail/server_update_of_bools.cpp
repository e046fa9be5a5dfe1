// expect: a bool variable can only be assigned
#include <dist/server/requests.hpp>

int main() {
  const bool values[] = {true, false};
#ifdef CONTROL
  dist::server::PushRequest{}.dense(1, dist::detail::Assign{}, std::span<const bool>{values});
#else
  dist::server::PushRequest{}.dense(1, dist::sum, std::span<const bool>{values});
#endif
}
