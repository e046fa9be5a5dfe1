// The suite of optimizers on GPUs.
// GPUs: 1 2 4
#include <dist/comm/cuda/direct_all_reduce.cuh>

#include <conformance/make_strategy.hpp>
#include <conformance/optimizer.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>

using Gpus = dist::Mirrored<dist::DirectAllReduce, dist::Cuda>;
template <std::size_t replicas>
using Make = conformance::Make<Gpus, replicas>;

TEST_CASE_TEMPLATE_INSTANTIATE(optimizers, conformance::Make<dist::OneDevice<dist::Cuda>>, Make<1>, Make<2>, Make<3>,
                               Make<4>, Make<8>);
