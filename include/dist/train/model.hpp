#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/input_context.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/context/select_replica.hpp>
#include <dist/context/strategy.hpp>
#include <dist/context/worker_copies.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/log.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/core/track.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/nn/describe_layers.hpp>
#include <dist/nn/losses/reduced.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/values.hpp>
#include <dist/strategy/compile.hpp>
#include <dist/train/batch_parts.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/fit_options.hpp>
#include <dist/train/has_model_files.hpp>
#include <dist/train/history.hpp>
#include <dist/train/logs.hpp>
#include <dist/train/model_steps.hpp>
#include <dist/train/predictions.hpp>
#include <dist/train/progress_bar.hpp>
#include <dist/train/progress_callback.hpp>

namespace dist {

template <class Strategy>
class ClusterCoordinator;  // <dist/parameter_server.hpp>

}  // namespace dist

namespace dist::nn {

namespace detail {

/// Some steps of a fit on a worker of a ParameterServer.
struct StepsOnWorker {
  std::uint64_t steps;
  std::vector<float> class_weight;

  void operator()(auto& replica, auto& model, auto& data) const {
    model.take_steps(replica, data, steps, class_weight);
  }
};

template <class C>
inline constexpr bool sees_epochs =
    has_one_of<C, hooks::on_train_begin, hooks::on_epoch_begin, hooks::on_epoch_end, hooks::on_train_end,
               hooks::on_test_begin, hooks::on_test_batch_begin, hooks::on_test_batch_end, hooks::on_test_end>;

}  // namespace detail

/// A network with what it takes to train it on a strategy (spec Q):
///
///     nn::Model model{strategy, net, nn::Adam{}, nn::SparseCategoricalCrossentropy{},
///                     nn::SparseCategoricalAccuracy{}};
///     auto history = model.fit(train, {.epochs = 5, .validation = test});
///
/// Datasets give global batches with members `x` and `y`. Refers to the strategy and the network, which must
/// outlive it.
///
/// Under a ParameterServer workers train the network without waiting for each other, each on a dataset of its own: see `fit` of a
/// function. The coordinator calls callbacks between epochs, evaluates and predicts itself, with the parameters that the servers
/// have, and saves.
template <class S, class Network, class O, class L, class... Ms>
class Model : public detail::HasModelFiles<Model<S, Network, O, L, Ms...>> {
  /// Workers take the steps of a fit.
  static constexpr bool schedules_steps = RemoteStore<typename S::Store>;
  static_assert(detail::FitLoss<L>::is_one_number,
                "Model needs a loss of one number: give it nn::Reduction::SumOverBatchSize or nn::Reduction::Sum");

 public:
  using FitOptions = nn::FitOptions<Model>;
  static constexpr bool calls_between_batches = !schedules_steps;

  /// Throws InvalidArgument for hyper-parameters out of range, for a network that is not trainable and for two metrics
  /// of one name, WrongStrategy for a network of another strategy, OutOfMemory.
  Model(S& strategy, Network& network, O optimizer, L loss, Ms... metrics)
      : variables_made_(strategy),
        strategy_(strategy),
        metrics_(metrics...),
        steps_(strategy, network, std::move(optimizer), std::move(loss), std::move(metrics)...),
        train_(steps_.train_step()),
        test_(steps_.test_step()),
        infer_(steps_.infer_step()) {}
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  [[nodiscard]] S& strategy() const noexcept { return strategy_; }
  [[nodiscard]] Network& network() const noexcept { return steps_.network(); }
  /// A table of the network's layers (nn::summary), where they are known.
  [[nodiscard]] std::string summary() const requires KnowsLayers<Network> {
    return nn::summary(describe_layers<typename Network::Architecture>());
  }
  [[nodiscard]] Optimizer<S, Network, O>& optimizer() noexcept { return steps_.optimizer(); }
  /// Whether this process is the one that shows and writes what there is once.
  [[nodiscard]] bool is_chief() const { return strategy_.is_chief(); }
  // See HasWorkerCopies.
  [[nodiscard]] const VariablesMade& variables_made() const noexcept { return variables_made_; }
  [[nodiscard]] auto arguments() const requires schedules_steps {
    return std::apply(
        [&](const Ms&... metric) {
          return std::tuple<Network&, const O&, const L&, const Ms&...>{steps_.network(), steps_.optimizer().function(),
                                                                        steps_.loss_function(), metric...};
        },
        metrics_);
  }

  /// All that outlives a run: the network, the optimizer, the metrics by their names, and how many epochs it has been
  /// trained. A metric that a checkpoint has not, because the model had it later, is left as it is. See Trackable.
  void track(auto& visit) requires Trackable<Network> {
    steps_.track(visit);
    visit("epochs", epochs_trained_);
  }

