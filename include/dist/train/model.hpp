#pragma once

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
#include <dist/context/replica_function.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/context/strategy.hpp>
#include <dist/context/worker_copies.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/tensor.hpp>
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
#include <dist/train/callbacks.hpp>
#include <dist/train/fit_loop.hpp>
#include <dist/train/fit_options.hpp>
#include <dist/train/history.hpp>
#include <dist/train/logs.hpp>
#include <dist/train/model_steps.hpp>
#include <dist/train/model_view.hpp>
#include <dist/train/predictions.hpp>
#include <dist/train/progress_bar.hpp>

namespace dist {

template <class Strategy>
class ClusterCoordinator;  // <dist/parameter_server.hpp>

}  // namespace dist

namespace dist::nn {

namespace detail {

/// Runs some steps of a fit on a worker of a ParameterServer.
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

/// A network with an optimizer, a loss and metrics, to train it on a strategy (spec Q):
///
///     nn::Model model{strategy, net, nn::Adam{}, nn::SparseCategoricalCrossentropy{},
///                     nn::SparseCategoricalAccuracy{}};
///     auto history = model.fit(train, {.epochs = 5, .validation = test});
///
/// Datasets consist of global batches with members `x` and `y`. Refers to the strategy and the network, which must
/// outlive it.
///
/// Under a ParameterServer, workers train the network asynchronously, each on its own dataset: see the overload of
/// `fit` for a function. The coordinator calls callbacks between epochs, evaluates and predicts itself with the
/// servers' parameters, and saves.
template <class S, class Network, class O, class L, class... Ms>
class Model final : public ModelView, public detail::HasModelFiles<Model<S, Network, O, L, Ms...>> {
  /// True if workers run the steps of a fit.
  static constexpr bool schedules_steps = RemoteStore<typename S::Store>;
  static_assert(detail::FitLoss<L>::is_one_number,
                "Model needs a loss of one number: give it nn::Reduction::SumOverBatchSize or nn::Reduction::Sum");

 public:
  /// The options of `fit`.
  using FitOptions = nn::FitOptions<Model>;
  /// True if callbacks are called between training batches: under all strategies except a ParameterServer.
  static constexpr bool calls_between_batches = !schedules_steps;

  /// Throws InvalidArgument if hyper-parameters are out of range, the network is not trainable or two metrics have the
  /// same name, WrongStrategy if the network belongs to another strategy, OutOfMemory.
  Model(S& strategy, Network& network, O optimizer, L loss, Ms... metrics)
      : ModelView(std::make_shared<const dist::detail::AnyStrategyOf<S>>(strategy), calls_between_batches),
        variables_made_(strategy),
        strategy_(strategy),
        metrics_(metrics...),
        steps_(strategy, network, std::move(optimizer), std::move(loss), std::move(metrics)...),
        train_(steps_.train_step()),
        test_(steps_.test_step()),
        infer_(steps_.infer_step()) {}
  /// The strategy of the network and of the steps.
  [[nodiscard]] S& strategy() const noexcept { return strategy_; }
  /// The network that the model trains.
  [[nodiscard]] Network& network() const noexcept { return steps_.network(); }
  /// Returns a table of the network's layers (nn::summary), if known.
  [[nodiscard]] std::string summary() const requires KnowsLayers<Network> {
    return nn::summary(describe_layers<typename Network::Architecture>());
  }
  /// The optimizer with its state, such as its iterations.
  [[nodiscard]] Optimizer<S, Network, O>& optimizer() noexcept { return steps_.optimizer(); }
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

  /// Visits the saved state: the network, the optimizer, the metrics by name, and the number of trained epochs. Metrics
  /// that a checkpoint lacks, because they were added later, are unchanged. See Trackable.
  void track(auto& visit) requires Trackable<Network> {
    steps_.track(visit);
    visit("epochs", fit_.epochs_trained);
  }

