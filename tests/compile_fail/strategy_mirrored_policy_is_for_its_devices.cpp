// expect: leave out the device if the policy is for one type, or use Mirrored<ThreadAllReduce>
#include <cstddef>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/mirrored.hpp>
#include <string_view>

struct Accelerator : dist::Cpu {
  struct Queues : dist::Cpu::Queues {
    using dist::Cpu::Queues::Queues;
  };
};
struct AcceleratedAllReduce {
  static constexpr std::string_view name = "AcceleratedAllReduce";
  using DefaultDevice = Accelerator;
  struct OfAccelerators {
    OfAccelerators(const Accelerator::Queues&, std::size_t) {}
  };
  template <class>
  using State = OfAccelerators;
  template <class C>
  struct On : dist::ThreadAllReduce::On<C> {
    On(C member, const Accelerator::Queue&, const OfAccelerators&) : dist::ThreadAllReduce::On<C>(member) {}
    On with_timeout(auto) const { return *this; }
  };
};

int main() {
#ifdef CONTROL
  dist::Mirrored<AcceleratedAllReduce> strategy{2};
#else
  dist::Mirrored<AcceleratedAllReduce, dist::Cpu> strategy{2};
#endif
}
