#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/context/replica_context.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/error.hpp>
#include <dist/core/never.hpp>
#include <dist/core/text.hpp>
#include <dist/core/track.hpp>
#include <dist/core/work.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/nn/deferred_tally.hpp>
#include <dist/nn/forward_mode.hpp>
#include <dist/nn/loss.hpp>
#include <dist/nn/losses/reduced.hpp>
#include <dist/nn/metric.hpp>
#include <dist/nn/metrics/mean_value.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/regularizer.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/fit_options.hpp>
#include <dist/train/history.hpp>
#include <dist/train/logs.hpp>
#include <dist/train/progress_bar.hpp>
#include <dist/train/progress_callback.hpp>

namespace dist::nn {

/// A network that computes otherwise in inference than in training.
template <class Network, class Replica, class X>
concept HasInference = requires(Network& network, const Replica& replica, const X& x) {
  network.forward(replica, x, inference);
};

/// A network with what it takes to train it on a strategy (spec Q):
///
///     nn::Model model{strategy, net, nn::Adam{}, nn::SparseCategoricalCrossentropy{},
///                     nn::SparseCategoricalAccuracy{}};
///     auto history = model.fit(train, {.epochs = 5, .validation = test});
///
/// Datasets give global batches with members `x` and `y`. Refers to the strategy and the network, which must
/// outlive it.
template <class S, class Network, class O, class L, class... Ms>
class Model {
  using FitLoss = detail::FitLoss<L>;
  static_assert(FitLoss::is_one_number,
                "Model needs a loss of one number: give it nn::Reduction::SumOverBatchSize or nn::Reduction::Sum");

 public:
  using FitOptions = nn::FitOptions<Model>;

  /// Throws InvalidArgument for hyper-parameters out of range, for a network that is not trainable and for two metrics
  /// of one name, WrongStrategy for a network of another strategy, OutOfMemory.
  Model(S& strategy, Network& network, O optimizer, L loss, Ms... metrics)
      : strategy_(strategy),
        network_(network),
        loss_function_(loss),
        optimizer_(of_strategy(strategy, network), network, std::move(optimizer)),
        loss_(strategy, MeanValue{.name = "loss"}),
        metrics_(Metric<S, Ms>{strategy, std::move(metrics)}...) {
    logs_.set(loss_.name(), 0);
    each_metric([&](auto& metric) { require_new_name(metric.name()); });
  }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  [[nodiscard]] S& strategy() const noexcept { return strategy_; }
  [[nodiscard]] Optimizer<S, Network, O>& optimizer() noexcept { return optimizer_; }

  /// All that outlives a run: the network, the optimizer, the metrics by their names, and how many epochs it has been
  /// trained. See Trackable.
  void track(auto& visit) requires Trackable<Network> {
    visit("network", network_);
    visit("optimizer", optimizer_);
    const auto metric = [&](auto& one) { visit(text("metrics/", one.name()), one); };
    metric(loss_);
    each_metric(metric);
    visit("epochs", epochs_trained_);
  }

  /// Trains for `options.epochs` passes over `dataset`, and returns the logs of every epoch: the loss, averaged over
  /// the examples of the epoch, the metrics, and the same of the validation dataset. A replica's loss is the mean over
  /// its rows, over the number of replicas; with nn::Reduction::Sum it is their sum (spec P05). Another fit goes on
  /// where the last one ended, so that its epochs are shuffled in other orders. When training ends the optimizer is
  /// finalized. `callbacks` are called as training goes on; see Callback.
  ///
  /// Throws InvalidArgument for a dataset without a batch or without an end (spec Q04), and what the step
  /// throws.
  template <class Dataset, Callback... Given>
  History fit(const Dataset& dataset, FitOptions options, Given&&... callbacks) {
    auto distributed = strategy_.distribute_dataset(dataset);
    std::optional<std::size_t> steps = steps_of(distributed);
    History history;
    ProgressCallback progress{verbosity(options.verbose), std::move(options.console)};
    Callbacks watching{progress, history, callbacks...};
    Callbacks<std::remove_reference_t<Given>...> given{callbacks...};
    TestCallback watching_validation{given};  // not the progress bar, which shows its logs at the end of the epoch
    for (std::size_t index = 0; index < options.epochs; ++index) {
      watching.epoch_begin({index, options.epochs, steps});
      const auto after_step = [&](std::size_t step) { watching.batch_end(step, current_logs()); };
      steps = pass(distributed, epochs_trained_, after_step,
                   [this](auto& replica, const auto& batch) { this->train(replica, batch); });
      ++epochs_trained_;
      Logs logs = read_logs();
      if (options.validation)
        for (const Logs::Entry& entry : options.validation.evaluate(*this, watching_validation))
          logs.set("val_" + entry.name, entry.value);
      watching.epoch_end({index, options.epochs, steps}, logs);
    }
    optimizer_.finalize(strategy_.scope());
    return history;
  }
  template <class Dataset>
  History fit(const Dataset& dataset) {
    return fit(dataset, FitOptions{});
  }
  /// What it does not take, for a sentence.
  template <class Dataset, class... Given>
    requires(!(Callback<Given> && ...))
  History fit(const Dataset&, FitOptions, Given&&...) {
    refuse_callbacks<Dataset>();
    return {};
  }

