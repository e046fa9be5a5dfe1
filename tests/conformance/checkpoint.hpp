// Checkpoints: every strategy restores what another one saved. A strategy joins in a test file with one line:
//   TEST_CASE_TEMPLATE_INSTANTIATE(checkpoint, conformance::Make<dist::TheStrategy, replicas>, …);
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <conformance/make_strategy.hpp>
#include <conformance/tracked_training.hpp>
#include <conformance/variable_whole.hpp>
#include <dist/checkpoint/checkpoint.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/data/dataset.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/mean_of.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/variable/generator.hpp>

#include <doctest/doctest.h>
#include <support/saved.hpp>
#include <support/temporary_folder.hpp>

namespace conformance {

/// Calls `check(strategy)` with a strategy of every kind and several numbers of replicas.
template <class Check>
void for_each_restorer(Check&& check) {
  dist::Default plain;
  check(plain);
  for (std::size_t replicas = 1; replicas <= 4; ++replicas) {
    CAPTURE(replicas);
    dist::Mirrored<dist::ThreadAllReduce> mirrored{replicas};
    check(mirrored);
  }
  for (const std::size_t replicas : {1U, 3U}) {
    CAPTURE(replicas);
    dist::CentralStorage<dist::Cpu> central{replicas};
    check(central);
  }
}

/// A variable of each kind of type, and of every synchronization and aggregation.
template <class S>
class AllKinds {
 public:
  AllKinds(S& strategy, const dist::Shape& shape) {
    for_each_kind(FewTypes{}, [&]<class T, class Sync, class Agg>() {
      using Variable = decltype(strategy.template variable<T, Sync, Agg>(shape));
      all_.push_back(std::make_shared<Variable>(strategy.template variable<T, Sync, Agg>(shape)));
    });
  }
  /// Calls `see(variable)` for each variable.
  template <class See>
  void each(See&& see) {
    visit_each([&]<class T, class Sync, class Agg>(auto& variable) { see(variable); });
  }
  void track(auto& visit) {
    visit_each([&]<class T, class Sync, class Agg>(auto& variable) {
      visit(dist::concat(dist::dtype_name<T>, "/", Sync::name, "/", Agg::name), variable);
    });
  }

 private:
  template <class See>
  void visit_each(See&& see) {
    std::size_t next = 0;
    for_each_kind(FewTypes{}, [&]<class T, class Sync, class Agg>() {
      using Variable = decltype(std::declval<S&>().template variable<T, Sync, Agg>(dist::Shape{}));
      see.template operator()<T, Sync, Agg>(*static_cast<Variable*>(all_[next++].get()));
    });
  }

  std::vector<std::shared_ptr<void>> all_;  // in the order of for_each_kind
};

/// The state of a program other than its model.
template <class S>
struct Rest {
  explicit Rest(S& strategy, std::uint64_t seed) : random(strategy, seed), mean(strategy, dist::nn::MeanValue{}) {}

  void track(auto& visit) {
    visit("random", random);
    visit("mean", mean);
    visit("position", position);
    visit("epoch", epoch);
    visit("best", best);
    visit("stopped", stopped);
  }

