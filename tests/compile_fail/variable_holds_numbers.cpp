// expect: a variable holds numbers
#include <dist/variable/distributed_variable.hpp>

int main() {
#ifdef CONTROL
  using Variable = dist::DistributedVariable<double, dist::OnWrite, dist::None>;
#else
  using Variable = dist::DistributedVariable<const char*, dist::OnWrite, dist::None>;
#endif
  return sizeof(Variable) > 0 ? 0 : 1;
}
