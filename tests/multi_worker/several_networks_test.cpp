// A generator and a critic that train against each other in several processes.
// ranks: 1 2 4
#include <dist/multi_worker.hpp>

#include <cstddef>

#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/strategy/default.hpp>

#include "nn/adversarial.hpp"

#include <doctest/doctest.h>

namespace nn = dist::nn;

TEST_CASE("a generator and a critic train on any number of workers to the parameters of one replica") {
  dist::Default alone;
  const auto expected = adversarial::train<nn::Reference>(alone);
  for (const std::size_t replicas : {1U, 2U}) {
    CAPTURE(replicas);
    dist::MultiWorker<dist::MpiAllReduce> strategy{{.replicas = replicas}};
    adversarial::check_same(adversarial::train<nn::Reference>(strategy), expected);
  }
}