  /// Trains until epoch `options.epochs`, and returns the logs of every epoch: the mean loss over its examples, the
  /// metrics, and the same for the validation dataset. Elements have members `x` and `y`, or are tuples of features,
  /// targets and optional sample weights. The gradients follow from the mean loss over the rows of a global batch,
  /// however these are divided among replicas; with nn::Reduction::Sum, from the sum (spec P05). Another fit continues
  /// with the next epoch number, and so another shuffle. The optimizer is finalized at the end. `callbacks` are called
  /// before the progress bar and the history; see Callback.
  ///
  /// Throws InvalidArgument if the dataset has no batches, or is infinite and `options.steps_per_epoch` is empty (spec
  /// Q04). Exceptions of steps propagate.
  template <class Dataset, class... Given>
    requires(data::Dataset<Dataset> && !schedules_steps)
  History fit(const Dataset& dataset, FitOptions options, Given&&... callbacks) {
    detail::refuse_options_of_arrays(options.batch_size || options.shuffle || options.validation_split != 0, "fit");
    if constexpr (require_callbacks<Given...>())
      return fit_batches(dataset, std::move(options), callbacks...);
    else
      return {};
  }
  /// Trains for one epoch with the default options.
  template <class Dataset>
    requires(data::Dataset<Dataset> && !schedules_steps)
  History fit(const Dataset& dataset) { return fit(dataset, FitOptions{}); }

  /// Under a ParameterServer, schedules `options.steps_per_epoch` steps per epoch on the workers, in total.
  /// `make_dataset(const dist::InputContext&)` makes a worker's dataset, like for
  /// `ClusterCoordinator::create_per_worker_dataset`; it restarts at its end. A step uses one batch. The fit has its
  /// own ClusterCoordinator. `callbacks` are called between epochs, when no steps run.
  ///
  /// Throws InvalidArgument if `steps_per_epoch` is empty (spec Q25), or for a progress bar (spec Q16); RemoteError for
  /// exceptions of steps; and Unavailable.
  template <class MakeDataset, Callback... Given>
    requires schedules_steps History fit(const MakeDataset& make_dataset, FitOptions options, Given&&... callbacks) {
      constexpr bool is_function = !data::Dataset<MakeDataset>;
      constexpr bool sees_epochs = (detail::sees_epochs<Given> && ...);
      static_assert(is_function,
                    "the workers of a ParameterServer make their own datasets: give fit a function of a const "
                    "dist::InputContext& that returns one");
      static_assert(sees_epochs,
                    "under a ParameterServer no callback sees training batches, because workers do not wait for each "
                    "other: give it a hook for epochs, such as on_epoch_end");
      if constexpr (is_function && sees_epochs)
        return fit_on_workers(make_dataset, std::move(options), callbacks...);
      else
        return {};
    }
  /// Runs some steps of a fit on a worker.
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

  /// Trains on arrays, in global batches of `options.batch_size` (32), shuffled unless `options.shuffle` is false.
  /// `options.validation_split` is the fraction of the examples, from the end, for validation.
  template <class X, class Y, Callback... Given>
  History fit(const Tensor<X>& x, const Tensor<Y>& y, FitOptions options = {}, Given&&... callbacks) {
    return fit_arrays(std::tuple{TensorView<const X>{x}, TensorView<const Y>{y}}, std::move(options), callbacks...);
  }
  /// Trains on arrays with sample weights, which apply to the loss and to metrics in nn::Weighted.
  template <class X, class Y, class W, Callback... Given>
  History fit(const Tensor<X>& x, const Tensor<Y>& y, const Tensor<W>& sample_weight, FitOptions options = {},
              Given&&... callbacks) {
    return fit_arrays(std::tuple{TensorView<const X>{x}, TensorView<const Y>{y}, TensorView<const W>{sample_weight}},
                      std::move(options), callbacks...);
  }

  /// Trains on a result of `distribute_dataset`.
  template <class Distributed, Callback... Given>
  History fit_distributed(Distributed& dataset, FitOptions options, Given&... callbacks) {
    const detail::FitPlan plan = plan_of(options);
    detail::require_counts(plan, options.validation_steps);
    const auto turn = steps_.trained().taken_by("fit");
    steps_.class_weights().set(std::move(options.class_weight));
    const Batches<Distributed, data::detail::PassBegin::any_element> batches{dataset};
    StepsOf<typename Distributed::Element, Train> steps{batches, train_};
    Callbacks given{*this, callbacks...};
    History history = fit_loop(plan, options, given, 1, [&](auto& loop) { return loop.run(steps); });
    steps_.class_weights().set({});
    return history;
  }

