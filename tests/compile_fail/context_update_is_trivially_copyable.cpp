// expect: an update is copied to the memory of the elements, so it must be trivially copyable
#include <cstddef>
#include <span>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/mirrored.hpp>

int main() {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  strategy.run([](auto& replica) {
    std::vector<float> values(10), rates(10);
#ifdef CONTROL
    const auto update = [&rates](std::size_t i, float weight, float gradient) { return weight - rates[i] * gradient; };
#else
    const auto update = [rates](std::size_t i, float weight, float gradient) { return weight - rates[i] * gradient; };
#endif
    replica.reduce_and_apply(dist::sum, std::span{values}, std::span{values}, update);
  });
}
