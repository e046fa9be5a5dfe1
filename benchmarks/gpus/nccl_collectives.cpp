// All-reduce with NcclAllReduce by size, in the format of nccl-tests, with one replica per GPU. For the options see
// --help.
#include <cstdio>
#include <string_view>

#include <dist/comm/nccl/nccl_all_reduce.cuh>
#include <dist/strategy/mirrored.hpp>

#include "../support/collective_options.hpp"
#include "../support/main.hpp"
#include "queued_collectives.hpp"

int main(int argc, char** argv) {
  static constexpr std::string_view policies[] = {dist::NcclAllReduce::name};
  const bench::CollectiveOptions options = bench::parse_collective_options(argc, argv, policies);
  return bench::main_of([&] {
    if (options.policy == dist::NcclAllReduce::name)
      return bench::measure_queued<dist::Mirrored<dist::NcclAllReduce>>(options);
    std::fprintf(stderr, "Unknown policy '%s'. See %s --help\n", options.policy.c_str(), argv[0]);
    return 2;
  });
}