  dist::Generator<S> random;
  dist::nn::Metric<S, dist::nn::MeanValue> mean;
  dist::data::Position position;
  std::int64_t epoch = 0;
  double best = 0;
  bool stopped = false;
};

template <class S>
void check_checkpoint(std::unique_ptr<S> (*make)()) {
  const auto made = make();
  S& strategy = *made;
  const support::TemporaryFolder folder;
  const std::string path = folder.path("saved");
  const auto save = [&](auto& part) {
    dist::Checkpoint checkpoint{strategy};
    checkpoint.add("part", part).save(path);
  };
  const auto restore = [&](auto& other, auto& part) {
    dist::Checkpoint checkpoint{other};
    checkpoint.add("part", part).restore(path);
    CHECK(checkpoint.unrestored().empty());
  };

  SUBCASE("variables of every kind; those without aggregation are saved with replica 0's values (spec N01, N02, N06)") {
    for (const dist::Shape& shape : {dist::Shape{}, dist::Shape{3, 5}, dist::Shape{700}}) {
      AllKinds<S> kinds{strategy, shape};
      int seed = 0;
      kinds.each([&](auto& variable) {
        using T = typename std::remove_reference_t<decltype(variable)>::Element;
        variable.restore(strategy.scope(), uneven<T>(shape, ++seed));
      });
      save(kinds);
      for_each_restorer([&](auto& other) {
        AllKinds<std::remove_reference_t<decltype(other)>> restored{other, shape};
        restore(other, restored);
        int expected = 0;
        restored.each([&](auto& variable) {
          using T = typename std::remove_reference_t<decltype(variable)>::Element;
          CHECK(same_elements(variable.whole(other.scope()), uneven<T>(shape, ++expected)));
        });
      });
    }
  }
  SUBCASE("replicas with different values continue as the table specifies (spec N03, N04, N05)") {
    using namespace dist;
    const auto ids = [](auto& replica) { return static_cast<double>(replica.replica_id().index() + 1); };
    auto total = strategy.template variable<double, OnRead, Sum>({2});
    auto mean = strategy.template variable<double, OnRead, Mean>({2});
    auto first = strategy.template variable<double, OnRead, OnlyFirstReplica>({2});
    const auto replicas = static_cast<double>(strategy.num_replicas_in_sync());
    const bool shared = S::Store::shared;
    strategy.run([&](auto& replica) {
      total.assign_add(replica, ids(replica));
      if (!shared) mean.assign(replica, ids(replica));
      if (!shared) first.assign(replica, ids(replica));
    });
    Checkpoint checkpoint{strategy};
    checkpoint.add("total", total).add("mean", mean).add("first", first).save(path);
    for_each_restorer([&](auto& other) {
      auto total_again = other.template variable<double, OnRead, Sum>({2});
      auto mean_again = other.template variable<double, OnRead, Mean>({2});
      auto first_again = other.template variable<double, OnRead, OnlyFirstReplica>({2});
      Checkpoint restoring{other};
      restoring.add("total", total_again).add("mean", mean_again).add("first", first_again).restore(path);
      // 1 + 2 + … + R, its mean, and replica 0's value.
      CHECK(total_again.read(other.scope())[1] == replicas * (replicas + 1) / 2);
      CHECK(mean_again.read(other.scope())[0] == (shared ? 0.0 : (replicas + 1) / 2));
      CHECK(first_again.read(other.scope())[1] == (shared ? 0.0 : 1.0));
      for (std::size_t local = 0; local < other.num_local_replicas(); ++local) {
        CHECK(support::component_on_host(mean_again, other.scope(), local)[0] == (shared ? 0.0 : (replicas + 1) / 2));
        CHECK(support::component_on_host(first_again, other.scope(), local)[0] == (shared ? 0.0 : 1.0));
      }
      other.run([&](auto& replica) { total_again.assign_add(replica, 1.0); });
      CHECK(total_again.read(other.scope())[0] ==
            replicas * (replicas + 1) / 2 + static_cast<double>(other.num_replicas_in_sync()));
    });
  }
  SUBCASE("generators, metrics, positions in a dataset (spec N17) and numbers of the program") {
    Rest<S> rest{strategy, 42};
    strategy.run([&](auto& replica) {
      for (int draw = 0; draw < 5; ++draw) static_cast<void>(rest.random.uniform(replica));
      rest.mean.update(replica, 3.0);
    });
    rest.position = {.epoch = 4, .elements = 1000};
    rest.epoch = -(std::int64_t{1} << 60);
    rest.best = 0.1;
    rest.stopped = true;
    save(rest);
    const auto states = rest.random.whole(strategy.scope());
    for_each_restorer([&](auto& other) {
      Rest<std::remove_reference_t<decltype(other)>> restored{other, 7};
      restore(other, restored);
      const auto again = restored.random.whole(other.scope());
      const std::size_t rows = std::min(states.rows(), again.rows());
      CHECK(std::equal(states.data(), states.data() + 3 * rows, again.data()));
      CHECK(restored.mean.result(other.scope()) == 3.0);
      CHECK(restored.position.epoch == 4);
      CHECK(restored.position.elements == 1000);
      CHECK(restored.epoch == -(std::int64_t{1} << 60));
      CHECK(restored.best == 0.1);
      CHECK(restored.stopped);
    });
  }
  SUBCASE("training continues as if it had not stopped") {
    using Training = TrackedTraining<S, dist::nn::Adam>;
    Training training{strategy, dist::nn::Adam{}};
    training.train(4);
    save(training);
    const support::Saved kept{strategy, training};
    training.train(3);
    const support::Saved expected{strategy, training};
    for_each_restorer([&](auto& other) {
      using Other = std::remove_reference_t<decltype(other)>;
      TrackedTraining<Other, dist::nn::Adam> restored{other, dist::nn::Adam{}, 2};
      restore(other, restored);
      CHECK(support::Saved{other, restored} == kept);
      restored.train(3);
      const support::Saved trained{other, restored};
      if (std::is_same_v<Other, S> && other.num_replicas_in_sync() == strategy.num_replicas_in_sync())
        CHECK(trained == expected);
      for (const std::string& key : kept.keys())
        if (key == "network/dense/kernel" || key == "network/batch_normalization/moving_mean" ||
            key.starts_with("optimizer/velocity/"))
          CHECK(difference(trained, expected, key) < 1e-9);
    });
  }
}

}  // namespace conformance

TEST_CASE_TEMPLATE_DEFINE("every strategy restores what another one saved (spec N07)", Maker, checkpoint) {
  conformance::check_checkpoint(&Maker::make);
}
