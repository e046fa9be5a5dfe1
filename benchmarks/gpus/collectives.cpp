// All-reduce of replicas on GPUs by size, in the format of nccl-tests, with the policies that do not need NCCL.
// Several replicas may share a GPU. For the options see --help.
#include <cstdio>
#include <string_view>

#include <dist/comm/cuda/policies.cuh>
#include <dist/device/cuda/device.cuh>
#include <dist/strategy/mirrored.hpp>

#include "../support/collective_options.hpp"
#include "../support/main.hpp"
#include "queued_collectives.hpp"

namespace {

constexpr std::string_view policies[] = {dist::DirectAllReduce::name, dist::ReductionToOneDevice::name,
                                         dist::HierarchicalCopyAllReduce::name};

template <class Ops>
int measure(const bench::CollectiveOptions& options) {
  return bench::measure_queued<dist::Mirrored<Ops, dist::Cuda>>(options);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::CollectiveOptions options = bench::parse_collective_options(argc, argv, policies);
  return bench::main_of([&] {
    if (options.policy == dist::DirectAllReduce::name) return measure<dist::DirectAllReduce>(options);
    if (options.policy == dist::ReductionToOneDevice::name) return measure<dist::ReductionToOneDevice>(options);
    if (options.policy == dist::HierarchicalCopyAllReduce::name)
      return measure<dist::HierarchicalCopyAllReduce>(options);
    std::fprintf(stderr, "Unknown policy '%s'. See %s --help\n", options.policy.c_str(), argv[0]);
    return 2;
  });
}
