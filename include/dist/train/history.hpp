#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/logs.hpp>

namespace dist::nn {

/// For each name in the logs, its value at the end of every epoch (spec Q18). What `fit` returns.
class History {
 public:
  struct Series {
    std::string name;
    std::vector<double> values;
    std::vector<std::size_t> epochs{};  ///< which epoch had each value
  };

  void on_epoch_end(const Epoch& epoch, const Logs& logs) {
    epochs_.push_back(epoch.index);
    for (const Logs::Entry& entry : logs) {
      std::size_t place = 0;
      while (place < series_.size() && series_[place].name != entry.name) ++place;
      if (place == series_.size()) series_.push_back({entry.name, {}});
      series_[place].values.push_back(entry.value);
      series_[place].epochs.push_back(epoch.index);
    }
  }

  /// The epochs that were run, counted from 0.
  [[nodiscard]] std::span<const std::size_t> epochs() const noexcept { return {epochs_.data(), epochs_.size()}; }
  /// In the order of the logs: loss, accuracy, val_loss, val_accuracy.
  [[nodiscard]] std::span<const Series> series() const noexcept { return {series_.data(), series_.size()}; }

  /// The values of `name`, one per epoch that had it. Throws InvalidArgument, with the names there are, when
  /// there is none.
  [[nodiscard]] std::span<const double> operator[](std::string_view name) const {
    std::string known;
    for (const Series& each : series_) {
      if (each.name == name) return {each.values.data(), each.values.size()};
      known += concat(known.empty() ? "" : ", ", each.name);
    }
    throw InvalidArgument(concat("The history has no '", name, "'"),
                          concat("it has: ", known.empty() ? "nothing" : known),
                          "Ask for one of those, or give the model such a metric");
  }

 private:
  std::vector<std::size_t> epochs_;
  std::vector<Series> series_;
};

}  // namespace dist::nn
