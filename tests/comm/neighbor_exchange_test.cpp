#include <dist/comm/neighbor_exchange.hpp>

#include <dist/dist.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include <conformance/make_strategy.hpp>
#include <conformance/neighbor_exchange.hpp>
#include <support/guarded_device.hpp>

#include <doctest/doctest.h>

namespace {
using conformance::Make;
using Shared = dist::Mirrored<dist::ThreadAllReduce>;
using Ring = dist::Mirrored<dist::RingAllReduce>;
using Central = dist::CentralStorage<dist::Cpu>;
}  // namespace

TEST_CASE_TEMPLATE_INSTANTIATE(neighbor_exchanges, Make<dist::Default>, Make<dist::OneDevice<dist::Cpu>>,
                               Make<Shared, 1>, Make<Shared, 2>, Make<Shared, 3>, Make<Shared, 4>, Make<Shared, 8>,
                               Make<Ring, 4>, Make<Central, 3>);
TEST_CASE_TEMPLATE_INSTANTIATE(neighbor_exchanges_in_place, Make<dist::Default>, Make<dist::OneDevice<dist::Cpu>>,
                               Make<Shared, 1>, Make<Shared, 2>, Make<Shared, 3>, Make<Shared, 8>, Make<Ring, 4>,
                               Make<Central, 3>);

TEST_CASE("a different call throws on the replica and its neighbours") {
  Shared strategy{3};
  const auto said = strategy.run([](auto& replica) {
    return conformance::neighbors::error_of([&] {
      if (replica.replica_id().index() == 1)
        replica.barrier();
      else
        replica.neighbor_exchange({}, {});
    });
  });
  for (const std::string& text : said) {
    CHECK(text.find("CollectiveMismatch: ") == 0);
    CHECK(text.find("neighbor_exchange") != std::string::npos);
  }
}

TEST_CASE("replicas on the host reject device memory") {
  testing::GuardedDevice::Memory memory{std::array<std::size_t, 1>{0}};
  const std::size_t bytes = 2 * sizeof(double);
  const testing::GuardedDevice::Span<double> elsewhere{reinterpret_cast<double*>(memory.at(0, memory.allocate(bytes))),
                                                       2};
  const auto refused = [&](auto& strategy) {
    const auto said = strategy.run([&](auto& replica) {
      try {
        replica.neighbor_exchange({{0, elsewhere}}, {});
      } catch (const dist::InvalidArgument& error) {
        return std::string{error.what()};
      }
      return std::string{"no error"};
    });
    for (const std::string& text : strategy.local_results(said)) {
      CAPTURE(text);
      CHECK(text.find("neighbor_exchange was given device memory") != std::string::npos);
    }
  };
  dist::Default alone;
  refused(alone);
  Shared several{2};
  refused(several);
}
