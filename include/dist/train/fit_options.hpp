#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <dist/core/light_memory.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/logs.hpp>
#include <dist/train/progress_bar.hpp>

namespace dist::nn {

/// A dataset for the validation of a fit: constructed from any batched dataset, or empty. Distributed once, at its
/// first use.
template <class Model>
class Validation {
 public:
  Validation() = default;
  /// `auto_shard_policy` divides the dataset among several processes: `.validation = {test,
  /// dist::data::AutoShardPolicy::data}`.
  template <class Dataset>
    requires(!std::same_as<Dataset, Validation>)
  Validation(Dataset dataset, data::AutoShardPolicy auto_shard_policy = data::AutoShardPolicy::automatic)
      : held_(std::make_shared<Held<Dataset>>(std::move(dataset), auto_shard_policy)),
        evaluate_([](void* held, Model& model, std::optional<std::size_t> steps, TestCallback& callback) {
          return static_cast<Held<Dataset>*>(held)->evaluate(model, steps, callback);
        }) {}

  /// True if there is a dataset to evaluate.
  [[nodiscard]] explicit operator bool() const noexcept { return evaluate_ != nullptr; }
  /// Evaluates the model on at most `steps` batches, or on all if empty.
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

// Other libraries' names of options. A value for one does not compile.
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

/// Options of a fit: `model.fit(train, {.epochs = 5, .validation = test, .verbose = 2});`
template <class Model>
struct FitOptions {
  /// The number of the epoch at which the fit ends. If `initial_epoch` is 0, it is the number of epochs.
  std::size_t epochs = 1;
  /// Error message for a mistyped name; see `epochs`.
  [[no_unique_address]] detail::EpochsInstead epoch = {};
  /// The first epoch, counted from 0.
  std::size_t initial_epoch = 0;
  /// Global batches per epoch. Default: the whole dataset. Otherwise an epoch continues in the dataset after the
  /// previous one, and training ends, with a warning, when the dataset does (spec Q05 to Q07).
  std::optional<std::size_t> steps_per_epoch = std::nullopt;
  /// The number of training batches between calls of callbacks (spec Q08). Under a ParameterServer, a scheduled
  /// function runs this many steps (the last one of an epoch fewer); if its worker is lost, it runs all of them again.
  std::size_t steps_per_execution = 1;
  /// Evaluated after epochs; its logs have the prefix "val_" (spec Q14).
  Validation<Model> validation = {};
  /// Error message for Keras' name of `validation`.
  [[no_unique_address]] detail::ValidationInstead validation_data = {};
  /// The number of validation batches. Default: all.
  std::optional<std::size_t> validation_steps = std::nullopt;
  /// The number of epochs per validation.
  std::size_t validation_freq = 1;
  /// The division of the training dataset among several processes.
  data::AutoShardPolicy auto_shard_policy = data::AutoShardPolicy::automatic;
  /// The weights of the classes in the loss, indexed by integer label. Empty: all 1.
  std::vector<float> class_weight = {};
  /// 0: silent, 1: progress bar, 2: one line per epoch (spec Q16). Default: a bar; lines under a ParameterServer, which
  /// does not report steps. The chief prints.
  std::optional<int> verbose = std::nullopt;
  /// The output of progress. Default: the standard output.
  Console console = Console::standard_output();
  /// For arrays only: the global batch size (spec Q03). Default: 32.
  std::optional<std::size_t> batch_size = std::nullopt;
  /// For arrays only: true to shuffle the examples in every epoch. Default: true.
  std::optional<bool> shuffle = std::nullopt;
  /// For arrays only: the seed of the order of examples.
  std::uint64_t shuffle_seed = 0;
  /// For arrays only: the fraction of the examples, from the end, that is used for validation.
  double validation_split = 0;
  /// Error message for Keras' list of callbacks: pass these to `fit` after the options.
  [[no_unique_address]] detail::CallbacksInstead callbacks = {};
};

/// Options of one step: `model.train_on_batch(x, y, {.class_weight = {2, 1}});`
struct TrainOnBatchOptions {
  /// See FitOptions.
  std::vector<float> class_weight = {};
};

/// Options of an evaluation: `model.evaluate(test, {.verbose = 0});`
struct EvaluateOptions {
  /// 0: silent, 1: progress bar, 2: one line (spec Q16). The chief prints.
  int verbose = 1;
  /// The output of progress. Default: the standard output.
  Console console = Console::standard_output();
  /// The number of global batches. Default: all.
  std::optional<std::size_t> steps = std::nullopt;
  /// For arrays only: the global batch size. Default: 32.
  std::optional<std::size_t> batch_size = std::nullopt;
  /// The division of the dataset of an evaluation among several processes. A prediction always covers the whole
  /// dataset.
  data::AutoShardPolicy auto_shard_policy = data::AutoShardPolicy::automatic;
};

/// Options of a prediction: `model.predict(images, {.verbose = 0});`
using PredictOptions = EvaluateOptions;

}  // namespace dist::nn
