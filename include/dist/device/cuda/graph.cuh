#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <dist/core/contract.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/last_work.hpp>
#include <dist/device/cuda/queue.cuh>
#include <dist/device/cuda/selected_device.hpp>

namespace dist::cuda {

namespace detail {
inline constexpr WorkName graph_work{"graph", ""};
}  // namespace detail

/// What is put on some queues, as one graph that is launched on the first of them. One thread at a time uses it.
class Graph {
 public:
  explicit Graph(std::vector<Queue> queues) : queues_(std::move(queues)) { DIST_EXPECT(!queues_.empty()); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { give_back(); }

  /// While one lives, what is put on the queues becomes a part of the graph instead of being done: on the first queue, and
  /// on the others after they have waited for an event of the first. What no graph holds is refused as NotCapturable in
  /// every thread of the process: waits for the queues, and memory that is allocated.
  class Capture {
   public:
    explicit Capture(Graph& graph) : graph_(graph) {
      for (const Queue& queue : graph_.queues_) {
        queue.make_room();
        copies_.push_back(queue.copies());
      }
      DIST_CUDA_CHECK(cudaStreamBeginCapture(graph_.origin().get(), cudaStreamCaptureModeGlobal));
      for (const Queue& queue : graph_.queues_) queue.set_captured(true);
    }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    /// Forgets what was captured, unless it has ended.
    ~Capture() {
      if (has_ended_) return;
      cudaGraph_t dropped = nullptr;
      forget(cudaStreamEndCapture(graph_.origin().get(), &dropped));
      if (dropped != nullptr) forget(cudaGraphDestroy(dropped));
      for (const Queue& queue : graph_.queues_) queue.set_captured(false);
      give_up_copies();
    }

    /// What was captured is what `launch` launches from now on; all of it comes before the end of the first queue. Throws
    /// NotCapturable.
    void end() {
      cudaGraph_t captured = nullptr;
      const cudaError_t answer = cudaStreamEndCapture(graph_.origin().get(), &captured);
      if (answer == cudaSuccess) {
        has_ended_ = true;
        for (const Queue& queue : graph_.queues_) queue.set_captured(false);
      }
      cuda::check(answer, "cudaStreamEndCapture, for something before that no graph holds", graph_.origin().device());
      try {
        graph_.take(captured);
      } catch (...) {
        give_up_copies();
        forget(cudaGraphDestroy(captured));
        throw;
      }
      forget(cudaGraphDestroy(captured));
    }

   private:
    /// Those that were captured; copies from before are under way.
    void give_up_copies() const noexcept {
      for (std::size_t queue = 0; queue < copies_.size(); ++queue) graph_.queues_[queue].give_up_copies(copies_[queue]);
    }

    Graph& graph_;
    std::vector<std::uint64_t> copies_;  // of each queue, before
    bool has_ended_ = false;
  };

  /// Puts all of it on the first queue, after what is there. Launches follow each other.
  void launch() {
    DIST_EXPECT(instance_ != nullptr);
    select_device(origin().device());
    cuda::check(cudaGraphLaunch(instance_, origin().get()), "cudaGraphLaunch", origin().device());
    note_work(origin().device(), detail::graph_work);
  }

  /// How often the captured work was another than before, and not the same with other arguments.
  [[nodiscard]] std::size_t instantiations() const noexcept { return instantiations_; }

 private:
  [[nodiscard]] StreamRef origin() const noexcept { return queues_.front().stream(); }

  /// The same operations in the same order get new arguments.
  void take(cudaGraph_t captured) {
    if (instance_ != nullptr) {
      cudaGraphExecUpdateResultInfo info{};
      const cudaError_t answer = cudaGraphExecUpdate(instance_, captured, &info);
      if (answer == cudaSuccess) return;
      if (answer != cudaErrorGraphExecUpdateFailure) cuda::check(answer, "cudaGraphExecUpdate", origin().device());
      forget(answer);
      give_back();
    }
    cuda::check(cudaGraphInstantiate(&instance_, captured, 0), "cudaGraphInstantiate", origin().device());
    ++instantiations_;
  }
  /// Once it is done. What does not end keeps it. Copies to the host are not delivered: those of a step that was just captured
  /// have not run.
  void give_back() noexcept {
    if (instance_ == nullptr) return;
    const Queue& queue = queues_.front();
    try {
      queue.await([&] { return queue.is_done(); },
                  [&] { return concat("a graph on queue ", queue.number(), " of GPU ", origin().device()); });
      forget(cudaGraphExecDestroy(instance_));
    } catch (const Error&) {
    }
    instance_ = nullptr;
  }

  std::vector<Queue> queues_;
  cudaGraphExec_t instance_ = nullptr;
  std::size_t instantiations_ = 0;
};

}  // namespace dist::cuda
