#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include <dist/core/error.hpp>
#include <dist/train/model_view.hpp>

namespace dist::nn::callbacks::detail {

/// Throws InvalidArgument if `is_given` and the model does not call callbacks between training batches (spec Q24).
inline void require_calls_between_batches(const ModelView& model, bool is_given, std::string_view option) {
  if (is_given && !model.shows_batches())
    throw InvalidArgument(
        concat(option, " is for models that call callbacks between training batches"),
        "under a ParameterServer, workers do not wait for each other, and callbacks are called between epochs",
        "Leave it out");
}

/// Counts training batches, to act after every `save_freq` of them.
class EveryBatches {
 public:
  /// An empty number means never. Throws InvalidArgument if it is 0; `option` is its name.
  EveryBatches(std::optional<std::size_t> batches, std::string_view option) : batches_(batches) {
    if (batches_ == std::size_t{0})
      throw InvalidArgument(concat(option, " is out of range"), "it is 0",
                            "Give a number of batches, or leave it out to act after each epoch");
  }

  [[nodiscard]] explicit operator bool() const noexcept { return batches_.has_value(); }
  /// Begins a group of batches at `step`.
  void begin(std::size_t step) noexcept { first_ = step; }
  /// Ends a group of batches at `step`. Returns true if it is time to act.
  [[nodiscard]] bool end(std::size_t step) noexcept {
    seen_ += step + 1 - first_;
    if (!batches_ || seen_ - last_time_ < *batches_) return false;
    last_time_ = seen_;
    return true;
  }
  /// The total number of batches, over all epochs.
  [[nodiscard]] std::size_t seen() const noexcept { return seen_; }

  /// See Trackable.
  void track(auto& visit) {
    visit("batches", seen_);
    visit("last_time", last_time_);
  }

 private:
  std::optional<std::size_t> batches_;
  std::size_t first_ = 0;  // of the current group
  std::size_t seen_ = 0;
  std::size_t last_time_ = 0;
};

}  // namespace dist::nn::callbacks::detail
