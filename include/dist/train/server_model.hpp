#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <dist/async/network_replica.hpp>
#include <dist/async/replica_strategy.hpp>
#include <dist/async/sent_function.hpp>
#include <dist/async/server_network.hpp>
#include <dist/async/server_optimizer.hpp>
#include <dist/async/variable_part.hpp>
#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/coordinator/coordinator_options.hpp>
#include <dist/core/error.hpp>
#include <dist/core/pointers.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/core/track.hpp>
#include <dist/data/dataset.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/describe_layers.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/requests.hpp>
#include <dist/server/server_variable.hpp>
#include <dist/strategy/parameter_server.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/console.hpp>
#include <dist/train/fit_options.hpp>
#include <dist/train/has_model_files.hpp>
#include <dist/train/history.hpp>
#include <dist/train/logs.hpp>
#include <dist/train/model.hpp>
#include <dist/train/model_steps.hpp>
#include <dist/train/progress_bar.hpp>
#include <dist/train/progress_callback.hpp>
#include <dist/train/worker_model.hpp>

namespace dist::nn {

/// `model.fit(batches, {.epochs = 5, .steps_per_epoch = 900, .validation = test});` under a ParameterServer. `Evaluated` is the
/// model that validates.
template <class Evaluated>
struct ServerFitOptions {
  /// The number of the epoch at which the fit ends, and that with which it begins, counted from 0.
  std::size_t epochs = 1;
  std::size_t initial_epoch = 0;
  /// Batches in an epoch, of all workers together. It must be given (spec Q25): nobody knows how many batches workers have.
  std::optional<std::size_t> steps_per_epoch = std::nullopt;
  /// Steps that one scheduled function takes, the last one of an epoch fewer (spec Q08). A worker does so many without asking the
  /// coordinator, and all of them again elsewhere if it is lost meanwhile.
  std::size_t steps_per_execution = 1;
  /// A dataset that the coordinator evaluates after an epoch, on so many batches, after every so many epochs.
  Validation<Evaluated> validation = {};
  std::optional<std::size_t> validation_steps = std::nullopt;
  std::size_t validation_freq = 1;
  /// How much the examples of each class count in the loss. None: all count alike.
  std::vector<float> class_weight = {};
  /// 0 silent, 2 one line per epoch. There is no bar, as no step is seen here (spec Q16).
  int verbose = 2;
  Console console = Console::standard_output();
  /// See ServerOptimizerOptions. `optimizer().staleness(scope)` says how stale gradients were, and how many were refused.
  std::uint64_t max_staleness = server::any_staleness;
  /// Of the ClusterCoordinator that schedules the steps.
  CoordinatorOptions coordinator = {};
};

namespace detail {

template <class C>
inline constexpr bool sees_epochs =
    has_one_of<C, hooks::on_train_begin, hooks::on_epoch_begin, hooks::on_epoch_end, hooks::on_train_end,
               hooks::on_test_begin, hooks::on_test_batch_begin, hooks::on_test_batch_end, hooks::on_test_end>;

}  // namespace detail

/// A Model whose network is on parameter servers. Workers train it without waiting for each other; this process, the
/// coordinator, schedules their steps, calls callbacks between epochs, evaluates and predicts itself, with the parameters that
/// the servers have, and saves.
///
///     nn::ServerNetwork<Net, nn::Reference, dist::Grpc> net{strategy};
///     nn::Model model{strategy, net, nn::Adam{}, nn::SparseCategoricalCrossentropy{}, nn::SparseCategoricalAccuracy{}};
///     model.fit([](const dist::InputContext&) { return batches(); }, {.epochs = 5, .steps_per_epoch = 900, .validation = test});
///
/// Refers to the strategy and the network, which must outlive it.
template <rpc::Transport Via, class Net, Backend BackendType, class Element, class O, class L, class... Ms>
class Model<ParameterServer<Via>, ServerNetwork<Net, BackendType, Via, Element>, O, L, Ms...>
    : public detail::HasModelFiles<
          Model<ParameterServer<Via>, ServerNetwork<Net, BackendType, Via, Element>, O, L, Ms...>> {
  using Network = ServerNetwork<Net, BackendType, Via, Element>;
  using Replica = NetworkReplica<Network>;
  /// What evaluates here. It takes no step, so an optimizer without slots does.
  using Evaluated = Model<ReplicaStrategy<Via>, Replica, SGD, L, Ms...>;
  using Steps = detail::ModelSteps<ReplicaStrategy<Via>, Replica, SGD, L, Ms...>;

 public:
  using FitOptions = ServerFitOptions<Evaluated>;
  /// Callbacks are called between epochs, and not between training batches.
  static constexpr bool calls_between_batches = false;

  /// Throws InvalidArgument for hyper-parameters out of range and for two metrics of one name, and what
  /// `ParameterServer::variable` does.
  Model(ParameterServer<Via>& strategy, Network& network, O optimizer, L loss, Ms... metrics)
      : strategy_(strategy),
        network_(network),
        optimizer_(strategy, network, std::move(optimizer)),
        loss_{loss},
        metrics_{SentFunction<Ms>{metrics}...},
        replica_(from_bytes<typename Network::Parts>(to_bytes(network.parts()))),  // as workers get them
        evaluated_(replica_.strategy(), replica_, SGD{}, loss, metrics...),
        logs_(replica_.strategy(), replica_, SGD{}, loss, metrics...),
        sums_(strategy.template variable<double>({detail::sums_of(logs_, replica_.strategy().scope()).size()}, 0.0,
                                                 "metrics")) {}
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  [[nodiscard]] ParameterServer<Via>& strategy() const noexcept { return strategy_; }
  [[nodiscard]] Network& network() const noexcept { return network_; }
  [[nodiscard]] std::string summary() const { return nn::summary(describe_layers<Net>()); }
  [[nodiscard]] ServerOptimizer<Network, O>& optimizer() noexcept { return optimizer_; }
  /// The coordinator is the process that shows and writes.
  [[nodiscard]] static constexpr bool is_chief() noexcept { return true; }

  /// All that outlives a run, by the names that a Model under another strategy has for it: a checkpoint of one is restored by the
  /// other. See Trackable.
  void track(auto& visit) {
    visit("network", network_);
    visit("optimizer", optimizer_);
    visit("metrics", ServerMeasures{*this});
    visit("epochs", epochs_trained_);
  }

  /// Lets the workers train until epoch `options.epochs`, and returns the logs of every epoch: the loss and the metrics over all
  /// batches of its steps, and those of the validation dataset. `make_dataset(const dist::InputContext&)` makes the dataset of a
  /// worker, as for `ClusterCoordinator::create_per_worker_dataset`, which begins anew where it ends; its elements are those that
  /// Model::fit takes, and a batch is one step's. Each fit has a ClusterCoordinator of its own.
  ///
  /// `callbacks` are called between epochs, when no step runs. Throws InvalidArgument where `steps_per_epoch` is left out (spec
  /// Q25), and for a progress bar (spec Q16); what a step throws as RemoteError; and Unavailable.
  template <class MakeDataset, Callback... Given>
  History fit(const MakeDataset& make_dataset, FitOptions options, Given&&... callbacks) {
    static_assert(!data::Dataset<MakeDataset>,
                  "the workers of a ParameterServer make their datasets themselves: give fit a function of a const "
                  "dist::InputContext& that returns one");
    static_assert(
        (detail::sees_epochs<Given> && ...),
        "under a ParameterServer no callback sees training batches, as workers do not wait for each other: give "
        "it a hook of epochs, such as on_epoch_end");
    require_options(options);
    const std::size_t steps = *options.steps_per_epoch;
    History history;
    ProgressCallback progress{verbosity(options.verbose), std::move(options.console)};
    Callbacks watching{*this, callbacks..., progress, history};
    Callbacks given{*this, callbacks...};
    TestCallback watching_validation{given};
    stops_ = false;
    validates_ = static_cast<bool>(options.validation);
    callbacks_may_log_ = &decltype(given)::may_add_to_logs;
    begins_at_ = options.initial_epoch;

    ClusterCoordinator coordinator{strategy_, options.coordinator};
    const auto data = coordinator.create_per_worker_dataset(make_dataset);
    optimizer_.set_max_staleness(options.max_staleness);
    const auto models =
        coordinator.create_per_worker_resource(detail::MakeWorkerModel<Network, O, L, Ms...>{}, network_.parts(),
                                               optimizer_.parts(), sums_, loss_, metrics_, options.class_weight);
    watching.template call<hooks::on_train_begin>();
    Logs logs;
    for (std::size_t index = begins_at_; index < options.epochs && !stops_; ++index) {
      const Epoch epoch{index, options.epochs, steps};
      watching.template call<hooks::on_epoch_begin>(epoch);
      sums_.assign(strategy_.scope(), 0.0);
      for (std::size_t step = 0; step < steps; step += options.steps_per_execution)
        coordinator.schedule(detail::TrainOnWorker{std::min(options.steps_per_execution, steps - step)}, models, data);
      coordinator.join();
      ++epochs_trained_;
      logs = read_logs();
      if (validates_ && (index + 1) % options.validation_freq == 0) {
        replica_.pull(strategy_.scope());
        for (const Logs::Entry& entry :
             options.validation.evaluate(evaluated_, options.validation_steps, watching_validation))
          logs.set("val_" + entry.name, entry.value);
      }
      watching.template call<hooks::on_epoch_end>(epoch, logs);
    }
    optimizer_.finalize(strategy_.scope());
    watching.template call<hooks::on_train_end>(logs);
    return history;
  }

  /// Ends the fit after the epoch that goes on, for callbacks.
  void stop_training() noexcept { stops_ = true; }
  void stop_training_here() noexcept { stops_ = true; }
  /// See Model.
  [[nodiscard]] bool validates() const noexcept { return validates_; }
  [[nodiscard]] std::optional<Better> better(std::string_view metric) const { return evaluated_.better(metric); }
  [[nodiscard]] std::string metric_names() const { return evaluated_.metric_names(); }
  [[nodiscard]] bool callbacks_may_log(std::string_view name) const { return callbacks_may_log_(name); }
  /// Makes a fit go on in epoch `epoch`, for callbacks that restore what was trained before: in `on_train_begin`. Epochs are not
  /// begun in the middle.
  void begin_at(std::size_t epoch, std::size_t = 0) noexcept { begins_at_ = epoch; }

  /// See Model.
  template <class Make>
  auto shared_by_callbacks(std::string_view name, const Make& make) {
    return evaluated_.shared_by_callbacks(name, make);
  }

  /// The loss and the metrics over a dataset, or over arrays, as Model::evaluate has them, computed by this process with the
  /// parameters that the servers have now.
  template <class Dataset, Callback... Given>
    requires(data::Dataset<Dataset>)
  Logs evaluate(const Dataset& dataset, EvaluateOptions options = {}, Given&&... callbacks) {
    replica_.pull(strategy_.scope());
    Callbacks given{*this, callbacks...};
    TestCallback watching{given};
    return evaluated_.evaluate(dataset, std::move(options), watching);
  }
  template <class X, class Y, Callback... Given>
  Logs evaluate(const Tensor<X>& x, const Tensor<Y>& y, EvaluateOptions options = {}, Given&&... callbacks) {
    replica_.pull(strategy_.scope());
    Callbacks given{*this, callbacks...};
    TestCallback watching{given};
    return evaluated_.evaluate(x, y, std::move(options), watching);
  }

  /// What the network makes of every element of a dataset, or of the rows of an array, as Model::predict has it, computed by this
  /// process (spec Q25).
  template <class Data, Callback... Given>
  auto predict(const Data& data, PredictOptions options = {}, Given&&... callbacks) {
    replica_.pull(strategy_.scope());
    return evaluated_.predict(data, std::move(options), callbacks...);
  }

 private:
  /// The measurements of the workers, under the names that a Model has for its own.
  struct ServerMeasures {
    static constexpr bool may_be_absent = true;
    Model& model;
    void track(auto& visit) {
      std::size_t first = 0;
      detail::for_each_sum(model.logs_, [&](std::string_view key, auto& leaf) {
        visit(key, VariablePart{model.sums_, first, leaf.shape()});
        first += leaf.shape().elements();
      });
    }
  };

  static void require_options(const FitOptions& options) {
    if (!options.steps_per_epoch)
      throw InvalidArgument("fit under a ParameterServer was not told how many steps an epoch has",
                            "workers make their datasets themselves, and nobody knows how many batches these have",
                            "Give FitOptions.steps_per_epoch, the number of batches of all workers together");
    detail::require_counts(options);
    if (options.verbose == 1)
      throw InvalidArgument("fit under a ParameterServer shows no progress bar",
                            "verbose is 1, and the steps of workers are not seen one by one",
                            "Give FitOptions.verbose 2 for one line per epoch, or 0 for silence");
  }

  /// What the workers have measured.
  [[nodiscard]] Logs read_logs() {
    const Tensor<double> sums = sums_.read(strategy_.scope());
    detail::set_sums(logs_, replica_.strategy().scope(), sums.elements());
    return logs_.trained().read();
  }

  ParameterServer<Via>& strategy_;
  Network& network_;
  ServerOptimizer<Network, O> optimizer_;
  const SentFunction<L> loss_;
  const std::tuple<SentFunction<Ms>...> metrics_;
  Replica replica_;
  Evaluated evaluated_;
  Steps logs_;
  ServerVariable<double, Via> sums_;
  std::size_t epochs_trained_ = 0;
  bool validates_ = false;
  bool (*callbacks_may_log_)(std::string_view name) = nullptr;
  bool stops_ = false;
  std::size_t begins_at_ = 0;
};

}  // namespace dist::nn
