#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/console.hpp>
#include <dist/train/logs.hpp>

namespace dist::nn {

/// The dataset that a fit validates on after each epoch: any batched dataset becomes one, or none.
/// Distributed once, when it is first used.
template <class Model>
class Validation {
 public:
  Validation() = default;
  /// The policy says how several processes share the dataset: `.validation = {test, dist::data::AutoShardPolicy::data}`.
  template <class Dataset>
    requires(!std::same_as<Dataset, Validation>)
  Validation(Dataset dataset, data::AutoShardPolicy auto_shard_policy = data::AutoShardPolicy::automatic)
      : held_(std::make_shared<Held<Dataset>>(std::move(dataset), auto_shard_policy)),
        evaluate_([](void* held, Model& model, std::optional<std::size_t> steps, TestCallback& callback) {
          return static_cast<Held<Dataset>*>(held)->evaluate(model, steps, callback);
        }) {}

  [[nodiscard]] explicit operator bool() const noexcept { return evaluate_ != nullptr; }
  /// On at most so many batches, where that is given.
  [[nodiscard]] Logs evaluate(Model& model, std::optional<std::size_t> steps, TestCallback& callback) const {
    return evaluate_(held_.get(), model, steps, callback);
  }

 private:
  template <class Dataset>
  struct Held {
    Held(Dataset given, data::AutoShardPolicy of) : dataset(std::move(given)), policy(of) {}

    Logs evaluate(Model& model, std::optional<std::size_t> steps, TestCallback& callback) {
      if (!distributed)
        distributed.emplace(
            model.distribute(std::move(dataset), data::InputOptions{.auto_shard_policy = policy, .single_pass = true}));
      return model.evaluate_distributed(*distributed, steps, callback);
    }

    Dataset dataset;
    data::AutoShardPolicy policy;
    std::optional<decltype(std::declval<Model&>().distribute(std::declval<Dataset>(), data::InputOptions{}))>
        distributed;
  };

  std::shared_ptr<void> held_;
  Logs (*evaluate_)(void*, Model&, std::optional<std::size_t>, TestCallback&) = nullptr;
};

namespace detail {

// Options under the names that other libraries have for them. They take any value, and do not compile then.
#define DIST_OTHER_OPTION(Type, sentence)                         \
  struct Type {                                                   \
    Type() = default;                                             \
    template <class Given>                                        \
    Type(const Given&) {                                          \
      static_assert(dist::detail::always_false<Given>, sentence); \
    }                                                             \
  }
DIST_OTHER_OPTION(EpochsInstead, "fit has no option epoch: it is FitOptions.epochs, or initial_epoch");
DIST_OTHER_OPTION(ValidationInstead, "fit has no option validation_data: it is FitOptions.validation, a dataset");
DIST_OTHER_OPTION(CallbacksInstead,
                  "fit has no option callbacks: these follow the options, as in fit(data, {.epochs = 2}, callback)");
#undef DIST_OTHER_OPTION

}  // namespace detail

/// `model.fit(train, {.epochs = 5, .validation = test, .verbose = 2});`
template <class Model>
struct FitOptions {
  /// The number of the epoch at which the fit ends: it has so many, unless it begins later than with the first.
  std::size_t epochs = 1;
  [[no_unique_address]] detail::EpochsInstead epoch = {};
  /// The epoch with which it begins, counted from 0.
  std::size_t initial_epoch = 0;
  /// Global batches in an epoch. Left out: all of the dataset. With another number than the dataset has, epochs go on in
  /// the dataset where the one before has stopped, and training ends, with a warning, where it runs dry (spec Q05 to Q07).
  std::optional<std::size_t> steps_per_epoch = std::nullopt;
  /// Callbacks hear of training batches in groups of so many (spec Q08). Under a ParameterServer a scheduled function takes so many
  /// steps, the last one of an epoch fewer; a worker that is lost in one of them takes all of them again.
  std::size_t steps_per_execution = 1;
  /// Evaluated after an epoch; its logs get the prefix "val_" (spec Q14).
  Validation<Model> validation = {};
  [[no_unique_address]] detail::ValidationInstead validation_data = {};
  /// The number of its batches. Left out: all.
  std::optional<std::size_t> validation_steps = std::nullopt;
  /// After every so many epochs.
  std::size_t validation_freq = 1;
  /// The policy by which several processes share the dataset that is trained on.
  data::AutoShardPolicy auto_shard_policy = data::AutoShardPolicy::automatic;
  /// How much the examples of each class count in the loss, by their labels, which are integers. None: all count alike.
  std::vector<float> class_weight = {};
  /// 0 silent, 1 a progress bar, 2 one line per epoch (spec Q16). Left out: a bar; under a ParameterServer, where no step is seen,
  /// lines. The chief shows it.
  std::optional<int> verbose = std::nullopt;
  Console console = Console::standard_output();
  /// Of arrays: the global batch (spec Q03), whether epochs are shuffled, with which seed, and the part of the examples,
  /// the last ones, that are kept for validation. A dataset is batched and shuffled already.
  std::optional<std::size_t> batch_size = std::nullopt;
  std::optional<bool> shuffle = std::nullopt;
  std::uint64_t shuffle_seed = 0;
  double validation_split = 0;
  [[no_unique_address]] detail::CallbacksInstead callbacks = {};
};

/// `model.train_on_batch(x, y, {.class_weight = {2, 1}});`
struct TrainOnBatchOptions {
  /// As FitOptions' own.
  std::vector<float> class_weight = {};
};

/// `model.evaluate(test, {.verbose = 0});`
struct EvaluateOptions {
  int verbose = 1;
  Console console = Console::standard_output();
  /// The number of global batches. Left out: all.
  std::optional<std::size_t> steps = std::nullopt;
  /// Of arrays: the global batch.
  std::optional<std::size_t> batch_size = std::nullopt;
  /// The policy by which several processes share the dataset of an evaluation. A prediction covers all of the dataset.
  data::AutoShardPolicy auto_shard_policy = data::AutoShardPolicy::automatic;
};

/// `model.predict(images, {.verbose = 0});`
using PredictOptions = EvaluateOptions;

namespace detail {

/// Throws InvalidArgument for a number of 0 that must be 1 or more.
void require_counts(const auto& options) {
  const auto require = [](bool holds, std::string_view name) {
    if (!holds) throw InvalidArgument(concat("FitOptions.", name, " is out of range"), "it is 0", "Give 1 or more");
  };
  require(options.steps_per_epoch != std::size_t{0}, "steps_per_epoch");
  require(options.steps_per_execution > 0, "steps_per_execution");
  require(options.validation_steps != std::size_t{0}, "validation_steps");
  require(options.validation_freq > 0, "validation_freq");
}

}  // namespace detail

}  // namespace dist::nn
