// expect: all_reduce takes numbers, tensors, contiguous ranges of numbers, and structures of these
#include <string>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/mirrored.hpp>

int main() {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  strategy.run([](auto& replica) {
#ifdef CONTROL
    const float text = 1;
#else
    const std::string text = "1";
#endif
    const auto all = replica.all_reduce(dist::sum, text);
    static_cast<void>(all);
  });
}
