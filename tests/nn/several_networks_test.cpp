// Several networks in a step: one starts from the input gradient of another. For processes see multi_worker/.
#include <cstddef>
#include <vector>

#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/variable/partitioner.hpp>

#include "coordinator/served_job.hpp"
#include "nn/adversarial.hpp"

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

/// One step of a scheduled function.
struct ScheduledStep {
  float operator()(auto& replica, auto& generator, auto& critic, auto& of_generator, auto& of_critic, int step) const {
    const adversarial::Batch batch = adversarial::batch_of(step, 0, adversarial::rows);
    const auto loss = adversarial::take_step(replica, generator, critic, of_generator, of_critic,
                                             adversarial::phase_of(step), batch.x, batch.y);
    return static_cast<float>(loss.value());
  }
};

std::vector<float> expected() {
  dist::Default alone;
  return adversarial::train<nn::Reference>(alone);
}

}  // namespace

TEST_CASE("a generator and a critic train on any number of replicas to the parameters of one") {
  for (const std::size_t replicas : {1U, 2U, 3U, 12U}) {  // of 12 one has no rows
    CAPTURE(replicas);
    dist::Mirrored<dist::ThreadAllReduce> strategy{replicas};
    adversarial::check_same(adversarial::train<nn::Reference>(strategy), expected());
    adversarial::check_same(adversarial::train<nn::OneDnn>(strategy), expected());
  }
}

TEST_CASE("a generator and a critic train on replicas that share parameters") {
  dist::CentralStorage<dist::Cpu> strategy{2};
  adversarial::check_same(adversarial::train<nn::Reference>(strategy), expected());
}

TEST_CASE("a generator and a critic train on parameter servers to the bits of one replica") {
  dist_test::ServedJob<dist::Local> job(2, 1, {.partitioner = dist::FixedShards{2}});
  adversarial::Pair<nn::Reference, dist::ParameterServer<dist::Local>> pair{job.strategy()};
  for (int step = 0; step < adversarial::steps; ++step)
    job.coordinator().schedule(ScheduledStep{}, pair.generator, pair.critic, pair.of_generator, pair.of_critic, step);
  job.coordinator().join();
  CHECK(pair.values(job.strategy()) == expected());
}
