#pragma once

#include <dist/cluster/lone_process.hpp>

namespace dist::detail {

DIST_INLINE StartedProcesses started_processes() noexcept {
  const auto said = [](const char* size, const char* rank) {
    const char* const number = std::getenv(rank);
    return StartedProcesses{size, std::strtoull(std::getenv(size), nullptr, 10),
                            number == nullptr || std::string_view{number} == "0"};
  };
  const auto has = [](const char* name) { return std::getenv(name) != nullptr; };
  if (has("OMPI_COMM_WORLD_SIZE")) return said("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK");
  if (has("PMI_SIZE")) return said("PMI_SIZE", "PMI_RANK");
  if (has("SLURM_STEP_ID") && has("SLURM_STEP_NUM_TASKS")) return said("SLURM_STEP_NUM_TASKS", "SLURM_PROCID");
  if (has("WORLD_SIZE") && has("RANK")) return said("WORLD_SIZE", "RANK");
  return {};
}

DIST_INLINE void warn_of_lone_process() {
  static std::atomic<bool> looked{false};
  if (looked.load(std::memory_order_relaxed) || looked.exchange(true, std::memory_order_relaxed)) return;
  if (has_joined_others.load(std::memory_order_relaxed)) return;
  const StartedProcesses started = started_processes();
  if (started.count > 1 && started.is_first)
    lone_process.emit(
        concat("a launcher started ", started.count, " processes (", started.variable, "), and each uses a ",
               "strategy of one process: they do not train together. Use MultiWorker, or start one process. "
               "DIST_WARNINGS=0 silences this."));
}

}  // namespace dist::detail