  // See ModelView.
  [[nodiscard]] std::optional<Better> better(std::string_view metric) const override { return steps_.better(metric); }
  [[nodiscard]] std::string metric_names() const override { return steps_.metric_names(); }
  [[nodiscard]] float learning_rate() const override { return steps_.optimizer().learning_rate(); }
  void set_learning_rate(float rate) override { steps_.optimizer().set_learning_rate(rate); }
  [[nodiscard]] std::int64_t iterations() const override { return steps_.optimizer().iterations(strategy_.scope()); }

  /// Returns the loss and the metrics over `dataset`, every example counted once. Throws InvalidArgument if the dataset
  /// has no batches, or is infinite and `options.steps` is empty.
  template <class Dataset, class... Given>
    requires(data::Dataset<Dataset>)
  Logs evaluate(const Dataset& dataset, EvaluateOptions options, Given&&... callbacks) {
    detail::refuse_options_of_arrays(options.batch_size.has_value(), "evaluate");
    if constexpr (require_callbacks<Given...>())
      return evaluate_batches(dataset, std::move(options), callbacks...);
    else
      return {};
  }
  /// Evaluates with the default options.
  template <class Dataset>
    requires(data::Dataset<Dataset>)
  Logs evaluate(const Dataset& dataset) { return evaluate(dataset, EvaluateOptions{}); }
  /// Evaluates on arrays, in global batches of `options.batch_size` (32).
  template <class X, class Y, Callback... Given>
  Logs evaluate(const Tensor<X>& x, const Tensor<Y>& y, EvaluateOptions options = {}, Given&&... callbacks) {
    return evaluate_arrays(std::tuple{TensorView<const X>{x}, TensorView<const Y>{y}}, std::move(options),
                           callbacks...);
  }
  /// Evaluates on arrays with sample weights, which apply to the loss and to metrics in nn::Weighted.
  template <class X, class Y, class W, Callback... Given>
  Logs evaluate(const Tensor<X>& x, const Tensor<Y>& y, const Tensor<W>& sample_weight, EvaluateOptions options = {},
                Given&&... callbacks) {
    return evaluate_arrays(
        std::tuple{TensorView<const X>{x}, TensorView<const Y>{y}, TensorView<const W>{sample_weight}},
        std::move(options), callbacks...);
  }

  /// Evaluates on a result of `distribute_dataset`, on at most `steps` batches. Prints nothing; calls `callbacks`.
  template <class Distributed, Callback... Given>
  Logs evaluate_distributed(Distributed& dataset, std::optional<std::size_t> steps, Given&... callbacks) {
    return evaluate_distributed(nullptr, dataset, steps, callbacks...);
  }
  /// Evaluates with the callbacks of a fit, for its validation.
  template <class Distributed>
  Logs evaluate_distributed(Distributed& dataset, std::optional<std::size_t> steps, TestCallback& watching) {
    return evaluate_steps<typename Distributed::Element>(nullptr, Batches<Distributed>{dataset}, steps, watching);
  }
  /// Evaluates all batches of a distributed dataset without callbacks.
  template <class Distributed>
  Logs evaluate_distributed(Distributed& dataset) {
    return evaluate_distributed(dataset, std::nullopt);
  }

  /// Returns the batches that the replicas of this process evaluate: a share of the dataset, or all of it under a
  /// ParameterServer.
  template <class Dataset>
  [[nodiscard]] auto distribute(Dataset dataset, const data::InputOptions& options) const {
    if constexpr (schedules_steps)
      return strategy_.distribute_dataset_here(std::move(dataset), options);
    else
      return strategy_.distribute_dataset(std::move(dataset), options);
  }