  /// Trains until epoch `options.epochs`, and returns the logs of every epoch: the loss, averaged over the examples of the
  /// epoch, the metrics, and the same of the validation dataset. Elements have members `x` and `y`, or are tuples of
  /// features, targets and, where they have them, sample weights. Gradients are those of the mean loss over the rows of a
  /// global batch, whatever number of them each replica has; with nn::Reduction::Sum of their sum (spec P05). Another fit goes on where the last one ended,
  /// so that its epochs are shuffled in other orders. When training ends the optimizer is finalized. `callbacks` are called
  /// as training goes on, before the progress bar and the history; see Callback.
  ///
  /// Throws InvalidArgument for a dataset without a batch, for one without an end unless `options.steps_per_epoch` are
  /// given (spec Q04), and what the step throws.
  template <class Dataset, class... Given>
    requires(data::Dataset<Dataset> && !schedules_steps)
  History fit(const Dataset& dataset, FitOptions options, Given&&... callbacks) {
    refuse_options_of_arrays(options.batch_size || options.shuffle || options.validation_split != 0, "fit");
    if constexpr (require_callbacks<Given...>())
      return fit_batches(dataset, std::move(options), callbacks...);
    else
      return {};
  }
  template <class Dataset>
    requires(data::Dataset<Dataset> && !schedules_steps)
  History fit(const Dataset& dataset) { return fit(dataset, FitOptions{}); }

  /// Under a ParameterServer: lets the workers take the steps, `options.steps_per_epoch` an epoch, of all workers together.
  /// `make_dataset(const dist::InputContext&)` makes the dataset of a worker, as for
  /// `ClusterCoordinator::create_per_worker_dataset`, which begins anew where it ends; a batch is one step's. The fit has a
  /// ClusterCoordinator of its own. `callbacks` are called between epochs, when no step runs.
  ///
  /// Throws InvalidArgument where `steps_per_epoch` is left out (spec Q25), and for a progress bar (spec Q16); what a step throws as
  /// RemoteError; and Unavailable.
  template <class MakeDataset, Callback... Given>
    requires schedules_steps History fit(const MakeDataset& make_dataset, FitOptions options, Given&&... callbacks) {
      constexpr bool is_function = !data::Dataset<MakeDataset>;
      constexpr bool sees_epochs = (detail::sees_epochs<Given> && ...);
      static_assert(is_function,
                    "the workers of a ParameterServer make their datasets themselves: give fit a function of a const "
                    "dist::InputContext& that returns one");
      static_assert(
          sees_epochs,
          "under a ParameterServer no callback sees training batches, as workers do not wait for each other: give "
          "it a hook of epochs, such as on_epoch_end");
      if constexpr (is_function && sees_epochs)
        return fit_on_workers(make_dataset, std::move(options), callbacks...);
      else
        return {};
    }
  /// Some steps of a fit, on a worker.
  template <class Replica, class Data>
  void take_steps(const Replica& replica, Data& data, std::uint64_t steps, const std::vector<float>& class_weight) {
    steps_.class_weights().set(class_weight);
    for (std::uint64_t step = 0; step < steps; ++step) {
      if (step > 0) replica.next_step();
      typename Data::Element batch{};
      if (!data.next(batch)) {
        data.restart();
        if (!data.next(batch))
          throw InvalidArgument("The dataset of a worker has no batch", "it ended before the first",
                                "Give it at least one example, and batch before you repeat");
      }
      steps_.train(replica, batch);
    }
  }

  /// The same on arrays, in global batches of `options.batch_size` (32), shuffled unless `options.shuffle` is false.
  /// `options.validation_split` is the part of the examples, the last ones, on which it validates.
  template <class X, class Y, Callback... Given>
  History fit(const Tensor<X>& x, const Tensor<Y>& y, FitOptions options = {}, Given&&... callbacks) {
    return fit_arrays(std::tuple{TensorView<const X>{x}, TensorView<const Y>{y}}, std::move(options), callbacks...);
  }
  /// With a weight for each example, which says how much it counts in the loss and in metrics that are nn::Weighted.
  template <class X, class Y, class W, Callback... Given>
  History fit(const Tensor<X>& x, const Tensor<Y>& y, const Tensor<W>& sample_weight, FitOptions options = {},
              Given&&... callbacks) {
    return fit_arrays(std::tuple{TensorView<const X>{x}, TensorView<const Y>{y}, TensorView<const W>{sample_weight}},
                      std::move(options), callbacks...);
  }

