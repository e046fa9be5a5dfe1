#include <dist/nn/schedules/decays.hpp>

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

struct Checked {
  std::vector<int>* checks;
  void check() const { checks->push_back(1); }
  double operator()(std::int64_t step) const { return static_cast<double>(step); }
};
struct OfNothing {
  double operator()() const { return 1; }
};

}  // namespace

static_assert(nn::LearningRateSchedule<Checked>);
static_assert(nn::LearningRateSchedule<decltype([](std::int64_t step) { return 1.0F / static_cast<float>(step); })>);
static_assert(!nn::LearningRateSchedule<OfNothing> && !nn::LearningRateSchedule<float>);

TEST_CASE("check_if_can calls `check` only if a schedule has it") {
  std::vector<int> checks;
  nn::detail::check_if_can(Checked{&checks});
  nn::detail::check_if_can(OfNothing{});
  CHECK(checks.size() == 1);
}