  /// Returns the network's outputs for all elements of a dataset, in order, in host memory, the same in all processes
  /// (spec Q12), which share the work. Elements are features, or tuples or Examples that begin with features. Throws
  /// InvalidArgument like `evaluate`.
  template <class Dataset, Callback... Given>
    requires(data::Dataset<Dataset>)
  auto predict(const Dataset& dataset, PredictOptions options = {}, Given&&... callbacks) {
    detail::refuse_options_of_arrays(options.batch_size.has_value(), "predict");
    return predict_batches(dataset, std::move(options), callbacks...);
  }
  /// Predicts for the rows of an array, in global batches of `options.batch_size` (32).
  template <class X, Callback... Given>
  auto predict(const Tensor<X>& x, PredictOptions options = {}, Given&&... callbacks) {
    const auto slices = slices_of(std::tuple{TensorView<const X>{x}}, {0, x.rows()});
    return predict_batches(slices | data::batch(options.batch_size.value_or(default_batch_size)), std::move(options),
                           callbacks...);
  }

  /// Trains one step on a global batch, and returns the loss and the metrics before the update. Calls no callbacks. For
  /// single processes (spec Q15): throws WrongStrategy if there are several.
  template <class X, class Y>
  Logs train_on_batch(const Tensor<X>& x, const Tensor<Y>& y, TrainOnBatchOptions options = {}) {
    return train_on(std::tuple{TensorView<const X>{x}, TensorView<const Y>{y}}, std::move(options));
  }
  /// Trains one step on a global batch with sample weights.
  template <class X, class Y, class W>
  Logs train_on_batch(const Tensor<X>& x, const Tensor<Y>& y, const Tensor<W>& sample_weight,
                      TrainOnBatchOptions options = {}) {
    return train_on(std::tuple{TensorView<const X>{x}, TensorView<const Y>{y}, TensorView<const W>{sample_weight}},
                    std::move(options));
  }
  /// Returns the loss and the metrics of a global batch. For single processes, like `train_on_batch`.
  template <class X, class Y>
  Logs test_on_batch(const Tensor<X>& x, const Tensor<Y>& y) {
    return test_on(std::tuple{TensorView<const X>{x}, TensorView<const Y>{y}});
  }
  /// Returns the loss and the metrics of a global batch with sample weights.
  template <class X, class Y, class W>
  Logs test_on_batch(const Tensor<X>& x, const Tensor<Y>& y, const Tensor<W>& sample_weight) {
    return test_on(std::tuple{TensorView<const X>{x}, TensorView<const Y>{y}, TensorView<const W>{sample_weight}});
  }
  /// Returns the network's outputs for a global batch, like `predict`, in one step.
  template <class X>
  auto predict_on_batch(const Tensor<X>& x) {
    return predict(x, {.verbose = 0, .batch_size = std::max<std::size_t>(x.rows(), 1)});
  }

 private:
  template <class... Given>
  [[nodiscard]] static constexpr bool require_callbacks() {
    constexpr bool are_callbacks = (Callback<Given> && ...);
    static_assert(are_callbacks,
                  "arguments of fit and evaluate after the options must be callbacks, with a hook of nn::Callback that "
                  "takes the arguments listed at nn::hooks, such as on_epoch_end(const nn::Epoch&, nn::Logs&)");
    return are_callbacks;
  }
  [[nodiscard]] bool is_alone() const { return strategy_.input_context().num_input_pipelines() == 1; }
  [[nodiscard]] Verbosity shown_by_chief(int verbose) const {
    const Verbosity wanted = verbosity(verbose);
    return is_chief() ? wanted : Verbosity::silent;
  }