  /// The same on what `distribute_dataset` returned.
  template <class Distributed, Callback... Given>
  History fit_distributed(Distributed& dataset, FitOptions options, Given&... callbacks) {
    detail::require_counts(options);
    const auto turn = steps_.trained().taken_by("fit");
    const std::optional<std::size_t> known = steps_of(dataset, options.steps_per_epoch.has_value());
    const std::optional<std::size_t> wanted = options.steps_per_epoch ? options.steps_per_epoch : known;
    if (options.steps_per_execution > 1 && !wanted)
      throw InvalidArgument("fit cannot tell where the groups of steps_per_execution end",
                            "the dataset does not know how many batches it has", "Give fit steps_per_epoch, too");
    // Another number of steps than a pass has: the pass goes on in the next epoch.
    const bool one_pass = options.steps_per_epoch && options.steps_per_epoch != known;

    History history;
    ProgressCallback progress{shown_by_chief(options.verbose.value_or(1)), std::move(options.console)};
    Callbacks watching{*this, callbacks..., progress, history};
    Callbacks given{*this, callbacks...};
    TestCallback watching_validation{given};  // not the progress bar, which shows its logs at the end of the epoch
    steps_.class_weights().set(std::move(options.class_weight));
    begin_fit(options, &decltype(given)::may_add_to_logs);
    watching.template call<hooks::on_train_begin>();
    const FitPosition begin = begins_at_;

    std::optional<decltype(dataset.iterate(std::uint64_t{}))> pass;
    typename Distributed::Element batch{};
    std::optional<std::size_t> steps = wanted;
    Logs logs;
    for (std::size_t index = begin.epoch; index < options.epochs && !stops_; ++index) {
      const std::size_t first = index == begin.epoch ? begin.step : 0;
      watching.template call<hooks::on_epoch_begin>(Epoch{index, options.epochs, steps});
      if (first == 0) steps_.trained().reset();
      if (!pass || !one_pass) {
        const std::size_t epochs_before = one_pass ? epochs_since(options.initial_epoch, index) : 0;
        // The order of a pass depends on its number only: that of the epoch with which it began.
        pass.emplace(dataset.iterate(epochs_trained_ - std::min(epochs_before, epochs_trained_)));
        const std::uint64_t before = epochs_before * wanted.value_or(0) + first;
        if (before > 0) seek(*pass, batch, before);
      }
      const std::size_t end = train_epoch(*pass, batch, first, wanted, options.steps_per_execution, watching);
      if (stops_here_ || (end == 0 && stops_)) break;
      if (index == begin.epoch) require_batches(end);
      if (end == 0 || (options.steps_per_epoch && end < *options.steps_per_epoch && !stops_)) {
        warn_of_end_of_data(index, end, options);
        stops_ = true;
        if (end == 0) break;  // the epoch before was the last one
      }
      steps = end;
      ++epochs_trained_;
      logs = steps_.trained().read();
      validate_after(index, options, watching_validation, logs);
      watching.template call<hooks::on_epoch_end>(Epoch{index, options.epochs, steps}, logs);
      stops_ = dist::detail::any_process(strategy_, stops_);
    }
    if (!stops_here_) optimizer().finalize(strategy_.scope());
    watching.template call<hooks::on_train_end>(logs);
    steps_.class_weights().set({});
    return history;
  }

  /// Ends the fit, for callbacks: after the epoch that goes on where there are several processes, which all stop there,
  /// else after the batch.
  void stop_training() noexcept {
    stops_ = true;
    stops_after_batch_ = stops_after_batch_ || is_alone();
  }
  /// Ends the fit after the batch, with the logs of the part of the epoch that is done: for what all processes know. They call
  /// it after the same batch.
  void stop_training_after_batch() noexcept { stops_ = stops_after_batch_ = true; }
  /// Ends the fit after the batch, without logs of its epoch, which another fit continues. All processes call it after the
  /// same batch.
  void stop_training_here() noexcept { stops_ = stops_after_batch_ = stops_here_ = true; }
  /// True if the fit that runs has a validation, after this epoch or others.
  [[nodiscard]] bool validates() const noexcept { return validates_; }
  /// The direction in which the loss, or the metric of that name, improves; nothing for other names.
  [[nodiscard]] std::optional<Better> better(std::string_view metric) const { return steps_.better(metric); }
  /// "loss, accuracy": the names of the loss and of the metrics.
  [[nodiscard]] std::string metric_names() const { return steps_.metric_names(); }
  /// Whether a callback of the fit that runs may add that name to the logs.
  [[nodiscard]] bool callbacks_may_log(std::string_view name) const { return callbacks_may_log_(name); }
  /// Makes a fit go on in epoch `epoch`, after its first `step` global batches, for callbacks that restore what was
  /// trained before: in `on_train_begin`.
  void begin_at(std::size_t epoch, std::size_t step = 0) noexcept { begins_at_ = {epoch, step}; }

