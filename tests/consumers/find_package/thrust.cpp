#include <thrust/sort.h>
#include <dist/device/thrust_policy.hpp>

#include <vector>

int main() {
  std::vector<int> numbers{3, 1, 2};
  thrust::sort(dist::thrust_policy(dist::Cpu::Queue{}), numbers.begin(), numbers.end());
  return numbers == std::vector<int>{1, 2, 3} ? 0 : 1;
}
