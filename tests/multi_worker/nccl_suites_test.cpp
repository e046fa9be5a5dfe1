// Suites of all strategies and optimizers on workers with one replica and reduction by NCCL, also on hardware, where
// the workers share the GPUs of one machine.
// ranks: 1 2 3 4
// ranks on GPUs: 1 2 3
#include <dist/multi_worker.hpp>

#include <cstdlib>

#include <doctest/doctest.h>

#include <conformance/make_strategy.hpp>
#include <conformance/neighbor_exchange.hpp>
#include <conformance/optimizer.hpp>
#include <conformance/strategy.hpp>
#include <dist/comm/nccl/nccl_all_reduce.cuh>
#include <support/needs_gpu.hpp>

using conformance::Make;
using Workers = dist::MultiWorker<dist::NcclAllReduce>;

namespace {
[[maybe_unused]] const bool machine_is_named = setenv("DIST_FAKE_CUDA", "8 eager", 0) == 0;
[[maybe_unused]] const testing::NeedsGpu gpu_is_there;
}  // namespace

TEST_CASE_TEMPLATE_INSTANTIATE(strategies, Make<Workers, 1>);
TEST_CASE_TEMPLATE_INSTANTIATE(optimizers, Make<Workers, 1>);
TEST_CASE_TEMPLATE_INSTANTIATE(neighbor_exchanges, Make<Workers, 1>);
TEST_CASE_TEMPLATE_INSTANTIATE(neighbor_exchanges_in_place, Make<Workers, 1>);