  /// What callbacks of this model have together, by its name: what `make()`, a shared pointer, was when the first of them
  /// asked, until the last one lets go of it.
  template <class Make>
  auto shared_by_callbacks(std::string_view name, const Make& make) {
    using Pointer = decltype(make());
    std::erase_if(shared_, [](const Shared& each) { return each.object.expired(); });
    for (const Shared& each : shared_)
      if (each.name == name) return std::static_pointer_cast<typename Pointer::element_type>(each.object.lock());
    Pointer made = make();
    shared_.push_back({std::string(name), made});
    return made;
  }

  /// The loss and the metrics over `dataset`, every example counted once. Throws InvalidArgument for a
  /// dataset without a batch, and for one without an end unless `options.steps` are given.
  template <class Dataset, class... Given>
    requires(data::Dataset<Dataset>)
  Logs evaluate(const Dataset& dataset, EvaluateOptions options, Given&&... callbacks) {
    refuse_options_of_arrays(options.batch_size.has_value(), "evaluate");
    if constexpr (require_callbacks<Given...>())
      return evaluate_batches(dataset, std::move(options), callbacks...);
    else
      return {};
  }
  template <class Dataset>
    requires(data::Dataset<Dataset>)
  Logs evaluate(const Dataset& dataset) { return evaluate(dataset, EvaluateOptions{}); }
  /// The same on arrays, in global batches of `options.batch_size` (32).
  template <class X, class Y, Callback... Given>
  Logs evaluate(const Tensor<X>& x, const Tensor<Y>& y, EvaluateOptions options = {}, Given&&... callbacks) {
    return evaluate_arrays(std::tuple{TensorView<const X>{x}, TensorView<const Y>{y}}, std::move(options),
                           callbacks...);
  }
  /// With a weight for each example, which says how much it counts in the loss and in metrics that are nn::Weighted.
  template <class X, class Y, class W, Callback... Given>
  Logs evaluate(const Tensor<X>& x, const Tensor<Y>& y, const Tensor<W>& sample_weight, EvaluateOptions options = {},
                Given&&... callbacks) {
    return evaluate_arrays(
        std::tuple{TensorView<const X>{x}, TensorView<const Y>{y}, TensorView<const W>{sample_weight}},
        std::move(options), callbacks...);
  }

  /// The same for what `distribute_dataset` returned, of at most `steps` batches. Prints nothing; `callbacks` are called.
  template <class Distributed, Callback... Given>
  Logs evaluate_distributed(Distributed& dataset, std::optional<std::size_t> steps, Given&... callbacks) {
    [[maybe_unused]] const auto local = local_steps();
    const auto turn = steps_.tested().taken_by("evaluate");
    Callbacks watching{*this, callbacks...};
    const std::optional<std::size_t> known = steps_of(dataset, steps.has_value());
    watching.template call<hooks::on_test_begin>(steps ? steps : known);
    steps_.tested().reset();
    auto pass = dataset.iterate(0);
    typename Distributed::Element batch{};
    std::size_t step = 0;
    for (; (!steps || step < *steps) && pass.next(batch); ++step) {
      watching.template call<hooks::on_test_batch_begin>(step);
      test_(batch);
      watching.template call<hooks::on_test_batch_end>(step, steps_.tested().current());
    }
    require_batches(step);
    const Logs& logs = steps_.tested().read();
    watching.template call<hooks::on_test_end>(step, logs);
    return logs;
  }
  template <class Distributed>
  Logs evaluate_distributed(Distributed& dataset) {
    return evaluate_distributed(dataset, std::nullopt);
  }

  /// The batches that the replicas of this process evaluate: a share of the dataset, or all of it under a ParameterServer.
  template <class Dataset>
  [[nodiscard]] auto distribute(Dataset dataset, const data::InputOptions& options) const {
    if constexpr (schedules_steps)
      return strategy_.distribute_dataset_here(std::move(dataset), options);
    else
      return strategy_.distribute_dataset(std::move(dataset), options);
  }

