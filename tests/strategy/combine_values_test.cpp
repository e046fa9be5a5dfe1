#include <dist/strategy/combine_values.hpp>

#include <doctest/doctest.h>
#include <conformance/strategy_methods.hpp>

#include <utility>

#include <dist/comm/memory/reduction_to_one_device.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/comm/self.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>

using conformance::Make;
using Shared = dist::Mirrored<dist::ThreadAllReduce>;
using ToOne = dist::Mirrored<dist::ReductionToOneDevice>;

TEST_CASE_TEMPLATE_INSTANTIATE(strategy_methods, Make<dist::Default>, Make<dist::OneDevice<dist::Cpu>>, Make<Shared, 1>,
                               Make<Shared, 2>, Make<Shared, 3>, Make<Shared, 4>, Make<Shared, 8>, Make<ToOne, 3>);

namespace {
/// A number that is available later.
struct Later {
  using Reduced = float;
  float number = 0;
  int* asked = nullptr;
  [[nodiscard]] float value() const {
    ++*asked;
    return number;
  }
};
}  // namespace

TEST_CASE("a stand-in for a number is read once, alone and in structures") {
  int asked = 0;
  dist::Mirrored<dist::ThreadAllReduce> strategy{3};
  const auto later = strategy.run([&](auto& replica) {
    const auto number = static_cast<float>(replica.replica_id().index() + 1);
    return std::pair{Later{number, &asked}, number};
  });
  CHECK(asked == 0);
  CHECK(strategy.reduce(dist::sum, later.first) == 6.0F);
  CHECK(asked == 3);
  const auto [all, mean] = strategy.reduce(dist::mean, later);
  CHECK(all == 2.0F);
  CHECK(mean == 2.0F);
  dist::Default one;
  CHECK(one.reduce(dist::sum, one.run([&](auto&) { return Later{5, &asked}; })) == 5.0F);
  CHECK(asked == 7);
}

TEST_CASE("16-bit numbers are combined in single precision") {
  const float large = 2048;  // 2049 rounds to 2048 in half precision
  const dist::PerReplica<dist::Float16> values(3, [&](std::size_t r) { return dist::Float16{r == 0 ? large : 1.0f}; });
  CHECK(static_cast<float>(dist::detail::reduce_values(dist::sum, values, 3, dist::SelfCollectives{})) == 2050);
}
