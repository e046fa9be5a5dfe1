#pragma once

#include <cstddef>

#include <dist/comm/self.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/data/agreement.hpp>

namespace dist {

/// The workers of a strategy that has one process: nobody is to be agreed with, and the replicas of this process are all.
struct OneProcess {
  /// The collectives between its processes, of which there is one.
  using WorkerCollectives = SelfCollectives;
  /// Those of all replicas, where the replicas of a process have these.
  template <class OfProcess>
  using ReplicaCollectives = OfProcess;

  [[nodiscard]] static constexpr std::size_t size() noexcept { return 1; }
  [[nodiscard]] static constexpr std::size_t rank() noexcept { return 0; }
  [[nodiscard]] static constexpr WorkerCollectives between() noexcept { return {}; }
  /// What it keeps for that, beside the replicas: nothing.
  struct CollectiveState {
    constexpr CollectiveState(const OneProcess&, const auto&) noexcept {}
  };
  template <class OfProcess, class Queue>
  [[nodiscard]] static constexpr const OfProcess& join(const OfProcess& of_process, const Queue&,
                                                       const CollectiveState&) noexcept {
    return of_process;
  }
  /// The memory of variables, with a region on each of `devices`, as these replicas have it.
  template <class Memory, class Devices, class Replicas>
  [[nodiscard]] static std::shared_ptr<Memory> memory(const Devices& devices, const Replicas& replicas,
                                                      const CollectiveState&) {
    return replicas.template memory<Memory>(devices);
  }
  /// The options of its replicas, as they are given.
  template <class Options>
  [[nodiscard]] static const Options& adjusted(const Options& options) noexcept {
    return options;
  }
  /// How the end of the data is agreed on: the one process decides.
  [[nodiscard]] static data::NoAgreement agreement() noexcept { return {}; }
  template <class Background>
  [[nodiscard]] static std::shared_ptr<Background> make_background() {
    return std::make_shared<Background>(WorkerCollectives{});
  }
};

}  // namespace dist
