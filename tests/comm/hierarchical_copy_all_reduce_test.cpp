#include <dist/comm/hierarchical_copy_all_reduce.hpp>

#include <doctest/doctest.h>
#include <conformance/cross_device_ops.hpp>

TEST_CASE_TEMPLATE_INSTANTIATE(cross_device_ops, dist::HierarchicalCopyAllReduce);

TEST_CASE("tensor after tensor of a step, whichever replicas combine them (spec H06)") {
  for (const std::size_t replicas : conformance::group_sizes) {
    CAPTURE(replicas);
    dist::Mirrored<dist::HierarchicalCopyAllReduce> strategy{replicas};
    const auto wrong = strategy.run([&](auto& replica) {
      std::size_t mistakes = 0;
      for (std::size_t tensor = 0; tensor < 2 * replicas + 1; ++tensor) {
        std::vector<double> values(10, static_cast<double>(replica.local_index() + tensor));
        replica.collectives().all_reduce(dist::sum, std::span<double>{values});
        const auto expected = static_cast<double>(replicas * (replicas - 1) / 2 + replicas * tensor);
        for (const double value : values) mistakes += value != expected;
      }
      return mistakes;
    });
    for (const std::size_t mistakes : wrong) CHECK(mistakes == 0);
  }
}
