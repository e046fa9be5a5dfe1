#pragma once

#include <dist/core/error.hpp>
#include <dist/train/history.hpp>

namespace dist::nn {

DIST_INLINE void History::on_epoch_end(const Epoch& epoch, const Logs& logs) {
  epochs_.push_back(epoch.index);
  for (const Logs::Entry& entry : logs) {
    std::size_t place = 0;
    while (place < series_.size() && series_[place].name != entry.name) ++place;
    if (place == series_.size()) series_.push_back({entry.name, {}});
    series_[place].values.push_back(entry.value);
    series_[place].epochs.push_back(epoch.index);
  }
}

DIST_INLINE std::span<const double> History::operator[](std::string_view name) const {
  std::string known;
  for (const Series& each : series_) {
    if (each.name == name) return {each.values.data(), each.values.size()};
    known += concat(known.empty() ? "" : ", ", each.name);
  }
  throw InvalidArgument(concat("The history has no '", name, "'"),
                        concat("it has: ", known.empty() ? "nothing" : known),
                        "Use one of these names, or give the model such a metric");
}

}  // namespace dist::nn
