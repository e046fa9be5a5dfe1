#include <dist/nn/overlapped_all_reduce.hpp>

#include <atomic>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>
#include <support/allocations.hpp>
#include <support/small_network.hpp>
#include <support/what_throws.hpp>

namespace nn = dist::nn;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

namespace {

using Batch = support::SmallBatch;
using Net = support::SmallNet;
using support::compute;
using support::what_throws;

static_assert(nn::ReducesInBackground<Mirrored>);
static_assert(!nn::ReducesInBackground<dist::Default>);

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// Returns how many gradients differ from the result of `all_reduce`.
template <class Architecture, class S>
std::size_t wrong_gradients(S& strategy, std::size_t bytes_per_pack, bool last_has_rows = true) {
  nn::Network<Architecture> net{strategy};
  nn::OverlappedAllReduce overlap{strategy, net, {.bytes_per_pack = bytes_per_pack}};
  std::atomic<std::size_t> wrong{0};
  for (std::size_t step = 0; step < 5; ++step)
    strategy.run([&](auto& replica) {
      const std::size_t id = replica.replica_id().index();
      const bool is_last = id + 1 == replica.num_replicas_in_sync();
      const Batch batch{last_has_rows || !is_last ? std::size_t{4} : std::size_t{0}, id + 10 * step};
      compute(replica, net, batch);
      const std::span<float> gradients = net.gradients().component(replica);
      std::vector<float> expected{gradients.begin(), gradients.end()};
      replica.all_reduce(dist::sum, std::span<float>{expected});
      compute(replica, net, batch, overlap.on_ready(replica));
      overlap.wait(replica);
      for (std::size_t i = 0; i < expected.size(); ++i) wrong += gradients[i] != expected[i];
    });
  return wrong;
}

}  // namespace

TEST_CASE("buckets are whole parameters, from the last to the first, until they are full (spec H12)") {
  Mirrored strategy{2};
  nn::Network<Net> net{strategy};
  const auto layout = net.layout();  // conv2d, dense and dense_1, kernel and bias each
  nn::OverlappedAllReduce one{strategy, net};
  REQUIRE(one.buckets().size() == 1);
  CHECK(one.buckets()[0] == dist::IndexRange{0, net.padded_count});
  nn::OverlappedAllReduce each{strategy, net, {.bytes_per_pack = 1}};
  REQUIRE(each.buckets().size() == 6);
  CHECK(each.buckets()[0] == dist::IndexRange{layout[5].offset, net.padded_count});
  CHECK(each.buckets()[5] == dist::IndexRange{0, layout[1].offset});
  // dense_1: bias 12 bytes, kernel 192, together more than 100; dense: 64, 4096; then the rest.
  nn::OverlappedAllReduce some{strategy, net, {.bytes_per_pack = 100}};
  REQUIRE(some.buckets().size() == 3);
  CHECK(some.buckets()[0] == dist::IndexRange{layout[4].offset, net.padded_count});
  CHECK(some.buckets()[1] == dist::IndexRange{layout[2].offset, layout[4].offset});
  CHECK(some.buckets()[2] == dist::IndexRange{0, layout[2].offset});

  dist::MirroredOptions options;
  options.replicas = 2;
  options.communication.bytes_per_pack = 1;
  Mirrored other{options};
  nn::Network<Net> its{other};
  CHECK(nn::OverlappedAllReduce{other, its}.buckets().size() == 6);  // the strategy's choice (spec H15)
}

TEST_CASE("after wait, gradients equal the sum over the replicas bit by bit") {
  for (std::size_t replicas = 1; replicas <= 5; ++replicas) {
    Mirrored strategy{replicas};
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{100}}) {
      CAPTURE(replicas);
      CAPTURE(bytes);
      CHECK(wrong_gradients<Net>(strategy, bytes) == 0);
    }
  }
  dist::Default alone;
  CHECK(wrong_gradients<Net>(alone, 1) == 0);
}