  /// What the network makes of every element of a dataset, in their order, in the host's memory: the same in all processes
  /// (spec Q12), which share the batches out. Elements are features, or tuples or Examples that begin with them. Throws
  /// InvalidArgument as `evaluate` does.
  template <class Dataset, Callback... Given>
    requires(data::Dataset<Dataset>)
  auto predict(const Dataset& dataset, PredictOptions options = {}, Given&&... callbacks) {
    refuse_options_of_arrays(options.batch_size.has_value(), "predict");
    return predict_batches(dataset, std::move(options), callbacks...);
  }
  /// The same of the rows of an array, in global batches of `options.batch_size` (32).
  template <class X, Callback... Given>
  auto predict(const Tensor<X>& x, PredictOptions options = {}, Given&&... callbacks) {
    const auto slices = slices_of(std::tuple{TensorView<const X>{x}}, {0, x.rows()});
    return predict_batches(slices | data::batch(options.batch_size.value_or(default_batch_size)), std::move(options),
                           callbacks...);
  }

  /// One update with the examples of one global batch, and its logs: the loss and the metrics before the update. Calls no
  /// callbacks, as the other functions on batches. Of one process (spec Q15): throws WrongStrategy where there are several.
  template <class X, class Y>
  Logs train_on_batch(const Tensor<X>& x, const Tensor<Y>& y, TrainOnBatchOptions options = {}) {
    return train_on(std::tuple{TensorView<const X>{x}, TensorView<const Y>{y}}, std::move(options));
  }
  /// With a weight for each example.
  template <class X, class Y, class W>
  Logs train_on_batch(const Tensor<X>& x, const Tensor<Y>& y, const Tensor<W>& sample_weight,
                      TrainOnBatchOptions options = {}) {
    return train_on(std::tuple{TensorView<const X>{x}, TensorView<const Y>{y}, TensorView<const W>{sample_weight}},
                    std::move(options));
  }
  /// The loss and the metrics of one global batch. Of one process, as `train_on_batch`.
  template <class X, class Y>
  Logs test_on_batch(const Tensor<X>& x, const Tensor<Y>& y) {
    return test_on(std::tuple{TensorView<const X>{x}, TensorView<const Y>{y}});
  }
  /// With a weight for each example.
  template <class X, class Y, class W>
  Logs test_on_batch(const Tensor<X>& x, const Tensor<Y>& y, const Tensor<W>& sample_weight) {
    return test_on(std::tuple{TensorView<const X>{x}, TensorView<const Y>{y}, TensorView<const W>{sample_weight}});
  }
  /// What the network makes of the rows of one global batch: as `predict`, in one step.
  template <class X>
  auto predict_on_batch(const Tensor<X>& x) {
    return predict(x, {.verbose = 0, .batch_size = std::max<std::size_t>(x.rows(), 1)});
  }

 private:
  template <class... Given>
  [[nodiscard]] static constexpr bool require_callbacks() {
    constexpr bool are_callbacks = (Callback<Given> && ...);
    static_assert(are_callbacks,
                  "what is given to fit and evaluate behind the options has a hook of nn::Callback with the arguments "
                  "listed at nn::hooks, such as on_epoch_end(const nn::Epoch&, nn::Logs&)");
    return are_callbacks;
  }
  static void refuse_options_of_arrays(bool given, std::string_view who) {
    if (given)
      throw InvalidArgument(concat(who, " was given options of arrays with a dataset"),
                            "batch_size, shuffle and validation_split are for arrays",
                            "Batch and shuffle the dataset: dataset | dist::data::shuffle(rows, seed) | "
                            "dist::data::batch(global_batch)");
  }
  static void require_batches(std::size_t steps) {
    if (steps == 0)
      throw InvalidArgument("The dataset of fit or evaluate has no batch", "it ended before the first",
                            "Give it at least one example, and batch before you repeat");
  }
  void warn_of_end_of_data(std::size_t epoch, std::size_t steps, const FitOptions& options) const {
    if (!is_chief()) return;
    static constinit dist::detail::Warning data_ran_out;
    if (options.steps_per_epoch)
      data_ran_out.emit(concat(
          "fit ran out of data after ", epochs_since(options.initial_epoch, epoch) * *options.steps_per_epoch + steps,
          " batches and stops: give a dataset of ", *options.steps_per_epoch * (options.epochs - options.initial_epoch),
          " batches (repeat), or fewer steps_per_epoch or epochs"));
    else
      data_ran_out.emit(concat("fit stops, as the dataset has no batch in epoch ", epoch + 1,
                               ": give a dataset that begins anew in each pass, or fewer epochs"));
  }

  [[nodiscard]] bool is_alone() const { return strategy_.input_context().num_input_pipelines() == 1; }
  [[nodiscard]] Verbosity shown_by_chief(int verbose) const {
    const Verbosity wanted = verbosity(verbose);
    return is_chief() ? wanted : Verbosity::silent;
  }

