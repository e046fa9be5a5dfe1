#pragma once

#include <cstddef>

#include <dist/comm/self.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/data/agreement.hpp>

namespace dist {

/// The workers of a single-process strategy, whose replicas are all in this process.
struct OneProcess {
  using WorkerCollectives = SelfCollectives;
  /// The collectives between all replicas, all in this process.
  template <class OfProcess>
  using ReplicaCollectives = OfProcess;

  [[nodiscard]] static constexpr std::size_t size() noexcept { return 1; }
  [[nodiscard]] static constexpr std::size_t rank() noexcept { return 0; }
  [[nodiscard]] static constexpr WorkerCollectives between() noexcept { return {}; }
  /// The empty state of its collectives.
  struct CollectiveState {
    /// Nothing to connect.
    constexpr CollectiveState(const OneProcess&, const auto&) noexcept {}
  };
  template <class OfProcess, class Queue>
  [[nodiscard]] static constexpr const OfProcess& join(const OfProcess& of_process, const Queue&,
                                                       const CollectiveState&) noexcept {
    return of_process;
  }
  /// Memory with a region on each of `devices`, allocated by the replicas.
  template <class Memory, class Devices, class Replicas>
  [[nodiscard]] static std::shared_ptr<Memory> memory(const Devices& devices, const Replicas& replicas,
                                                      const CollectiveState&) {
    return replicas.template memory<Memory>(devices);
  }
  template <class Options>
  [[nodiscard]] static const Options& adjusted(const Options& options) noexcept {
    return options;
  }
  /// The one process decides about the end of its data.
  [[nodiscard]] static data::NoAgreement agreement() noexcept { return {}; }
  template <class Background>
  [[nodiscard]] static std::shared_ptr<Background> make_background() {
    return std::make_shared<Background>(WorkerCollectives{});
  }
};

}  // namespace dist