  template <class MakeDataset, class... Given>
  History fit_on_workers(const MakeDataset& make_dataset, FitOptions options, Given&... callbacks) {
    detail::refuse_options_of_arrays(options.batch_size || options.shuffle || options.validation_split != 0, "fit");
    const detail::FitPlan plan = plan_of(options);
    const std::size_t steps = detail::steps_to_schedule(plan, options.validation_steps, options.verbose);
    ClusterCoordinator<S> coordinator{strategy_};
    const auto data = coordinator.create_per_worker_dataset(make_dataset);
    const auto take_steps = [&] {
      for (std::size_t step = 0; step < steps; step += plan.steps_per_execution)
        coordinator.schedule(
            detail::StepsOnWorker{std::min(plan.steps_per_execution, steps - step), options.class_weight}, *this, data);
      coordinator.join();
    };
    Callbacks given{*this, callbacks...};
    return fit_loop(plan, options, given, 2, [&](auto& loop) { return loop.run(steps, take_steps); });
  }
  [[nodiscard]] static detail::FitPlan plan_of(const FitOptions& options) {
    return {.epochs = options.epochs,
            .initial_epoch = options.initial_epoch,
            .steps_per_epoch = options.steps_per_epoch,
            .steps_per_execution = options.steps_per_execution,
            .validation_freq = options.validation_freq,
            .validates = static_cast<bool>(options.validation)};
  }
  /// Returns the result of `run` with the loop of a fit. `verbose` is the default verbosity.
  template <class Given, class Run>
  History fit_loop(detail::FitPlan plan, FitOptions& options, Given& callbacks, int verbose, const Run& run) {
    plan.callbacks_may_log = Given::may_add_to_logs;
    const auto validate = [&](TestCallback& callback) {
      return options.validation.evaluate(*this, options.validation_steps, callback);
    };
    const auto finalize = [&] { optimizer().finalize(strategy_.scope()); };
    detail::FitLoop loop{
        plan,
        {fit_, steps_.trained(), any_strategy(), validate, finalize},
        detail::FitCallback{callbacks},
        TestCallback{callbacks},  // without the progress bar, which shows these logs at the end of the epoch
        ProgressCallback{shown_by_chief(options.verbose.value_or(verbose)), std::move(options.console)}};
    return run(loop);
  }
  using Steps = detail::ModelSteps<S, Network, O, L, Ms...>;
  using Train = decltype(std::declval<Steps&>().train_step());
  using Test = decltype(std::declval<Steps&>().test_step());
  template <class Distributed, data::detail::PassBegin begin = data::detail::PassBegin::first_element>
  using Batches = data::detail::DatasetRef<Distributed, begin>;
  /// Calls `step` with batches of one type.
  template <class Batch, class Step>
  class StepsOf final : public detail::LoopSteps {
   public:
    StepsOf(const data::detail::AnyDataset& batches, Step& step) : LoopSteps(batches), step_(step) {}
    void run() override { step_(*static_cast<Batch*>(this->batch())); }

   private:
    Step& step_;
  };
  struct NothingLocal {};
  /// While the result exists, steps use the current parameters, and measurements stay in this process.
  [[nodiscard]] auto local_steps() {
    if constexpr (schedules_steps)
      return typename S::Store::Cache::LocalSteps{strategy_.variable_cache()};
    else
      return NothingLocal{};
  }

