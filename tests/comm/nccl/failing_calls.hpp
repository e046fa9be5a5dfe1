// Helpers of tests in which NCCL calls fail: two GPUs, and the error that stops their replicas.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include <dist/comm/nccl/api.hpp>
#include <support/fake_cuda/machine.hpp>
#include <support/fake_nccl/machine.hpp>
#include <support/throw_cause_of.hpp>

namespace failing_calls {

struct Start {
  int polls = 0;  ///< how often an NCCL operation reports that it is in progress
  fake_cuda::Schedule schedule = fake_cuda::Schedule::eager;
  std::size_t memory = std::size_t{1} << 30;  ///< bytes of each GPU
};

/// Resets NCCL and two GPUs, which report a deadlock only after a wait of 20 seconds.
inline void start_gpus(const Start& start = {}) {
  fake_cuda::Options gpus;
  gpus.devices = 2;
  gpus.schedule = start.schedule;
  gpus.memory = start.memory;
  gpus.patience_ms = 20'000;
  fake_cuda::restart(gpus);
  fake_nccl::restart({.polls = start.polls});
}

/// Returns the error of any replica that stopped `use`.
template <class Use>
std::optional<dist::NcclError> failure_of(Use&& use) {
  try {
    support::throw_cause_of(std::forward<Use>(use));
  } catch (const dist::NcclError& error) {
    return error;
  }
  return std::nullopt;
}

inline bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace failing_calls
