#include <dist/comm/neighbor_exchange.hpp>

#include <dist/dist.hpp>

#include <cstddef>
#include <vector>

#include <conformance/make_strategy.hpp>
#include <conformance/neighbor_exchange.hpp>

#include <doctest/doctest.h>

namespace {
using conformance::Make;
using Shared = dist::Mirrored<dist::SharedMemoryAllReduce>;
using Ring = dist::Mirrored<dist::RingAllReduce>;
using Central = dist::CentralStorage<dist::Cpu>;
}  // namespace

TEST_CASE_TEMPLATE_INSTANTIATE(neighbor_exchanges, Make<dist::Default>, Make<dist::OneDevice<dist::Cpu>>,
                               Make<Shared, 1>, Make<Shared, 2>, Make<Shared, 3>, Make<Shared, 4>, Make<Shared, 8>,
                               Make<Ring, 4>, Make<Central, 3>);

TEST_CASE("a replica that makes another call gets an error, as its neighbours do") {
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