  /// The loss and the metrics over `dataset`, every example counted once. Throws InvalidArgument for a
  /// dataset without a batch or without an end.
  template <class Dataset, Callback... Given>
  Logs evaluate(const Dataset& dataset, EvaluateOptions options, Given&&... callbacks) {
    auto distributed = strategy_.distribute_dataset(dataset);
    ProgressCallback progress{verbosity(options.verbose), std::move(options.console)};
    return evaluate_distributed(distributed, progress, callbacks...);
  }
  template <class Dataset>
  Logs evaluate(const Dataset& dataset) {
    return evaluate(dataset, EvaluateOptions{});
  }
  /// What it does not take, for a sentence.
  template <class Dataset, class... Given>
    requires(!(Callback<Given> && ...))
  Logs evaluate(const Dataset&, EvaluateOptions, Given&&...) {
    refuse_callbacks<Dataset>();
    return {};
  }

  /// The same for what `distribute_dataset` returned. Prints nothing; `callbacks` are called.
  template <class Distributed, Callback... Given>
  Logs evaluate_distributed(Distributed& dataset, Given&... callbacks) {
    Callbacks<Given...> watching{callbacks...};
    watching.test_begin(steps_of(dataset));
    const auto after_step = [&](std::size_t step) { watching.test_batch_end(step, current_logs()); };
    const std::size_t steps =
        pass(dataset, 0, after_step, [this](auto& replica, const auto& batch) { this->test(replica, batch); });
    watching.test_end(steps, read_logs());
    return logs_;
  }

 private:
  template <class Dataset>
  static void refuse_callbacks() {
    static_assert(dist::detail::never<Dataset>,
                  "what is given to fit and evaluate behind the options has a hook of nn::Callback with the arguments "
                  "listed there, such as on_epoch_end(const nn::Epoch&, const nn::Logs&)");
  }

  /// The network's variables say whether they are of this strategy (spec Q02).
  static S& of_strategy(S& strategy, Network& network) {
    static_cast<void>(network.parameters().component(strategy.scope(), 0));
    return strategy;
  }

  void require_new_name(std::string_view name) {
    const std::size_t names = logs_.size();
    logs_.set(name, 0);
    if (logs_.size() == names)
      throw InvalidArgument(text("Two metrics of a model are named '", name, "'"),
                            "the logs would have one value for both",
                            "Give one of them another name: nn::SparseCategoricalAccuracy{.name = \"top\"}");
  }

  void train(const InReplica auto& replica, const auto& batch) {
    const auto outputs = network_.forward(replica, batch.x);
    const std::size_t rows = values_of(outputs).rows();
    const std::size_t divisor = FitLoss::is_sum ? 1 : rows * replica.num_replicas_in_sync();
    const auto loss =
        detail::divided_loss(replica.queue(), FitLoss::function(loss_function_), outputs, batch.y, divisor);
    network_.backward(replica, loss);
    const auto penalty = start_penalty(replica);  // of the weights before the update
    if constexpr (FitLoss::is_regularized) add_regularization_gradients(replica, network_, loss_function_.regularizer);
    optimizer_.apply_gradients(replica);
    report_loss(replica, loss, penalty);
    each_metric([&](auto& metric) { metric.update(replica, outputs, batch.y); });
  }

  void test(const InReplica auto& replica, const auto& batch) {
    const auto outputs = infer(replica, batch);
    const auto values = values_of(outputs);
    const auto loss = start_total_loss(replica.queue(), FitLoss::function(loss_function_), values, values_of(batch.y));
    report_loss(replica, loss, start_penalty(replica));
    each_metric([&](auto& metric) { metric.update(replica, outputs, batch.y); });
  }

  /// What a regulariser adds to the loss: a Work.
  auto start_penalty(const InReplica auto& replica) {
    if constexpr (FitLoss::is_regularized)
      return start_total_regularization(replica, network_, loss_function_.regularizer);
    else
      return Ready{0.0};
  }

