#pragma once

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/train/measurements.hpp>

namespace dist::nn::detail {

DIST_INLINE CurrentLogs Measurements::current() {
  return {this, [](void* measurements) -> const Logs& { return static_cast<Measurements*>(measurements)->read_here(); },
          [](void* measurements) -> const Logs& { return static_cast<Measurements*>(measurements)->read(); }};
}

DIST_INLINE auto Measurements::taken_by(std::string_view who) -> Turn {
  if (is_taken_)
    throw InvalidArgument(concat(who, " was called in a callback of a fit or an evaluation of the same model"),
                          "the metrics would count the examples of both",
                          "Call it afterwards. A callback of a fit may call evaluate and predict");
  return Turn{is_taken_};
}

DIST_INLINE void Measurements::take(std::vector<AnyModelMetric*> metrics) {
  metrics_ = std::move(metrics);
  for (const bool weighted : {false, true})
    for (AnyModelMetric* const metric : metrics_) {
      if (metric->weighs() != weighted) continue;
      if (weighted && logs_.find(metric->name()) != nullptr) metric->rename(concat("weighted_", metric->name()));
      const std::size_t names = logs_.size();
      logs_.set(metric->name(), 0);
      if (logs_.size() == names)
        throw InvalidArgument(concat("Two metrics of a model are named '", metric->name(), "'"),
                              "the logs would have one value for both",
                              "Give one of them another name: nn::SparseCategoricalAccuracy{.name = \"top\"}");
    }
}

DIST_INLINE void Measurements::reset() {
  for (AnyModelMetric* const metric : metrics_) metric->reset();
}

DIST_INLINE const Logs& Measurements::read() {
  for (const AnyModelMetric* const metric : metrics_) logs_.set(metric->name(), metric->result());
  return logs_;
}

DIST_INLINE const Logs& Measurements::read_here() {
  for (const AnyModelMetric* const metric : metrics_) logs_.set(metric->name(), metric->result_here());
  return logs_;
}

DIST_INLINE std::optional<Better> Measurements::better(std::string_view name) const {
  for (const AnyModelMetric* const metric : metrics_)
    if (metric->name() == name) return metric == metrics_[0] ? Better::less : metric->better();
  return std::nullopt;
}

}  // namespace dist::nn::detail
