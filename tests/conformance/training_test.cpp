// The guide's CNN on Fashion-MNIST, under every strategy: the same losses for any number of replicas, and the same bits
// in every run.
// optimised
#include <doctest/doctest.h>

#include <conformance/cnn_training.hpp>
#include <dist/comm/memory/reduction_to_one_device.hpp>

namespace {

using namespace conformance::cnn;

using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

}  // namespace

TEST_CASE_TEMPLATE("losses of 1, 2 and 4 replicas agree at equal global batch (spec P01, P07, P24)", O, nn::SGD,
                   nn::Adam) {
  const Run expected = train(dist::Default{}, O{});
  CHECK(expected.losses.back() < 0.95f * expected.losses.front());
  check_same_losses(expected, train(dist::OneDevice<dist::Cpu>{}, O{}));
  check_same_losses(expected, train(Mirrored{1}, O{}));
  check_same_losses(expected, train(Mirrored{2}, O{}));
  check_same_losses(expected, train(Mirrored{4}, O{}));
  check_same_losses(expected, train(dist::Mirrored<dist::ReductionToOneDevice>{2}, O{}));
}

TEST_CASE("the same seed and replica count give the same bits") {
  const nn::Adam adam{};
  const Run first = train(Mirrored{2}, adam);
  CHECK(same_bits(first, train(Mirrored{2}, adam)));
  CHECK(first.losses.back() < first.losses.front());
  CHECK(same_bits(first, train(dist::Mirrored<dist::ReductionToOneDevice>{2}, adam)));  // also sums in rank order
}
