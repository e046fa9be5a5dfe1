#pragma once

#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/comm/communicator.hpp>
#include <dist/comm/cross_device_ops.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/trace.hpp>
#include <dist/device/device.hpp>
#include <dist/device/profiler_range.hpp>
#include <dist/strategy/shared_copy_order.hpp>

namespace dist {

/// Runs steps so that what all replicas put on their queues in one is a graph, which is launched once: for steps of many
/// short kernels. The threads of several replicas can take longer to capture their step than to launch it
/// (benchmarks/README.md).
///
///   dist::StepGraph graph{strategy};
///   for (auto& batch : batches) graph.run(step, batch);
///
/// Every call of `run` calls the replica function, as `strategy.run` does, and returns what that returns: what it works out
/// on the host, such as an optimizer's count of steps and the rate that follows from it, is an argument of its kernels.
/// The graph is captured anew each time; where the operations are the same ones as before, it only gets the new
/// arguments. What is put on queues between steps keeps its place.
///
/// A step allocates nothing and waits for nothing on a device, or throws NotCapturable, in a ReplicaError where replicas
/// are threads; nothing of it is done on the devices then. What makes memory in its first call, such as policies that
/// combine values in memory of their own, is called by `strategy.run` once before. While a step is captured, no other
/// thread of the process allocates memory of GPUs, or asks whether a GPU has done something.
///
/// The strategy outlives it. On devices that are the host, `run` is that of the strategy.
template <Strategy S>
class StepGraph {
  using Device = typename S::Device;
  static constexpr bool is_captured = !Device::Space::host_accessible;
  static_assert(!is_captured || CapturesWork<Device>, "these devices put no work into graphs: use strategy.run");
  static constexpr bool follows_events =
      !is_captured || CollectivesOfOne<typename S::Collectives> || OrdersQueues<typename S::Collectives>;
  static_assert(follows_events,
                "a step is one graph where the queues of its replicas follow each other by events, which is how "
                "DirectAllReduce, ReductionToOneDevice and HierarchicalCopyAllReduce reduce: use one of these, or "
                "strategy.run");

 public:
  explicit StepGraph(S& strategy) : strategy_(&strategy) {
    if constexpr (is_captured) {
      std::vector<typename Device::Queue> queues;
      for (std::size_t replica = 0; replica < strategy.num_local_replicas(); ++replica)
        queues.push_back(strategy.queues()[replica]);
      captured_.emplace(strategy.queues(), std::move(queues));
    }
  }

  /// As `strategy.run`. Throws WrongStrategy inside a replica function.
  template <class Fn, class... Args>
  decltype(auto) run(Fn&& fn, Args&&... args) {
    if constexpr (!is_captured) {
      return strategy_->run(fn, args...);
    } else {
      static_cast<void>(strategy_->scope());  // refused inside replica functions
      captured_->order.follow();              // the graph comes after what all queues have
      typename Device::Graph::Capture capture{captured_->graph};
      captured_->order.lead();
      if constexpr (std::is_void_v<decltype(strategy_->run(fn, args...))>) {
        strategy_->run(fn, args...);
        launch(capture);
      } else {
        auto results = strategy_->run(fn, args...);
        launch(capture);
        return results;
      }
    }
  }

  /// How often the steps had other operations than the step before. 0 where there are no graphs.
  [[nodiscard]] std::size_t instantiations() const noexcept {
    if constexpr (is_captured)
      return captured_->graph.instantiations();
    else
      return 0;
  }

 private:
  struct Nothing {};
  template <class D>
  struct Captured {
    detail::SharedCopyOrder<D> order;
    typename D::Graph graph;
    Captured(const typename D::Queues& queues, std::vector<typename D::Queue> all)
        : order(queues, all.size()), graph(std::move(all)) {}
  };
  template <class D, bool>
  struct CapturedOn {
    using Type = std::optional<Captured<D>>;
  };
  template <class D>
  struct CapturedOn<D, false> {
    using Type = Nothing;
  };

  template <class Capture>
  void launch(Capture& capture) {
    captured_->order.follow();
    capture.end();
    {
      const typename Device::Queue queue = strategy_->queues()[0];
      const ProfilerRange<typename Device::Queue> queued{detail::traced("graph"), queue};
      captured_->graph.launch();
    }
    captured_->order.lead();  // what follows on any queue comes after the graph
  }

  S* strategy_;
  [[no_unique_address]] typename CapturedOn<Device, is_captured>::Type captured_;
};

}  // namespace dist