TEST_CASE("a replica without rows takes part, also if layers communicate (spec I05)") {
  Mirrored strategy{2};
  CHECK(wrong_gradients<Net>(strategy, 1, false) == 0);
  using Synchronised = nn::Sequential<nn::Input<6, 6, 1>, nn::Conv2D<4, 3>,
                                      nn::BatchNormalization<nn::SynchronizedStatistics>, nn::Flatten, nn::Dense<3>>;
  CHECK(wrong_gradients<Synchronised>(strategy, 1) == 0);
  CHECK(wrong_gradients<Synchronised>(strategy, 1, false) == 0);
}

TEST_CASE("training is the same with and without overlap (spec P08)") {
  const auto train = [](bool overlaps) {
    Mirrored strategy{2};
    nn::Network<Net> net{strategy, 3};
    nn::Optimizer optimizer{strategy, net, nn::Adam{}};
    nn::OverlappedAllReduce overlap{strategy, net, {.bytes_per_pack = 1}};
    for (std::size_t step = 0; step < 10; ++step)
      strategy.run([&](auto& replica) {
        const Batch batch{6, replica.replica_id().index() + 10 * step};
        if (overlaps) {
          compute(replica, net, batch, overlap.on_ready(replica));
          overlap.wait(replica);
          optimizer.apply_gradients(replica, nn::skip_aggregation);
        } else {
          compute(replica, net, batch);
          optimizer.apply_gradients(replica);
        }
      });
    const auto values = net.parameters().component(strategy.scope(), 1);
    return std::vector<float>(values.begin(), values.end());
  };
  const std::vector<float> with = train(true), without = train(false);
  for (std::size_t i = 0; i < with.size(); ++i) REQUIRE(with[i] == doctest::Approx(without[i]).epsilon(1e-6));
}

TEST_CASE("buckets are reduced while earlier layers still compute, as the trace shows") {
  Mirrored strategy{2};
  nn::Network<Net> net{strategy};
  dist::Trace trace;
  nn::OverlappedAllReduce overlap{strategy, net, {.bytes_per_pack = 1}, &trace};
  REQUIRE(overlap.overlaps());
  const auto background = strategy.background();
  strategy.run([&](auto& replica) {
    auto ready = overlap.on_ready(replica);
    bool is_first = true;
    compute(replica, net, Batch{4, 1}, [&](dist::IndexRange elements) {
      ready(elements);
      // The other layers compute until the buckets of the last one, bias and kernel, are reduced.
      if (is_first)
        while (background->done() < 2) std::this_thread::yield();
      is_first = false;
    });
    overlap.wait(replica);
  });
  std::int64_t end_of_backward = 0, first_reduction = 0;
  std::size_t reductions = 0, layers = 0, waits = 0;
  for (const dist::Trace::Event& event : trace.events()) {
    if (event.name() == "all_reduce of bucket" && reductions++ == 0) first_reduction = event.begin;
    layers += event.name().starts_with("backward of ");
    waits += event.name() == "wait for gradients";
    if (event.name() == "backward of conv2d") end_of_backward = event.end;
  }
  CHECK(reductions == 6);
  CHECK(layers == 2 * 3);
  CHECK(waits == 2);
  CHECK(first_reduction < end_of_backward);
  CHECK(trace.overlap("backward of dense", "all_reduce of bucket") > 0);
}

TEST_CASE("the step after a failed step is right") {
  Mirrored strategy{3};
  nn::Network<Net> net{strategy};
  nn::OverlappedAllReduce overlap{strategy, net, {.bytes_per_pack = 1}};
  for (std::size_t failing = 0; failing < 3; ++failing) {
    const auto step = [&](bool fails) {
      strategy.run([&](auto& replica) {
        const std::size_t id = replica.replica_id().index();
        const Batch batch{4, id};
        compute(replica, net, batch);
        const std::span<float> gradients = net.gradients().component(replica);
        std::vector<float> expected{gradients.begin(), gradients.end()};
        replica.all_reduce(dist::sum, std::span<float>{expected});
        auto ready = overlap.on_ready(replica);
        std::size_t calls = 0;
        compute(replica, net, batch, [&](dist::IndexRange elements) {
          ready(elements);
          if (fails && id == failing && ++calls == 2) throw std::runtime_error("a cosmic ray");
        });
        overlap.wait(replica);
        CHECK(std::equal(expected.begin(), expected.end(), gradients.begin()));
      });
    };
    step(false);
    const std::string message = what_throws([&] { step(true); });
    CAPTURE(message);
    CHECK(has(message, "a cosmic ray"));
    step(false);
    step(false);
  }
}