  template <class MakeDataset, class... Given>
  History fit_on_workers(const MakeDataset& make_dataset, FitOptions options, Given&... callbacks) {
    refuse_options_of_arrays(options.batch_size || options.shuffle || options.validation_split != 0, "fit");
    const std::size_t steps = steps_to_schedule(options);
    History history;
    ProgressCallback progress{verbosity(options.verbose.value_or(2)), std::move(options.console)};
    Callbacks watching{*this, callbacks..., progress, history};
    Callbacks given{*this, callbacks...};
    TestCallback watching_validation{given};
    begin_fit(options, &decltype(given)::may_add_to_logs);
    ClusterCoordinator<S> coordinator{strategy_};
    const auto data = coordinator.create_per_worker_dataset(make_dataset);
    watching.template call<hooks::on_train_begin>();
    Logs logs;
    for (std::size_t index = begins_at_.epoch; index < options.epochs && !stops_; ++index) {
      const Epoch epoch{index, options.epochs, steps};
      watching.template call<hooks::on_epoch_begin>(epoch);
      steps_.trained().reset();
      for (std::size_t step = 0; step < steps; step += options.steps_per_execution)
        coordinator.schedule(
            detail::StepsOnWorker{std::min(options.steps_per_execution, steps - step), options.class_weight}, *this,
            data);
      coordinator.join();
      ++epochs_trained_;
      logs = steps_.trained().read();
      validate_after(index, options, watching_validation, logs);
      watching.template call<hooks::on_epoch_end>(epoch, logs);
    }
    optimizer().finalize(strategy_.scope());
    watching.template call<hooks::on_train_end>(logs);
    return history;
  }
  void begin_fit(const FitOptions& options, bool (*may_log)(std::string_view)) {
    stops_ = stops_after_batch_ = stops_here_ = false;
    validates_ = static_cast<bool>(options.validation);
    callbacks_may_log_ = may_log;
    begins_at_ = {options.initial_epoch, 0};
  }
  /// Adds the logs of the validation that follows epoch `index`, if one does.
  void validate_after(std::size_t index, const FitOptions& options, TestCallback& callback, Logs& logs) {
    if (!validates_ || (index + 1) % options.validation_freq != 0) return;
    for (const Logs::Entry& entry : options.validation.evaluate(*this, options.validation_steps, callback))
      logs.set("val_" + entry.name, entry.value);
  }
  /// The steps of an epoch that workers take. Throws InvalidArgument for options of a fit that they do not allow.
  [[nodiscard]] static std::size_t steps_to_schedule(const FitOptions& options) {
    if (!options.steps_per_epoch)
      throw InvalidArgument("fit under a ParameterServer was not told how many steps an epoch has",
                            "workers make their datasets themselves, and nobody knows how many batches these have",
                            "Give FitOptions.steps_per_epoch, the number of batches of all workers together");
    detail::require_counts(options);
    if (options.verbose == 1)
      throw InvalidArgument("fit under a ParameterServer shows no progress bar",
                            "verbose is 1, and the steps of workers are not seen one by one",
                            "Give FitOptions.verbose 2 for one line per epoch, or 0 for silence");
    return *options.steps_per_epoch;
  }
  struct NothingLocal {};
  /// While it lives, steps compute with the parameters as they are now, and what they measure stays in this process.
  [[nodiscard]] auto local_steps() {
    if constexpr (schedules_steps)
      return typename S::Store::Cache::LocalSteps{strategy_.variable_cache()};
    else
      return NothingLocal{};
  }

