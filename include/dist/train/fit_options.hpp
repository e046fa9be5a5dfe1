#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

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
  template <class Dataset>
    requires(!std::same_as<Dataset, Validation>)
  Validation(Dataset dataset)
      : held_(std::make_shared<Held<Dataset>>(std::move(dataset))),
        evaluate_([](void* held, Model& model, TestCallback& callback) {
          return static_cast<Held<Dataset>*>(held)->evaluate(model, callback);
        }) {}

  [[nodiscard]] explicit operator bool() const noexcept { return evaluate_ != nullptr; }
  [[nodiscard]] Logs evaluate(Model& model, TestCallback& callback) const {
    return evaluate_(held_.get(), model, callback);
  }

 private:
  template <class Dataset>
  struct Held {
    explicit Held(Dataset given) : dataset(std::move(given)) {}

    Logs evaluate(Model& model, TestCallback& callback) {
      if (!distributed) distributed.emplace(model.strategy().distribute_dataset(std::move(dataset)));
      return model.evaluate_distributed(*distributed, callback);
    }

    Dataset dataset;
    std::optional<decltype(std::declval<Model&>().strategy().distribute_dataset(std::declval<Dataset>()))> distributed;
  };

  std::shared_ptr<void> held_;
  Logs (*evaluate_)(void*, Model&, TestCallback&) = nullptr;
};

/// `model.fit(train, {.epochs = 5, .validation = test, .verbose = 2});`
template <class Model>
struct FitOptions {
  std::size_t epochs = 1;
  /// Evaluated after each epoch; its logs get the prefix "val_" (spec Q14).
  Validation<Model> validation = {};
  /// 0 silent, 1 a progress bar, 2 one line per epoch (spec Q16).
  int verbose = 1;
  Console console = Console::standard_output();
};

/// `model.evaluate(test, {.verbose = 0});`
struct EvaluateOptions {
  int verbose = 1;
  Console console = Console::standard_output();
};

}  // namespace dist::nn
