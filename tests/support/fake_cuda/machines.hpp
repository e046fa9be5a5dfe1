/// The machines on which a test of GPU code runs.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "machine.hpp"

namespace fake_cuda {

/// Returns every schedule on `devices` GPUs, with three random seeds.
[[nodiscard]] inline std::vector<Options> every_schedule(int devices = 1) {
  std::vector<Options> machines(5);
  for (Options& machine : machines) machine.devices = devices;
  machines[1].schedule = Schedule::lazy;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    machines[1 + seed].schedule = Schedule::random;
    machines[1 + seed].seed = seed;
  }
  return machines;
}

/// Returns 1, 2 and 4 GPUs in every schedule, or the machine of the environment if set.
[[nodiscard]] inline std::vector<Options> machines() {
  if (std::getenv("DIST_FAKE_CUDA") != nullptr) return {from_environment()};
  std::vector<Options> all;
  for (const int devices : {1, 2, 4})
    for (const Options& machine : every_schedule(devices)) all.push_back(machine);
  return all;
}

}  // namespace fake_cuda
