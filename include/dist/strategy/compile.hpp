#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <dist/core/trace.hpp>
#include <dist/core/type_traits.hpp>

namespace dist {

/// Options for devices that compile steps.
struct CompileOptions {
  /// The cache of compiled programs. Empty: DIST_COMPILE_CACHE, or none.
  std::string cache = {};
  /// The maximum number of forms of a step's arguments: types and shapes, and the maximum of rows until then. A form
  /// has one program, or one for each choice of the host, as in nn::AccumulateGradients. A dataset has one form.
  std::size_t most_forms = 8;
};

/// Devices that compile steps as a whole, instead of executing their calls.
template <class D>
concept CompilesSteps = requires {
  requires D::compiles_steps;
};

/// A step for devices that do not compile: a call is `strategy.run(step, args...)`.
template <class S, class Step>
class RunStep {
 public:
  /// The strategy must outlive this object.
  RunStep(S& strategy, Step step) : strategy_(&strategy), step_(std::move(step)) {}

  /// Runs the step on all replicas, and returns its results.
  template <class... Args>
  decltype(auto) operator()(Args&&... args) {
    return strategy_->run(step_, std::forward<Args>(args)...);
  }

 private:
  S* strategy_;
  Step step_;
};

namespace detail {

/// Creates the result of `strategy.compile` for a device.
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
                  "steps for these devices are compiled by <dist/strategy/compiled_step.hpp>: include it");
    return {strategy, std::move(step)};
  }
};

}  // namespace detail

/// Returns a callable step: see BasicStrategy::compile.
template <class S, class Step>
[[nodiscard]] auto compile(S& strategy, Step step, const CompileOptions& options = {}, SourceLine line = here()) {
  return detail::StepOn<typename S::Device>::make(strategy, std::move(step), options, line);
}

}  // namespace dist
