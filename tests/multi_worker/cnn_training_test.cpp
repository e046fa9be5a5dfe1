// ranks: 1 2 4
// optimised
#include <dist/multi_worker.hpp>

#include <doctest/doctest.h>

#include <conformance/cnn_training.hpp>
#include <dist/comm/ring_all_reduce.hpp>

using namespace conformance::cnn;
using Workers = dist::MultiWorker<dist::RingAllReduce>;

TEST_CASE("losses of several workers equal the losses of one replica at equal global batch (spec P01, P07, P24)") {
  const nn::Adam adam{};
  const Run expected = train(dist::Default{}, adam);
  CHECK(expected.losses.back() < 0.95f * expected.losses.front());
  check_same_losses(expected, train(Workers{1}, adam));
  const Run two_each = train(Workers{2}, adam);
  check_same_losses(expected, two_each);
  CHECK(same_bits(two_each, train(Workers{2}, adam)));
}
