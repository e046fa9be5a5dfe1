#include <dist/nn/optimizer_slots.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <dist/dist.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <support/saved.hpp>

namespace nn = dist::nn;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;
using Slots = nn::OptimizerSlots<Mirrored, float>;

namespace {

constexpr std::array<std::string_view, 2> names{"momentum", "velocity"};
constexpr std::size_t count = 70;

/// A variable whose size determines the size of slots.
struct Parameters {
  [[nodiscard]] static std::size_t size() { return count; }
};

}  // namespace

TEST_CASE("slots have names, and the update of a functor has their memory") {
  Mirrored strategy{2};
  const Slots slots{strategy, "Adam", names, Parameters{}};
  REQUIRE(slots.all().size() == 2);
  CHECK(slots.all()[0].name() == "Adam/momentum");
  CHECK(&slots.named("velocity") == &slots.all()[1]);
  CHECK_THROWS_WITH_AS(slots.named("speed"),
                       "Optimizer Adam has no slot 'speed' (it has Adam/momentum, Adam/velocity). Use the part after "
                       "Adam/ of one of these names.",
                       dist::InvalidArgument);
  strategy.run([&](auto& replica) {
    const auto update = slots.update(replica, nn::Adam::Update<float, false>{0.1f, 0.1f, 0.1f, 1e-7f});
    for (std::size_t k = 0; k < 2; ++k) CHECK(update.slots[k] == slots.all()[k].component(replica).data());
  });
}

TEST_CASE("with several replicas, steps with and without aggregation cannot be mixed") {
  for (const bool aggregates : {true, false}) {
    Mirrored strategy{2};
    const Slots slots{strategy, "Adam", names, Parameters{}};
    CHECK(!slots.whole_on_each(strategy.scope()));
    strategy.run([&](auto& replica) {
      slots.require_kind(replica, aggregates);
      slots.require_kind(replica, aggregates);
      CHECK_THROWS_AS(slots.require_kind(replica, !aggregates), dist::InvalidArgument);
    });
    CHECK(slots.whole_on_each(strategy.scope()) == !aggregates);
  }
  Mirrored alone{1};
  const Slots of_one{alone, "Adam", names, Parameters{}};
  Mirrored strategy{2};
  const Slots none{strategy, "SGD", nn::SGD::Plain<float>::slots, Parameters{}};
  for (const bool aggregates : {true, false}) {
    alone.run([&](auto& replica) { of_one.require_kind(replica, aggregates); });
    strategy.run([&](auto& replica) { none.require_kind(replica, aggregates); });
  }
}

TEST_CASE("assign writes elements to their owner, or to all replicas") {
  std::vector<float> given(40);
  for (std::size_t i = 0; i < given.size(); ++i) given[i] = static_cast<float>(i + 1);
  for (const bool aggregates : {true, false}) {
    Mirrored strategy{2};
    const Slots slots{strategy, "Adam", names, Parameters{}};
    const auto& slot = slots.named("momentum");
    for (std::size_t local = 0; local < 2; ++local)
      for (float& value : slot.component(strategy.scope(), local)) value = 100;
    strategy.run([&](auto& replica) { slots.require_kind(replica, aggregates); });
    slots.assign(strategy.scope(), slot, {20, 60}, std::span<const float>{given});
    for (std::size_t i = 0; i < count; ++i) {
      const float first = slot.component(strategy.scope(), 0)[i];
      const float second = slot.component(strategy.scope(), 1)[i];
      if (i < 20 || i >= 60) {
        CHECK(first == 100);
        CHECK(second == 100);
      } else if (aggregates) {
        // The owner has it, and the other replica's memory has not changed.
        CHECK(first + second == given[i - 20] + 100);
        CHECK((first == 100 || second == 100));
        CHECK(slots.whole(strategy.scope(), slot)[i] == given[i - 20]);
      } else {
        CHECK(first == given[i - 20]);
        CHECK(second == first);
      }
    }
  }
}

TEST_CASE("slots are tracked by the names of their functor, and restored to the current owners") {
  std::vector<float> given(count);
  for (std::size_t i = 0; i < count; ++i) given[i] = static_cast<float>(i + 1);
  for (const bool aggregates : {true, false}) {
    Mirrored three{3};
    Slots slots{three, "Adam", names, Parameters{}};
    three.run([&](auto& replica) { slots.require_kind(replica, aggregates); });
    slots.assign(three.scope(), slots.named("velocity"), {0, count}, std::span<const float>{given});
    const support::Saved saved{three, slots};
    CHECK(saved.keys() == std::vector<std::string>{"kind", "momentum", "velocity"});
    for (std::size_t replicas = 1; replicas <= 4; ++replicas) {
      Mirrored strategy{replicas};
      Slots restored{strategy, "Adam", names, Parameters{}};
      saved.restore(strategy, restored);
      CHECK(support::Saved{strategy, restored} == saved);
      std::size_t kept = 0;
      for (std::size_t local = 0; local < replicas; ++local)
        for (const float value : restored.named("velocity").component(strategy.scope(), local)) kept += value != 0;
      CHECK(kept == (aggregates ? count : replicas * count));
      if (replicas > 1)
        strategy.run([&](auto& replica) {
          CHECK_THROWS_AS(restored.require_kind(replica, !aggregates), dist::InvalidArgument);
        });
    }
  }
}

TEST_CASE("slots of one replica fit both kinds of steps, whole on every replica") {
  std::vector<float> given(count, 3);
  Mirrored alone{1};
  Slots slots{alone, "Adam", names, Parameters{}};
  alone.run([&](auto& replica) { slots.require_kind(replica, true); });
  slots.assign(alone.scope(), slots.named("momentum"), {0, count}, std::span<const float>{given});
  const support::Saved saved{alone, slots};
  Mirrored strategy{2};
  Slots restored{strategy, "Adam", names, Parameters{}};
  saved.restore(strategy, restored);
  for (std::size_t local = 0; local < 2; ++local)
    CHECK(restored.named("momentum").component(strategy.scope(), local)[7] == 3);
}
