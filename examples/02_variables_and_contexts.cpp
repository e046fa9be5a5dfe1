// Variables have one copy per replica. The type of a variable decides when its copies are synchronized. Every
// operation takes its context, so a wrong combination does not compile.
#include <cstdio>

#include <dist/dist.hpp>

#include "check.hpp"

int main() {
  dist::Mirrored<dist::ThreadAllReduce> strategy{3};

  // [variables]
  // OnWrite: all copies stay equal. A write in a replica function is first aggregated over the replicas.
  auto weight = strategy.variable<float, dist::OnWrite, dist::Mean>(dist::Shape{2}, 1.0f, "weight");
  // OnRead: each replica updates its own copy without communication. A read outside sums the copies.
  auto examples = strategy.variable<std::int64_t, dist::OnRead, dist::Sum>(dist::Shape{}, 0, "examples");

  strategy.run([&](auto& replica) {
    const auto id = static_cast<float>(replica.replica_id().index());
    weight.assign_add(replica, id);    // 0, 1 and 2: their mean, 1, is added to every copy
    examples.assign_add(replica, 10);  // changes this replica's copy only
  });

  const auto outside = strategy.scope();
  std::printf("weight %g, examples %lld\n", static_cast<double>(weight.read(outside)[0]),
              static_cast<long long>(examples.value(outside)));
  // [/variables]
  check(weight.read(outside)[0] == 2.0f && weight.read(outside)[1] == 2.0f, "the mean of 0, 1, 2 was added to 1");
  check(examples.value(outside) == 30, "three replicas counted ten examples each");

  // Every replica calls a collective, and each receives the result.
  strategy.run([&](auto& replica) {
    const double largest = replica.all_reduce(dist::max, static_cast<double>(replica.replica_id().index()));
    check(largest == 2.0, "the largest of the replica ids is 2");
  });

  // If one replica fails, the others stop waiting. Its exception is rethrown here, and the strategy remains usable.
  try {
    strategy.run([&](auto& replica) {
      if (replica.replica_id().index() == 1) throw std::runtime_error("out of cheese");
      static_cast<void>(replica.all_reduce(dist::sum, 1));
    });
    check(false, "the exception is rethrown");
  } catch (const dist::ReplicaError& error) {
    std::puts(error.what());
    check(error.replica() == 1, "the error names the replica");
  }
  check(strategy.reduce(dist::sum, strategy.run([](auto&) { return 1; })) == 3, "the strategy is usable afterwards");
}
