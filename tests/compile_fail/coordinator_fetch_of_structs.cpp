// expect: the members of a plain struct cannot change their types: fetch its RemoteValues one by one
#include <tuple>

#include <dist/coordinator/remote_value.hpp>

struct Step {
  int number;
  dist::RemoteValue<float> loss;
};

int main() {
#ifdef CONTROL
  static_cast<void>(dist::fetch(std::tuple{1, dist::RemoteValue<float>{}}));
#else
  static_cast<void>(dist::fetch(Step{}));
#endif
}
