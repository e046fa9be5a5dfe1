// expect: this policy does not report failures: with_timeout(timeout) returns its own type
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/mirrored.hpp>

struct Own {
  static constexpr std::string_view name = "Own";
  template <class C>
  class On : public dist::ThreadAllReduce::On<C> {
   public:
    using dist::ThreadAllReduce::On<C>::On;
#ifdef CONTROL
    On with_timeout(std::chrono::nanoseconds timeout) const { return On{this->communicator().with_timeout(timeout)}; }
#else
    On with_timout(std::chrono::nanoseconds timeout) const { return On{this->communicator().with_timeout(timeout)}; }
#endif
  };
};

int main() {
  dist::Mirrored<Own> strategy{1};
  return strategy.num_replicas_in_sync() == 1 ? 0 : 1;
}
