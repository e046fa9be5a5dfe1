#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/logs.hpp>

namespace dist::nn {

/// The result of `fit`: for each name in the logs, its value at the end of every epoch (spec Q18).
class History {
 public:
  /// The values of one name.
  struct Series {
    /// The name in the logs, such as "val_loss".
    std::string name;
    /// One value for each epoch whose logs have the name.
    std::vector<double> values;
    std::vector<std::size_t> epochs{};  ///< the epoch of each value
  };

  void on_epoch_end(const Epoch& epoch, const Logs& logs);

  /// The epochs of the fit, counted from 0.
  [[nodiscard]] std::span<const std::size_t> epochs() const noexcept { return {epochs_.data(), epochs_.size()}; }
  /// All series, in the order of the logs: loss, accuracy, val_loss, val_accuracy.
  [[nodiscard]] std::span<const Series> series() const noexcept { return {series_.data(), series_.size()}; }

  /// Returns the values of `name`, one per epoch that has it. Throws InvalidArgument, listing the names, if it does not
  /// exist.
  [[nodiscard]] std::span<const double> operator[](std::string_view name) const;

 private:
  std::vector<std::size_t> epochs_;
  std::vector<Series> series_;
};

}  // namespace dist::nn

#ifndef DIST_COMPILED
#include <dist/train/history.ipp>
#endif
