// expect: floating-point elements are float or double
#include <dist/core/memory_space.hpp>

int main() {
#ifdef CONTROL
  return dist::dtype_name<double>.empty() ? 1 : 0;
#else
  return dist::dtype_name<long double>.empty() ? 1 : 0;
#endif
}
