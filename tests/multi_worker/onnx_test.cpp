// ranks: 1 2
#include <dist/multi_worker.hpp>

#include <doctest/doctest.h>

#include <dist/comm/ring_all_reduce.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/onnx/export_onnx.hpp>
#include <support/temporary_folder.hpp>

namespace nn = dist::nn;

TEST_CASE("export writes one file, on the first process") {
  const support::TemporaryFolder folder;
  dist::MultiWorker<dist::RingAllReduce> strategy{2};
  nn::Network<nn::Sequential<nn::Input<3>, nn::Dense<2>>> network{strategy};
  nn::export_onnx(strategy, network, folder.path("model.onnx"));
  CHECK(folder.names().size() == (strategy.first_local_replica() == 0 ? 1 : 0));
}
