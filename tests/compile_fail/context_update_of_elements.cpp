// expect: an update is called as update(i, weight, gradient), with an index and two values of the elements' type, and returns the new weight
#include <cstddef>
#include <span>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/mirrored.hpp>

int main() {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  strategy.run([](auto& replica) {
    std::vector<float> values(10);
#ifdef CONTROL
    const auto update = [](std::size_t, float weight, float gradient) { return weight - gradient; };
#else
    const auto update = [](std::size_t, float weight, float gradient) { return weight - 0.5 * double{gradient}; };
#endif
    replica.update_shards(std::span{values}, std::span{values}, update);
  });
}