  static constexpr std::size_t default_batch_size = 32;
  /// Rows `range` of arrays that outlive it, as a dataset.
  template <class Arrays>
  static auto slices_of(const Arrays& arrays, IndexRange range) {
    return std::apply(
        [&](const auto&... array) {
          return data::TensorSlices<Arrays>{Arrays{array.rows(range.begin, range.size())...}};
        },
        arrays);
  }
  template <class Dataset, class... Given>
  History fit_batches(const Dataset& dataset, FitOptions options, Given&... callbacks) {
    auto distributed =
        strategy_.distribute_dataset(dataset, data::InputOptions{.auto_shard_policy = options.auto_shard_policy});
    return fit_distributed(distributed, std::move(options), callbacks...);
  }
  template <class Arrays, class... Given>
  History fit_arrays(const Arrays& arrays, FitOptions options, Given&... callbacks) {
    const std::size_t rows = std::get<0>(arrays).rows();
    if (!(options.validation_split >= 0 && options.validation_split < 1))
      throw InvalidArgument("FitOptions.validation_split is out of range", concat("it is ", options.validation_split),
                            "Give a part of the examples, from 0 to below 1");
    const auto batches = data::batch(options.batch_size.value_or(default_batch_size));
    const auto trained = static_cast<std::size_t>(static_cast<double>(rows) * (1 - options.validation_split));
    if (trained < rows) {
      if (options.validation)
        throw InvalidArgument("fit was given validation and validation_split", "they say two things",
                              "Leave out one of them");
      options.validation = slices_of(arrays, {trained, rows}) | batches;
    }
    const auto slices = slices_of(arrays, {0, trained});
    if (!options.shuffle.value_or(true)) return fit_batches(slices | batches, std::move(options), callbacks...);
    const auto shuffled = slices | data::shuffle(std::max<std::size_t>(trained, 1), options.shuffle_seed);
    return fit_batches(shuffled | batches, std::move(options), callbacks...);
  }
  template <class Dataset, class... Given>
  Logs evaluate_batches(const Dataset& dataset, EvaluateOptions options, Given&... callbacks) {
    auto distributed =
        distribute(dataset, data::InputOptions{.auto_shard_policy = options.auto_shard_policy, .single_pass = true});
    ProgressCallback progress{shown_by_chief(options.verbose), std::move(options.console)};
    return evaluate_distributed(distributed, options.steps, progress, callbacks...);
  }
  template <class Arrays, class... Given>
  Logs evaluate_arrays(const Arrays& arrays, EvaluateOptions options, Given&... callbacks) {
    const auto slices = slices_of(arrays, {0, std::get<0>(arrays).rows()});
    const auto batches = data::batch(options.batch_size.value_or(default_batch_size));
    return evaluate_batches(slices | batches, std::move(options), callbacks...);
  }
  template <class Dataset, class... Given>
  auto predict_batches(const Dataset& dataset, PredictOptions options, Given&... callbacks) {
    ProgressCallback progress{shown_by_chief(options.verbose), std::move(options.console)};
    Callbacks watching{*this, callbacks..., progress};
    [[maybe_unused]] const auto local = local_steps();
    // Every process passes over all batches, so that each knows where the rows of every step belong.
    auto distributed = [&] {
      if constexpr (S::wraps_values || schedules_steps)
        return strategy_.distribute_dataset_here(dataset, data::InputOptions{.single_pass = true});
      else
        return strategy_.distribute_dataset(dataset);
    }();
    const std::optional<std::size_t> known = steps_of(distributed, options.steps.has_value());
    watching.template call<hooks::on_predict_begin>(options.steps ? options.steps : known);
    const InputContext input = strategy_.input_context();
    auto pass = distributed.iterate(0);
    typename decltype(distributed)::Element batch{};
    using Outputs = decltype(infer_(std::as_const(batch)));
    using T = std::remove_const_t<typename decltype(values_of(
        dist::select_replica(0, std::declval<const Outputs&>())))::Element>;
    detail::Predictions<T> predictions{strategy_.num_local_replicas()};
    std::size_t step = 0;
    const auto infer_all = [&] {
      for (; (!options.steps || step < *options.steps) && pass.next(batch); ++step) {
        watching.template call<hooks::on_predict_batch_begin>(step);
        const auto put = [&](auto& replica, const auto& outputs) { predictions.put(replica, values_of(outputs)); };
        const bool is_mine = step % input.num_input_pipelines() == input.input_pipeline_id();
        if constexpr (CompilesSteps<typename S::Device>) {
          strategy_.run(put, infer_(batch));  // one process: all steps are its own
        } else {
          strategy_.run_here(
              [&](auto& replica, const auto& part) {
                const auto& x = std::get<0>(detail::parts_of_batch<1>(part));
                if (is_mine)
                  put(replica, steps_.infer(replica, x));
                else
                  predictions.leave_out(replica, values_of(x).rows());
              },
              batch);
        }
        predictions.end_step();
        watching.template call<hooks::on_predict_batch_end>(step);
      }
      require_batches(step);
      return predictions.join(strategy_.workers());
    };
    Tensor<T> all = dist::detail::run_collectively(strategy_, infer_all);
    watching.template call<hooks::on_predict_end>(step);
    return all;
  }
  template <class Arrays>
  Logs train_on(const Arrays& arrays, TrainOnBatchOptions options) {
    const auto turn = steps_.trained().taken_by("train_on_batch");
    steps_.class_weights().set(std::move(options.class_weight));
    return on_batch("train_on_batch", arrays, train_, steps_.trained());
  }
  template <class Arrays>
  Logs test_on(const Arrays& arrays) {
    const auto turn = steps_.tested().taken_by("test_on_batch");
    return on_batch("test_on_batch", arrays, test_, steps_.tested());
  }
  template <class Arrays, class Step>
  Logs on_batch(std::string_view who, const Arrays& arrays, Step& step, auto& measures) {
    if (!is_alone())
      throw WrongStrategy(concat(who, " was called in one of several processes"), strategy_.describe(),
                          "Call fit or evaluate, which divide a dataset among the processes (spec Q15)");
    const std::size_t rows = std::get<0>(arrays).rows();
    auto distributed =
        strategy_.distribute_dataset(slices_of(arrays, {0, rows}) | data::batch(std::max<std::size_t>(rows, 1)));
    measures.reset();
    auto pass = distributed.iterate(0);
    typename decltype(distributed)::Element batch{};
    const bool has_batch = pass.next(batch);
    require_batches(has_batch ? 1 : 0);
    step(batch);
    return measures.read();
  }

