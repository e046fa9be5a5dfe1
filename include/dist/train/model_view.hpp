#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dist/context/any_strategy.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/train/fit_loop.hpp>
#include <dist/train/measurements.hpp>

namespace dist {
struct LoadWeightsOptions;  // of dist/checkpoint/load_weights.hpp
}

namespace dist::nn::detail {

/// The files of a model. The implementation, in model_files.hpp, needs other packages; this one is an error message.
template <class Model>
struct ModelFiles {
  static_assert(dist::detail::always_false<Model>,
                "save, load, save_weights and load_weights of a model are defined in dist/train/model_files.hpp: add "
                "#include <dist/train/model_files.hpp>");
  static void save(auto&&...) {}
  static void load(auto&&...) {}
  static void save_weights(auto&&...) {}
  static std::vector<std::string> load_weights(auto&&...) { return {}; }
};

/// Saves and loads the model `M`. Programs that call these functions must include model_files.hpp, which describes
/// them. All are collective calls of the processes.
template <class M>
class HasModelFiles {
 public:
  void save(const std::string& path) { ModelFiles<M>::save(model(), path); }
  void load(const std::string& path) { ModelFiles<M>::load(model(), path); }
  void save_weights(const std::string& path) { ModelFiles<M>::save_weights(model(), path); }
  std::vector<std::string> load_weights(const std::string& path) { return ModelFiles<M>::load_weights(model(), path); }
  std::vector<std::string> load_weights(const std::string& path, const LoadWeightsOptions& options) {
    return ModelFiles<M>::load_weights(model(), path, options);
  }

 private:
  [[nodiscard]] M& model() noexcept { return static_cast<M&>(*this); }
};

}  // namespace dist::nn::detail

namespace dist::nn {

/// A type-erased nn::Model, for callbacks that do not depend on its type: `void on_epoch_end(nn::ModelView& model,
/// const nn::Epoch&, nn::Logs& logs)` is compiled once. Base class of Model.
class ModelView {
 public:
  ModelView(const ModelView&) = delete;
  ModelView& operator=(const ModelView&) = delete;

  /// The type-erased strategy, for callbacks that save files or communicate.
  [[nodiscard]] const dist::detail::AnyStrategy& any_strategy() const noexcept { return *strategy_; }
  /// Shared ownership of `any_strategy()`, for work in the background that outlives the model.
  [[nodiscard]] const std::shared_ptr<const dist::detail::AnyStrategy>& shared_strategy() const noexcept {
    return strategy_;
  }
  /// True if this process prints progress and writes the files that all processes share.
  [[nodiscard]] bool is_chief() const { return strategy_->is_chief(); }
  /// True if callbacks of a fit are called between training batches.
  [[nodiscard]] bool shows_batches() const noexcept { return shows_batches_; }

  /// Ends the fit: after the current epoch with several processes, because all must stop together, otherwise after the
  /// batch.
  void stop_training() noexcept {
    fit_.stops = true;
    fit_.stops_after_batch = fit_.stops_after_batch || strategy_->num_workers() == 1;
  }
  /// Ends the fit after the batch, with logs of the partial epoch. All processes must call it after the same batch.
  void stop_training_after_batch() noexcept { fit_.stops = fit_.stops_after_batch = true; }
  /// Ends the fit after the batch, without logs of the epoch, so that another fit can continue it. All processes must
  /// call it after the same batch.
  void stop_training_here() noexcept { fit_.stops = fit_.stops_after_batch = fit_.stops_here = true; }
  /// True if the current fit has a validation, after this or other epochs.
  [[nodiscard]] bool validates() const noexcept { return fit_.validates; }
  /// True if a callback of the current fit may add `name` to the logs.
  [[nodiscard]] bool callbacks_may_log(std::string_view name) const { return fit_.callbacks_may_log(name); }
  /// Makes a fit start at epoch `epoch`, after its first `step` global batches, for callbacks that restore a training.
  /// Call it in `on_train_begin`.
  void begin_at(std::size_t epoch, std::size_t step = 0) noexcept { fit_.begins_at = {epoch, step}; }
  /// Returns the object with this name that the callbacks of this model share. The first call makes it by `make()`; it
  /// is destroyed with the last reference.
  std::shared_ptr<void> shared_by_callbacks(std::string_view name,
                                            dist::detail::FunctionRef<std::shared_ptr<void>()> make) {
    std::erase_if(shared_, [](const Shared& each) { return each.object.expired(); });
    for (const Shared& each : shared_)
      if (each.name == name) return each.object.lock();
    std::shared_ptr<void> made = make();
    shared_.push_back({std::string(name), made});
    return made;
  }

  /// Returns the direction in which the loss, or the metric with this name, improves; nothing for other names.
  [[nodiscard]] virtual std::optional<Better> better(std::string_view metric) const = 0;
  /// Returns the names of the loss and the metrics: "loss, accuracy".
  [[nodiscard]] virtual std::string metric_names() const = 0;
  /// The learning rate of the optimizer's next step.
  [[nodiscard]] virtual float learning_rate() const = 0;
  /// Sets the learning rate. Throws InvalidArgument if the rate is out of range, or the optimizer has a schedule.
  virtual void set_learning_rate(float rate) = 0;
  /// The number of optimizer steps up to now.
  [[nodiscard]] virtual std::int64_t iterations() const = 0;

 protected:
  ModelView(std::shared_ptr<const dist::detail::AnyStrategy> strategy, bool shows_batches)
      : strategy_(std::move(strategy)), shows_batches_(shows_batches) {}
  ~ModelView() = default;

  /// The state of the current fit.
  detail::FitState fit_;

 private:
  struct Shared {
    std::string name;
    std::weak_ptr<void> object;
  };

  std::shared_ptr<const dist::detail::AnyStrategy> strategy_;
  bool shows_batches_;
  std::vector<Shared> shared_;
};

}  // namespace dist::nn
