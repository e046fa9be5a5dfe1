#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/async/replica_strategy.hpp>
#include <dist/async/sent_function.hpp>
#include <dist/async/step_messages.hpp>
#include <dist/async/variable_part.hpp>
#include <dist/context/cross_replica_context.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/cell_counts.hpp>
#include <dist/nn/metrics/row_metric.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/server_variable.hpp>
#include <dist/strategy/parameter_server.hpp>

namespace dist::nn {

/// A running mean, or a function of counts, over all batches of all workers: what nn::Metric is elsewhere. Its sums are a variable
/// on parameter servers, to which workers add (spec J13), and which the coordinator reads. `M` is an nn::MetricFunction.
///
///     nn::ServerMetric accuracy{strategy, nn::SparseCategoricalAccuracy{}};
///     coordinator.schedule(step, replicas, accuracy, train);   // accuracy.update(replica, outputs, batch.y) there
///     coordinator.join();
///     std::printf("%f\n", accuracy.result(strategy.scope()));
template <MetricFunction M, rpc::Transport Via>
class ServerMetric {
  static constexpr bool counts_cells = CountsCells<M>;

 public:
  using Measure = M;
  using Transport = Via;

  /// Throws InvalidArgument for what the measure's `check` refuses, and what `ParameterServer::variable` does.
  explicit ServerMetric(ParameterServer<Via>& strategy, M measure = {})
      : measure_{checked(std::move(measure))},
        sums_(strategy.template variable<double>(shape_of(measure_.function), 0.0, text(name(), "/sums"))) {}

  [[nodiscard]] std::string_view name() const noexcept { return measure_.function.name; }

  /// Measures a batch of a worker, in the `run` of its network: outputs, targets and, where rows weigh differently, a tensor with
  /// one weight per row. It is sent when the run ends.
  template <InWorkerReplica<Via> Replica>
  void update(const Replica& replica, const auto&... given) {
    const M& measure = measure_.function;
    if constexpr (counts_cells) {
      std::vector<double> counts(sums_.size());
      detail::count_cells(replica.queue(), measure, std::span<double>{counts}, given...);
      push(replica, std::move(counts));
    } else if constexpr (MeasuresRows<M>) {
      add(replica, detail::measure_rows(replica.queue(), measure, given...));
    } else {
      add(replica, measure(given...));
    }
  }
  /// Adds what has been measured already.
  template <InWorkerReplica<Via> Replica, class Tally>
  void add(const Replica& replica, const Tally& tally) {
    push(replica, {static_cast<double>(tally.total), static_cast<double>(tally.count)});
  }

  /// The result so far; 0 before the first example.
  [[nodiscard]] double result(const InCrossReplica auto& scope) const {
    const Tensor<double> sums = counts(scope);
    if constexpr (counts_cells)
      return measure_.function.result(sums);
    else
      return sums[1] == 0 ? 0.0 : sums[0] / sums[1];
  }
  /// What was added up so far: of a mean the total and the count, else the counts in the measure's shape.
  [[nodiscard]] Tensor<double> counts(const InCrossReplica auto& scope) const { return sums_.read(scope); }
  /// Nothing was measured so far (spec P18).
  void reset(const InCrossReplica auto& scope) { sums_.assign(scope, 0.0); }

  /// What it has added up so far, by the names that nn::Metric has for it. See Trackable.
  void track(auto& visit) {
    if constexpr (counts_cells) {
      visit("counts", sums_);
    } else {
      visit("total", VariablePart{sums_, 0, Shape{}});
      visit("count", VariablePart{sums_, 1, Shape{}});
    }
  }

  void write_to(ArchiveWriter& archive) const { archive.put(measure_).put(sums_); }
  [[nodiscard]] static ServerMetric read_from(ArchiveReader& archive) {
    auto measure = archive.get<SentFunction<M>>();
    return ServerMetric{std::move(measure), archive.get<ServerVariable<double, Via>>()};
  }

 private:
  ServerMetric(SentFunction<M> measure, ServerVariable<double, Via> sums)
      : measure_(std::move(measure)), sums_(std::move(sums)) {}

  [[nodiscard]] static M checked(M measure) {
    if constexpr (counts_cells) measure.check();
    return measure;
  }
  [[nodiscard]] static Shape shape_of([[maybe_unused]] const M& measure) {
    if constexpr (counts_cells)
      return measure.shape();
    else
      return {2};
  }
  /// Lets the servers add.
  template <class Replica>
  void push(const Replica& replica, std::vector<double> sums) const {
    replica.strategy().pushes().add(sums_, dist::Sum{}, std::move(sums));
  }

  SentFunction<M> measure_;
  ServerVariable<double, Via> sums_;
};

template <rpc::Transport Via, class M>
ServerMetric(ParameterServer<Via>&, M) -> ServerMetric<M, Via>;

}  // namespace dist::nn
