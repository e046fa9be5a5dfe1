// expect: only number types have a dtype_name
#include <dist/core/memory_space.hpp>

int main() {
#ifdef CONTROL
  return dist::dtype_name<int>.empty() ? 1 : 0;
#else
  return dist::dtype_name<int*>.empty() ? 1 : 0;
#endif
}