  static constexpr std::size_t default_batch_size = 32;
  /// Returns rows `range` of arrays as a dataset. The arrays must outlive it.
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
    detail::require_validation_split(options.validation_split);
    const auto batches = data::batch(options.batch_size.value_or(default_batch_size));
    const auto trained = static_cast<std::size_t>(static_cast<double>(rows) * (1 - options.validation_split));
    if (trained < rows) {
      if (options.validation) detail::refuse_two_validations();
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
    return evaluate_distributed(&progress, distributed, options.steps, callbacks...);
  }
  template <class Distributed, class... Given>
  Logs evaluate_distributed(ProgressCallback* progress, Distributed& dataset, std::optional<std::size_t> wanted,
                            Given&... callbacks) {
    Callbacks given{*this, callbacks...};
    TestCallback watching{given};
    return evaluate_steps<typename Distributed::Element>(progress, Batches<Distributed>{dataset}, wanted, watching);
  }
  template <class Batch>
  Logs evaluate_steps(ProgressCallback* progress, const data::detail::AnyDataset& batches,
                      std::optional<std::size_t> wanted, TestCallback& watching) {
    [[maybe_unused]] const auto local = local_steps();
    StepsOf<Batch, Test> steps{batches, test_};
    return detail::evaluate(steps, steps_.tested(), wanted, progress, watching);
  }
  template <class Arrays, class... Given>
  Logs evaluate_arrays(const Arrays& arrays, EvaluateOptions options, Given&... callbacks) {
    const auto slices = slices_of(arrays, {0, std::get<0>(arrays).rows()});
    const auto batches = data::batch(options.batch_size.value_or(default_batch_size));
    return evaluate_batches(slices | batches, std::move(options), callbacks...);
  }
  template <class Dataset, class... Given>
  auto predict_batches(const Dataset& dataset, PredictOptions options, Given&... callbacks) {
    Callbacks given{*this, callbacks...};
    // Every process iterates over all batches, to compute the position of the rows of every step.
    const auto distributed = [&] {
      if constexpr (S::wraps_values || schedules_steps)
        return strategy_.distribute_dataset_here(dataset, data::InputOptions{.single_pass = true});
      else
        return strategy_.distribute_dataset(dataset);
    }();
    using Distributed = std::remove_const_t<decltype(distributed)>;
    return predict_steps<typename Distributed::Element>(Batches<Distributed>{distributed}, options,
                                                        detail::PredictCallback{given});
  }
  template <class Batch>
  auto predict_steps(const data::detail::AnyDataset& batches, PredictOptions& options,
                     const detail::PredictCallback& watching) {
    ProgressCallback progress{shown_by_chief(options.verbose), std::move(options.console)};
    [[maybe_unused]] const auto local = local_steps();
    const std::optional<std::size_t> known = detail::batches_of(batches.cardinality(), options.steps.has_value());
    const std::optional<std::size_t> shown = options.steps ? options.steps : known;
    watching.call_in<hooks::on_predict_begin>(HookTurn::first, shown);
    progress.on_predict_begin(shown);
    watching.call_in<hooks::on_predict_begin>(HookTurn::last, shown);
    const InputContext input = strategy_.input_context();
    using Outputs = decltype(infer_(std::declval<const Batch&>()));
    using T = std::remove_const_t<typename decltype(values_of(
        dist::select_replica(0, std::declval<const Outputs&>())))::Element>;
    detail::Predictions<T> predictions{strategy_.num_local_replicas()};
    std::size_t step = 0;
    const auto infer = [&](const Batch& batch) {
      const auto put = [&](auto& replica, const auto& outputs) { predictions.put(replica, values_of(outputs)); };
      const bool is_mine = step++ % input.num_input_pipelines() == input.input_pipeline_id();
      if constexpr (CompilesSteps<typename S::Device>) {
        strategy_.run(put, infer_(batch));  // a single process runs all steps
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
    };
    Tensor<T> all = dist::detail::run_collectively(strategy_, [&] {
      StepsOf<Batch, decltype(infer)> steps{batches, infer};
      detail::predict(steps, options.steps, watching, progress);
      return predictions.join(strategy_.workers());
    });
    watching.call_in<hooks::on_predict_end>(HookTurn::first, step);
    progress.on_predict_end(step);
    watching.call_in<hooks::on_predict_end>(HookTurn::last, step);
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
    if (!is_alone()) detail::refuse_several_processes(who, strategy_.describe());
    const std::size_t rows = std::get<0>(arrays).rows();
    auto distributed =
        strategy_.distribute_dataset(slices_of(arrays, {0, rows}) | data::batch(std::max<std::size_t>(rows, 1)));
    measures.reset();
    auto pass = distributed.iterate(0);
    typename decltype(distributed)::Element batch{};
    const bool has_batch = pass.next(batch);
    detail::require_batches(has_batch ? 1 : 0);
    step(batch);
    return measures.read();
  }

  struct NoMetrics {
    explicit NoMetrics(const Ms&...) {}
  };
  VariablesMade variables_made_;
  S& strategy_;
  [[no_unique_address]] std::conditional_t<schedules_steps, std::tuple<Ms...>, NoMetrics> metrics_;
  Steps steps_;
  Train train_;
  Test test_;
  decltype(std::declval<Steps&>().infer_step()) infer_;
};

/// Deduces the types.
template <Strategy S, class Network, class O, class L, class... Ms>
Model(S&, Network&, O, L, Ms...) -> Model<S, Network, O, L, Ms...>;

template <dist::detail::NoStrategy S, class Network, class O, class L, class... Ms>
struct Model<S, Network, O, L, Ms...> : dist::detail::Refused {
  using Refused::Refused;
  static_assert(dist::detail::always_false<S>,
                DIST_NEEDS_STRATEGY("a model",
                                    "nn::Model model{strategy, net, nn::Adam{}, nn::SparseCategoricalCrossentropy{}}"));
};
/// Reports a missing strategy.
template <dist::detail::NoStrategy First, class... Rest>
Model(First&&, Rest&&...) -> Model<std::remove_reference_t<First>, void, void, void>;

}  // namespace dist::nn
