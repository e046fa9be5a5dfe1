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

/// A CUDA graph of work on several queues, launched on the first of them. Not thread-safe.
class Graph {
 public:
  explicit Graph(std::vector<Queue> queues) : queues_(std::move(queues)) { DIST_EXPECT(!queues_.empty()); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { give_back(); }

  /// Captures the work of the first queue during its lifetime, instead of executing it. Other queues join the capture
  /// by waiting for an event of the first. Waits of the host and allocations throw NotCapturable in all threads of the
  /// process.
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
    /// Discards the captured work unless `end` was called.
    ~Capture() {
      if (has_ended_) return;
      cudaGraph_t dropped = nullptr;
      forget(cudaStreamEndCapture(graph_.origin().get(), &dropped));
      if (dropped != nullptr) forget(cudaGraphDestroy(dropped));
      for (const Queue& queue : graph_.queues_) queue.set_captured(false);
      give_up_copies();
    }

    /// Ends the capture and prepares the graph for `launch`. All captured work must be joined into the first queue.
    /// Throws NotCapturable.
    void end() {
      cudaGraph_t captured = nullptr;
      const cudaError_t answer = cudaStreamEndCapture(graph_.origin().get(), &captured);
      if (answer == cudaSuccess) {
        has_ended_ = true;
        for (const Queue& queue : graph_.queues_) queue.set_captured(false);
      }
      cuda::check(answer, "cudaStreamEndCapture, because of an earlier call that a graph cannot hold",
                  graph_.origin().device());
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
    /// Cancels the captured copies, but not earlier copies.
    void give_up_copies() const noexcept {
      for (std::size_t queue = 0; queue < copies_.size(); ++queue) graph_.queues_[queue].give_up_copies(copies_[queue]);
    }

    Graph& graph_;
    std::vector<std::uint64_t> copies_;  // per queue, before the capture
    bool has_ended_ = false;
  };

  void launch() {
    DIST_EXPECT(instance_ != nullptr);
    select_device(origin().device());
    cuda::check(cudaGraphLaunch(instance_, origin().get()), "cudaGraphLaunch", origin().device());
    note_work(origin().device(), detail::graph_work);
  }

  /// Number of instantiations. A capture that differs from the previous one only in arguments updates the instance.
  [[nodiscard]] std::size_t instantiations() const noexcept { return instantiations_; }

 private:
  [[nodiscard]] StreamRef origin() const noexcept { return queues_.front().stream(); }

  /// Updates the arguments of the instance if the operations match, otherwise instantiates the graph.
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
  /// Destroys the instance when its work is done, and leaks it if that work does not finish. Does not deliver copies to
  /// the host, as copies captured just now have not run.
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