TEST_CASE("calls in the wrong order are rejected with advice") {
  Mirrored strategy{2};
  nn::Network<Net> net{strategy};
  nn::OverlappedAllReduce overlap{strategy, net, {.bytes_per_pack = 1}};
  const Batch batch{4, 0};
  CHECK(has(what_throws([&] { strategy.run([&](auto& replica) { overlap.wait(replica); }); }),
            "overlap.on_ready(replica)) before overlap.wait(replica)"));
  CHECK(has(what_throws([&] {
              strategy.run([&](auto& replica) {
                static_cast<void>(overlap.on_ready(replica));
                overlap.wait(replica);
              });
            }),
            "has no gradients in flight"));
  CHECK(has(what_throws([&] {
              strategy.run([&](auto& replica) {
                compute(replica, net, batch, overlap.on_ready(replica));
                compute(replica, net, batch, overlap.on_ready(replica));
              });
            }),
            "Call overlap.wait(replica) after each backward"));
  CHECK_THROWS_AS(strategy.run([&](auto&) { static_cast<void>(strategy.background()); }), dist::ReplicaError);
  strategy.run([&](auto& replica) {
    compute(replica, net, batch, overlap.on_ready(replica));
    overlap.wait(replica);
  });
}

TEST_CASE("a warm step does not allocate") {
  Mirrored strategy{2};
  nn::Network<Net> net{strategy};
  nn::Optimizer optimizer{strategy, net, nn::Adam{}};
  nn::OverlappedAllReduce overlap{strategy, net, {.bytes_per_pack = 1}};
  const Batch batch{4, 0};
  const auto step = [&] {
    strategy.run([&](auto& replica) {
      compute(replica, net, batch, overlap.on_ready(replica));
      overlap.wait(replica);
      optimizer.apply_gradients(replica, nn::skip_aggregation);
    });
  };
  for (int i = 0; i < 3; ++i) step();
  const std::size_t before = allocations;
  for (int i = 0; i < 10; ++i) step();
  CHECK(allocations == before);
}

TEST_CASE("two networks may alternate") {
  Mirrored strategy{2};
  nn::Network<Net> one{strategy, 1}, two{strategy, 2};
  nn::OverlappedAllReduce of_one{strategy, one, {.bytes_per_pack = 1}}, of_two{strategy, two, {.bytes_per_pack = 100}};
  strategy.run([&](auto& replica) {
    const Batch batch{4, replica.replica_id().index()};
    std::vector<std::vector<float>> expected;
    for (nn::Network<Net>* net : {&one, &two}) {
      compute(replica, *net, batch);
      const std::span<float> gradients = net->gradients().component(replica);
      expected.emplace_back(gradients.begin(), gradients.end());
      replica.all_reduce(dist::sum, std::span<float>{expected.back()});
    }
    compute(replica, one, batch, of_one.on_ready(replica));
    compute(replica, two, batch, of_two.on_ready(replica));
    of_two.wait(replica);
    of_one.wait(replica);
    const auto same = [&](nn::Network<Net>& net, const std::vector<float>& wanted) {
      const std::span<float> gradients = net.gradients().component(replica);
      return std::equal(wanted.begin(), wanted.end(), gradients.begin());
    };
    CHECK(same(one, expected[0]));
    CHECK(same(two, expected[1]));
  });
}
