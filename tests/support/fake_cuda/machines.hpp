/// The machines on which a test of GPU code runs.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "machine.hpp"

namespace fake_cuda {

/// Every schedule on `devices` GPUs, three seeds among them.
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

/// 1, 2 and 4 GPUs in every schedule; where the environment names a machine, that one.
[[nodiscard]] inline std::vector<Options> machines() {
  if (std::getenv("DIST_FAKE_CUDA") != nullptr) return {from_environment()};
  std::vector<Options> all;
  for (const int devices : {1, 2, 4})
    for (const Options& machine : every_schedule(devices)) all.push_back(machine);
  return all;
}

}  // namespace fake_cuda
