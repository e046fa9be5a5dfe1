#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include <dist/core/error.hpp>

namespace dist::nn::callbacks::detail {

/// Whether a model calls callbacks between training batches: true unless its `calls_between_batches` is false.
template <class Model>
inline constexpr bool calls_between_batches = !requires {
  requires !Model::calls_between_batches;
};

/// Throws InvalidArgument where an option makes a callback look between the training batches of a model that calls nobody there
/// (spec Q24).
template <class Model>
void require_calls_between_batches(const Model&, [[maybe_unused]] bool is_given,
                                   [[maybe_unused]] std::string_view option) {
  if constexpr (!calls_between_batches<Model>)
    if (is_given)
      throw InvalidArgument(concat(option, " is for models that call callbacks between training batches"),
                            "under a ParameterServer workers do not wait for each other, and callbacks are called "
                            "between epochs",
                            "Leave it out");
}

/// Says when so many training batches have been seen since the last time: what `save_freq` means.
class EveryBatches {
 public:
  /// None: never. Throws InvalidArgument for 0; `option` is its name.
  EveryBatches(std::optional<std::size_t> batches, std::string_view option) : batches_(batches) {
    if (batches_ == std::size_t{0})
      throw InvalidArgument(concat(option, " is out of range"), "it is 0",
                            "Give a number of batches, or leave it out for each epoch");
  }

  [[nodiscard]] explicit operator bool() const noexcept { return batches_.has_value(); }
  /// A group of batches begins with `step`.
  void begin(std::size_t step) noexcept { first_ = step; }
  /// It ends with `step`: whether it is time.
  [[nodiscard]] bool end(std::size_t step) noexcept {
    seen_ += step + 1 - first_;
    if (!batches_ || seen_ - last_time_ < *batches_) return false;
    last_time_ = seen_;
    return true;
  }
  /// The batches of all epochs so far.
  [[nodiscard]] std::size_t seen() const noexcept { return seen_; }

  /// See Trackable.
  void track(auto& visit) {
    visit("batches", seen_);
    visit("last_time", last_time_);
  }

 private:
  std::optional<std::size_t> batches_;
  std::size_t first_ = 0;  // of the group that goes on
  std::size_t seen_ = 0;
  std::size_t last_time_ = 0;
};

}  // namespace dist::nn::callbacks::detail
