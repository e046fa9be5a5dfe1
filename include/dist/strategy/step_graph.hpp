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
#include <dist/device/queue_scopes.hpp>
#include <dist/strategy/shared_copy_order.hpp>

namespace dist {

/// Runs steps as graphs: the work that replicas enqueue in a step is captured, and launched once per step. For steps
/// with many short kernels. With several replicas, capturing can take longer than launching (benchmarks/README.md).
///
///   dist::StepGraph graph{strategy};
///   for (auto& batch : batches) graph.run(step, batch);
///
/// Every `run` calls the replica function, like `strategy.run`, and returns its result. Values from the host, such as
/// an optimizer's step count and learning rate, are arguments of its kernels. The graph is captured at every call; if
/// its operations are unchanged, only its arguments are updated. Work enqueued between steps keeps its order.
///
/// A step must not allocate device memory or wait for a device; otherwise it throws NotCapturable, within a
/// ReplicaError if replicas are threads, and does no work. If its first call allocates memory, as some policies do,
/// call `strategy.run` once before. During capture, other threads must not allocate GPU memory or query a GPU.
///
/// The strategy must outlive it. On the host, `run` is `strategy.run`.
template <Strategy S>
class StepGraph {
  using Device = typename S::Device;
  static constexpr bool is_captured = !Device::Space::host_accessible;
  static_assert(!is_captured || CapturesWork<Device>, "these devices do not support graphs: use strategy.run");
  static constexpr bool follows_events =
      !is_captured || CollectivesOfOne<typename S::Collectives> || OrdersQueues<typename S::Collectives>;
  static_assert(follows_events,
                "a step can be one graph only if events order the queues of its replicas, as in DirectAllReduce, "
                "ReductionToOneDevice and HierarchicalCopyAllReduce: use one of these, or strategy.run");

 public:
  /// Prepares graphs for the replicas of `strategy`.
  explicit StepGraph(S& strategy) : strategy_(&strategy) {
    if constexpr (is_captured) {
      std::vector<typename Device::Queue> queues;
      for (std::size_t replica = 0; replica < strategy.num_local_replicas(); ++replica)
        queues.push_back(strategy.queues()[replica]);
      captured_.emplace(strategy.queues(), std::move(queues));
    }
  }

  /// Throws WrongStrategy inside a replica function.
  template <class Fn, class... Args>
  decltype(auto) run(Fn&& fn, Args&&... args) {
    if constexpr (!is_captured) {
      return strategy_->run(fn, args...);
    } else {
      static_cast<void>(strategy_->scope());  // throws inside replica functions
      captured_->order.follow();              // the graph follows the work in all queues
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

  /// The number of steps with other operations than the step before; 0 without graphs.
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
    captured_->order.lead();  // later work in any queue follows the graph
  }

  S* strategy_;
  [[no_unique_address]] typename CapturedOn<Device, is_captured>::Type captured_;
};

}  // namespace dist
