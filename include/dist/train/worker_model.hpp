#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <dist/async/replica_strategy.hpp>
#include <dist/async/sent_function.hpp>
#include <dist/async/server_optimizer.hpp>
#include <dist/async/worker_network.hpp>
#include <dist/context/cross_replica_context.hpp>
#include <dist/context/input_context.hpp>
#include <dist/coordinator/per_worker.hpp>
#include <dist/coordinator/worker_context.hpp>
#include <dist/core/error.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/track.hpp>
#include <dist/server/server_context.hpp>
#include <dist/server/server_variable.hpp>
#include <dist/train/model_steps.hpp>

namespace dist::nn::detail {

/// Calls `use(key, leaf)` for each variable in which the loss and the metrics of ModelSteps add up, in the order of the walk.
template <class Steps, class Use>
void for_each_sum(Steps& steps, const Use& use) {
  walk(steps.trained(), [&](std::string_view key, auto& leaf) { use(key, leaf); });
}
/// What the loss and the metrics have added up, one behind another.
template <class Steps>
[[nodiscard]] std::vector<double> sums_of(Steps& steps, const InCrossReplica auto& scope) {
  std::vector<double> sums;
  for_each_sum(steps, [&](std::string_view, auto& leaf) {
    const auto whole = leaf.whole(scope);
    for (const auto sum : whole.elements()) sums.push_back(static_cast<double>(sum));
  });
  return sums;
}
/// The inverse.
template <class Steps>
void set_sums(Steps& steps, const InCrossReplica auto& scope, std::span<const double> sums) {
  for_each_sum(steps, [&](std::string_view, auto& leaf) {
    auto whole = leaf.whole(scope);
    using T = typename decltype(whole)::Element;
    for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<T>(sums[i]);
    sums = sums.subspan(whole.size());
    leaf.restore(scope, TensorView<const T>{whole});
  });
}

/// A worker's replica of a Model on parameter servers: what it does with a batch, and what it measures there. `Network` is a
/// ServerNetwork.
template <class Network, class O, class L, class... Ms>
class WorkerModel {
  using Via = typename Network::Transport;
  using Sums = ServerVariable<double, Via>;

 public:
  /// `sums` is the variable to which all workers add what they measure.
  WorkerModel(typename Network::Parts network, ServerOptimizerParts<O, Via> optimizer, Sums sums, SentFunction<L> loss,
              std::tuple<SentFunction<Ms>...> metrics, std::vector<float> class_weight)
      : sums_(std::move(sums)),
        loss_(std::move(loss)),
        metrics_(std::move(metrics)),
        function_(optimizer.function.function),
        network_(std::move(network), std::move(optimizer)),
        steps_(std::apply(
            [&](const auto&... metric) {
              return Steps{network_.strategy(), network_, function_, loss_.function, metric.function...};
            },
            metrics_)) {
    steps_.class_weights().set(std::move(class_weight));
  }

  /// One update with the worker's next batch, whose dataset begins anew where it has ended. Throws InvalidArgument for a dataset
  /// without a batch, and what the step throws.
  template <ServerContext<Via> Context, class Dataset>
  void train(const Context& context, PerWorkerIterator<Dataset>& data) {
    steps_.trained().reset();
    network_.run(
        context, [&] { return next_batch(data); },
        [&](auto& replica, const auto& batch) {
          steps_.train(replica, batch);
          replica.merge_call(
              [&](const auto& scope) { network_.strategy().pushes().add(sums_, Sum{}, sums_of(steps_, scope)); });
        });
  }

 private:
  template <class Dataset>
  [[nodiscard]] static auto next_batch(PerWorkerIterator<Dataset>& data) {
    typename PerWorkerIterator<Dataset>::Element batch{};
    if (data.next(batch)) return batch;
    data.restart();
    if (!data.next(batch))
      throw InvalidArgument("The dataset of a worker has no batch", "it ended before the first",
                            "Give it at least one example, and batch before you repeat");
    return batch;
  }

  using Replica = WorkerNetwork<Network, O>;
  using Steps = ModelSteps<ReplicaStrategy<Via>, Replica, O, L, Ms...>;

  const Sums sums_;
  const SentFunction<L> loss_;  // as the metrics, kept for the texts to which they refer
  const std::tuple<SentFunction<Ms>...> metrics_;
  const O function_;
  Replica network_;
  Steps steps_;
};

template <class Network, class O, class L, class... Ms>
struct MakeWorkerModel {
  using Via = typename Network::Transport;

  [[nodiscard]] auto operator()(const InputContext&, typename Network::Parts& network,
                                ServerOptimizerParts<O, Via>& optimizer, ServerVariable<double, Via>& sums,
                                SentFunction<L>& loss, std::tuple<SentFunction<Ms>...>& metrics,
                                std::vector<float>& class_weight) const {
    return WorkerModel<Network, O, L, Ms...>{std::move(network), std::move(optimizer), std::move(sums),
                                             std::move(loss),    std::move(metrics),   std::move(class_weight)};
  }
};

/// Some steps of a fit.
struct TrainOnWorker {
  std::uint64_t steps;

  template <class OnWorker, class Data>
  void operator()(WorkerContext& worker, OnWorker& model, Data& data) const {
    for (std::uint64_t step = 0; step < steps; ++step) model.train(worker, data);
  }
};

}  // namespace dist::nn::detail
