#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <utility>

#include <dist/core/trace.hpp>
#include <dist/core/type_traits.hpp>

namespace dist {

/// How a step is compiled, where the strategy's devices compile steps.
struct CompileOptions {
  /// The folder in which compiled programs are kept for other runs; empty: what DIST_COMPILE_CACHE names, or none.
  std::string cache = {};
  /// A step has a program for each form of its arguments: the types and shapes of tensors, and the greatest number of rows so
  /// far; where the host chooses ways of the step, as for nn::AccumulateGradients, one for each way. A dataset gives one form;
  /// more than this are refused.
  std::size_t most_forms = 8;
};

/// Devices for which a step is compiled as a whole, instead of doing what it calls.
template <class D>
concept CompilesSteps = requires {
  requires D::compiles_steps;
};

/// A step under a strategy of other devices: a call is `strategy.run(step, args...)`.
template <class S, class Step>
class RunStep {
 public:
  RunStep(S& strategy, Step step) : strategy_(&strategy), step_(std::move(step)) {}

  template <class... Args>
  decltype(auto) operator()(Args&&... args) {
    return strategy_->run(step_, std::forward<Args>(args)...);
  }

 private:
  S* strategy_;
  Step step_;
};

namespace detail {

/// What `strategy.compile` makes of a step.
template <class Device>
struct StepOn {
  template <class S, class Step>
  [[nodiscard]] static RunStep<S, Step> make(S& strategy, Step step, const CompileOptions&, SourceLine) {
    return {strategy, std::move(step)};
  }
};
template <CompilesSteps Device>
struct StepOn<Device> {
  template <class S, class Step>
  [[nodiscard]] static RunStep<S, Step> make(S& strategy, Step step, const CompileOptions&, SourceLine) {
    static_assert(always_false<S>,
                  "steps are compiled for these devices by <dist/strategy/compiled_step.hpp>: include it");
    return {strategy, std::move(step)};
  }
};

}  // namespace detail

/// What `strategy.compile(step)` is, of any strategy.
template <class S, class Step>
[[nodiscard]] auto compile(S& strategy, Step step, const CompileOptions& options = {}, SourceLine line = here()) {
  return detail::StepOn<typename S::Device>::make(strategy, std::move(step), options, line);
}

}  // namespace dist