  /// The loss that the logs show is a mean over replicas and batches, each weighing as many as its rows: of the
  /// unscaled mean loss, or for a sum of its value times the replicas, so that the mean is the total of a global batch
  /// (spec P06). The penalty of a regulariser counts whole.
  void report_loss(const InReplica auto& replica, const auto& loss, const auto& penalty) {
    const auto weight = static_cast<double>(loss.examples());
    const double sum_factor = FitLoss::is_sum ? weight * static_cast<double>(replica.num_replicas_in_sync()) : 1;
    const auto tally = [=](double total, double added) {
      return MeanValue::Tally{.total = total * sum_factor + added * weight, .count = weight};
    };
    if constexpr (Work<std::remove_cvref_t<decltype(loss)>>)
      loss_.add(replica, DeferredTally{detail::AllOf{loss, penalty}, [=](const auto& computed) {
                                         return tally(computed.first.total(), computed.second.value());
                                       }});
    else
      loss_.add(replica, tally(loss.total(), penalty.value()));
  }

  /// A network of the user's own that computes the same in both modes need not take one.
  template <InReplica Replica>
  auto infer(const Replica& replica, const auto& batch) {
    if constexpr (HasInference<Network, Replica, decltype(batch.x)>) {
      return network_.forward(replica, batch.x, inference);
    } else {
      return network_.forward(replica, batch.x);
    }
  }

  /// One pass over the dataset, from metrics that start anew. Returns the number of steps.
  template <class Distributed>
  std::size_t pass(Distributed& dataset, std::size_t epoch, const auto& after_step, const auto& step) {
    const auto scope = strategy_.scope();
    loss_.reset(scope);
    each_metric([&](auto& metric) { metric.reset(scope); });
    std::size_t steps = 0;
    const auto run = [&](auto&& batch) {
      strategy_.run(step, batch);
      after_step(steps++);
    };
    if constexpr (data::HasEpochs<Distributed>) {
      for (auto&& batch : dataset.epoch(epoch)) run(batch);  // an epoch's order depends on its number only
    } else {
      for (auto&& batch : dataset) run(batch);
    }
    if (steps == 0)
      throw InvalidArgument("The dataset of fit or evaluate has no batch", "it ended before the first",
                            "Give it at least one example, and batch before you repeat");
    return steps;
  }

  /// No number while it is unknown (spec Q05).
  template <class Distributed>
  static std::optional<std::size_t> steps_of(const Distributed& dataset) {
    if constexpr (data::HasCardinality<Distributed>) {
      const auto cardinality = dataset.cardinality();
      if (cardinality.is_infinite())
        throw InvalidArgument("The dataset of fit or evaluate has no end", "its cardinality is infinite",
                              "Leave out repeat, or give repeat a number");
      if (cardinality.is_known()) return cardinality.count();
    }
    return std::nullopt;
  }

  const Logs& read_logs() {
    const auto scope = strategy_.scope();
    logs_.set(loss_.name(), loss_.result(scope));
    each_metric([&](auto& metric) { logs_.set(metric.name(), metric.result(scope)); });
    return logs_;
  }
  const Logs& read_logs_here() {
    const auto scope = strategy_.scope();
    logs_.set(loss_.name(), loss_.result_here(scope));
    each_metric([&](auto& metric) { logs_.set(metric.name(), metric.result_here(scope)); });
    return logs_;
  }
  CurrentLogs current_logs() {
    return {this, [](void* model) -> const Logs& { return static_cast<Model*>(model)->read_logs_here(); }};
  }

  template <class Call>
  void each_metric(Call call) {
    std::apply([&](auto&... metric) { (call(metric), ...); }, metrics_);
  }

  S& strategy_;
  Network& network_;
  L loss_function_;
  Optimizer<S, Network, O> optimizer_;
  Metric<S, MeanValue> loss_;
  std::tuple<Metric<S, Ms>...> metrics_;
  Logs logs_;
  std::size_t epochs_trained_ = 0;
};

template <Strategy S, class Network, class O, class L, class... Ms>
Model(S&, Network&, O, L, Ms...) -> Model<S, Network, O, L, Ms...>;

/// What is not made on a strategy, for a sentence.
template <dist::detail::NoStrategy S, class Network, class O, class L, class... Ms>
class Model<S, Network, O, L, Ms...> {
  static_assert(dist::detail::never<S>,
                "a model is made on a strategy, which is its first argument, such as a dist::Default or a "
                "dist::Mirrored: nn::Model model{strategy, net, nn::Adam{}, nn::SparseCategoricalCrossentropy{}}");

 public:
  explicit Model(auto&&...) {}
};
template <dist::detail::NoStrategy First, class... Rest>
Model(First&&, Rest&&...) -> Model<std::remove_reference_t<First>, void, void, void>;

}  // namespace dist::nn
