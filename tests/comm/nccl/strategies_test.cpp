// Runs the suites of strategies, optimizers and neighbor exchanges with NCCL between GPUs.
// replicas on separate GPUs: 1 2 3 4
#include <dist/comm/nccl/nccl_all_reduce.cuh>
#include <dist/strategy/mirrored.hpp>

#include <conformance/make_strategy.hpp>
#include <conformance/neighbor_exchange.hpp>
#include <conformance/optimizer.hpp>
#include <conformance/strategy.hpp>

using Make = conformance::MakeOfEnvironment<dist::Mirrored<dist::NcclAllReduce>>;

TEST_CASE_TEMPLATE_INSTANTIATE(strategies, Make);
TEST_CASE_TEMPLATE_INSTANTIATE(optimizers, Make);
TEST_CASE_TEMPLATE_INSTANTIATE(neighbor_exchanges, Make);
TEST_CASE_TEMPLATE_INSTANTIATE(neighbor_exchanges_in_place, Make);