  /// Trains on the batches of a pass until step `wanted`, or to its end, from step `first` on. Returns where it ended.
  template <class Pass, class Batch, class Watching>
  std::size_t train_epoch(Pass& pass, Batch& batch, std::size_t first, std::optional<std::size_t> wanted,
                          std::size_t steps_per_execution, Watching& watching) {
    std::size_t step = first;
    std::size_t told = first;  // up to here callbacks know
    const auto tell = [&] {
      if (step > told) watching.template call<hooks::on_train_batch_end>(step - 1, steps_.trained().current());
      told = step;
    };
    for (; (!wanted || step < *wanted) && !stops_after_batch_ && pass.next(batch);) {
      if (step == told) watching.template call<hooks::on_train_batch_begin>(step);
      train_(batch);
      ++step;
      if (step - told == steps_per_execution) tell();
    }
    tell();
    return step;
  }
  [[nodiscard]] static std::size_t epochs_since(std::size_t first, std::size_t index) noexcept {
    return index - std::min(first, index);
  }
  /// Goes on as if the pass had given `position` batches.
  template <class Pass, class Batch>
  static void seek(Pass& pass, Batch& batch, std::uint64_t position) {
    if constexpr (data::Resumable<Pass>)
      pass.seek(position);
    else
      while (position > 0 && pass.next(batch)) --position;
  }

  /// Where a fit begins: an epoch, and how many of its steps are done.
  struct FitPosition {
    std::size_t epoch = 0;
    std::size_t step = 0;
  };

  /// No number while it is unknown (spec Q05).
  template <class Distributed>
  static std::optional<std::size_t> steps_of(const Distributed& dataset, bool has_end) {
    const auto cardinality = dataset.cardinality();
    if (cardinality.is_infinite() && !has_end)
      throw InvalidArgument("The dataset of fit or evaluate has no end", "its cardinality is infinite",
                            "Leave out repeat, or give it a number, or say how many steps there are to be");
    if (!cardinality.is_known()) return std::nullopt;
    return cardinality.count();
  }

  struct NoMetrics {
    explicit NoMetrics(const Ms&...) {}
  };
  struct Shared {
    std::string name;
    std::weak_ptr<void> object;
  };

  VariablesMade variables_made_;
  S& strategy_;
  [[no_unique_address]] std::conditional_t<schedules_steps, std::tuple<Ms...>, NoMetrics> metrics_;
  using Steps = detail::ModelSteps<S, Network, O, L, Ms...>;
  Steps steps_;
  decltype(std::declval<Steps&>().train_step()) train_;
  decltype(std::declval<Steps&>().test_step()) test_;
  decltype(std::declval<Steps&>().infer_step()) infer_;
  std::vector<Shared> shared_;
  std::size_t epochs_trained_ = 0;
  bool validates_ = false;
  bool (*callbacks_may_log_)(std::string_view name) = nullptr;
  bool stops_ = false;              // training, after this epoch
  bool stops_after_batch_ = false;  // after this batch, in all processes
  bool stops_here_ = false;         // the same, without logs of the epoch
  FitPosition begins_at_;
};

template <Strategy S, class Network, class O, class L, class... Ms>
Model(S&, Network&, O, L, Ms...) -> Model<S, Network, O, L, Ms...>;

template <dist::detail::NoStrategy S, class Network, class O, class L, class... Ms>
struct Model<S, Network, O, L, Ms...> : dist::detail::Refused {
  using Refused::Refused;
  static_assert(dist::detail::always_false<S>,
                DIST_NEEDS_STRATEGY("a model",
                                    "nn::Model model{strategy, net, nn::Adam{}, nn::SparseCategoricalCrossentropy{}}"));
};
template <dist::detail::NoStrategy First, class... Rest>
Model(First&&, Rest&&...) -> Model<std::remove_reference_t<First>, void, void, void>;

}  // namespace dist::nn
