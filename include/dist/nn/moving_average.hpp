#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <dist/context/contexts.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/nn/check.hpp>
#include <dist/variable/copies.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/policies.hpp>

namespace dist::nn {

namespace detail {

template <class Variable, class T>
void require_value_of(const Variable& variable, TensorView<const T> value, float decay) {
  if (value.shape() != variable.shape())
    throw ShapeMismatch(
        concat("A moving average does not fit variable '", variable.name(), "'"),
        concat("the value has shape ", to_string(value.shape()), ", the variable ", to_string(variable.shape())),
        "Give a value of the variable's shape");
  require_decay("assign_moving_average", "decay", decay);
}

/// The ElementUpdate variable - (1 - decay) (variable - value).
template <class T>
struct MoveTowards {
  T part;

  explicit MoveTowards(float decay) : part(static_cast<T>(1 - double{decay})) {}
  [[nodiscard]] DIST_HD T operator()(std::size_t, T variable, T value) const {
    return static_cast<T>(variable - part * (variable - value));
  }
};

}  // namespace detail

/// Sets variable = decay variable + (1 - decay) value, with the mean `value` of the replicas, so copies stay equal
/// (spec P23). A collective call. Throws ShapeMismatch, and InvalidArgument for a decay outside [0, 1).
template <class Variable>
void assign_moving_average(const InReplica auto& replica, Variable& variable,
                           TensorView<const typename Variable::Element> value, float decay) {
  using T = typename Variable::Element;
  detail::require_value_of(variable, value, decay);
  const detail::MoveTowards<T> moved{decay};
  const std::span<T> copy = variable.component(replica);
  using Context = std::remove_cvref_t<decltype(replica)>;
  constexpr bool kept_equal = !dist::detail::copies_may_differ<Variable, Context> &&
                              (!std::same_as<typename Variable::Aggregation, None> || StoreOf<Context>::shared);
  if constexpr (kept_equal) {
    replica.reduce_and_apply(mean, std::span<const T>{value.data(), value.size()}, copy, moved);
  } else {
    constexpr std::size_t block = 1024;
    T means[block];
    for (std::size_t first = 0; first < copy.size(); first += block) {
      const std::size_t count = std::min(block, copy.size() - first);
      std::copy_n(value.data() + first, count, means);
      replica.all_reduce(mean, std::span<T>{means, count});
      for (std::size_t i = 0; i < count; ++i) copy[first + i] = moved(first + i, copy[first + i], means[i]);
    }
  }
}
/// Moves one copy towards `value`, in the function of `strategy.update`.
template <class Variable>
void assign_moving_average(const InUpdate auto& context, Variable& variable,
                           TensorView<const typename Variable::Element> value, float decay) {
  detail::require_value_of(variable, value, decay);
  const detail::MoveTowards<typename Variable::Element> moved{decay};
  const auto copy = variable.component(context);
  for (std::size_t i = 0; i < copy.size(); ++i) copy[i] = moved(i, copy[i], value[i]);
}
/// Moves the variable's value in `read` towards `value`, and assigns it to every copy, outside replica functions.
template <class Variable>
void assign_moving_average(const InCrossReplica auto& context, Variable& variable,
                           TensorView<const typename Variable::Element> value, float decay) {
  detail::require_value_of(variable, value, decay);
  Tensor<typename Variable::Element> next{value.shape()};
  std::copy_n(value.data(), value.size(), next.data());
  const auto now = variable.read(context);
  const detail::MoveTowards<typename Variable::Element> moved{decay};
  for (std::size_t i = 0; i < next.size(); ++i) next[i] = moved(i, now[i], next[i]);
  variable.assign(context, next);
}

/// A moving average with bias correction: starts at zero, and is divided by 1 - decay^n after n values (Kingma, Ba:
/// "Adam", ICLR 2015, section 3; spec P23, zero_debias).
template <class S, class T = float>
class ZeroDebiasedAverage {
 public:
  /// Throws InvalidArgument for a decay outside [0, 1), and OutOfMemory.
  ZeroDebiasedAverage(S& strategy, Shape shape, float decay, const std::string& name = "average")
      : decay_(decay),
        biased_(strategy.template variable<T, OnWrite, Mean>(shape, T{0}, concat(name, "/biased"))),
        updates_(strategy.template host_variable<std::int64_t, OnWrite, OnlyFirstReplica>(Shape{}, 0,
                                                                                          concat(name, "/updates"))) {
    detail::require_decay("ZeroDebiasedAverage", "decay", decay);
  }

  /// Adds a value; see `assign_moving_average`. In replica functions a collective call.
  template <class Context>
  void update(const Context& context, TensorView<const T> value) {
    assign_moving_average(context, biased_, value, decay_);
    updates_.assign(context, same(updates_.value(context) + 1));
  }

  /// Returns the current average; zeros before the first value.
  template <class Context>
  [[nodiscard]] Tensor<T> read(const Context& context) const {
    const auto biased = biased_.read(context);
    Tensor<T> average{biased_.shape()};
    const auto updates = static_cast<double>(updates_.value(context));
    const T correction = updates == 0 ? T{0} : static_cast<T>(1 / (1 - std::pow(double{decay_}, updates)));
    for (std::size_t i = 0; i < average.size(); ++i) average[i] = biased[i] * correction;
    return average;
  }

  /// Returns the number of updates, in any context.
  [[nodiscard]] std::int64_t updates(const auto& context) const { return updates_.value(context); }

  /// See Trackable.
  void track(auto& visit) {
    visit("biased", biased_);
    visit("updates", updates_);
  }

 private:
  float decay_;
  DistributedVariable<T, OnWrite, Mean, typename S::Device> biased_;
  DistributedVariable<std::int64_t, OnWrite, OnlyFirstReplica, typename S::HostDevice> updates_;
};

template <dist::detail::NoStrategy S, class T>
struct ZeroDebiasedAverage<S, T> : dist::detail::Refused {
  using Refused::Refused;
  static_assert(dist::detail::always_false<S>,
                DIST_NEEDS_STRATEGY("an nn::ZeroDebiasedAverage",
                                    "nn::ZeroDebiasedAverage average{strategy, shape, decay}"));
};
/// Reports a first argument that is not a strategy.
template <dist::detail::NoStrategy First, class... Rest>
ZeroDebiasedAverage(First&&, Rest&&...) -> ZeroDebiasedAverage<std::remove_reference_t<First>, void>;

}  // namespace dist::nn
