#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <dist/context/cross_replica_context.hpp>
#include <dist/context/placement.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/error.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/optimizers/check.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/policies.hpp>

namespace dist::nn {

namespace detail {

template <class Variable, class T>
void require_value_of(const Variable& variable, TensorView<const T> value, float decay) {
  if (value.shape() != variable.shape())
    throw ShapeMismatch(
        text("A moving average does not fit variable '", variable.name(), "'"),
        text("the value has shape ", to_string(value.shape()), ", the variable ", to_string(variable.shape())),
        "Give a value of the variable's shape");
  require_decay("assign_moving_average", "decay", decay);
}

/// `value` becomes variable - (1 - decay) (variable - value).
template <class T>
void move_towards(std::span<const T> variable, std::span<T> value, float decay) {
  const T part = static_cast<T>(1 - double{decay});
  for (std::size_t i = 0; i < value.size(); ++i) value[i] = variable[i] - part * (variable[i] - value[i]);
}

}  // namespace detail

/// variable = decay variable + (1 - decay) value, where `value` is the mean of the replicas' values, so that all copies
/// get the same one (spec P23). A collective call. Throws ShapeMismatch, and InvalidArgument for a decay that is not in
/// [0, 1).
template <class Variable>
void assign_moving_average(const InReplica auto& replica, Variable& variable,
                           TensorView<const typename Variable::Element> value, float decay) {
  using T = typename Variable::Element;
  detail::require_value_of(variable, value, decay);
  Tensor<T> next{value.shape()};
  std::copy_n(value.data(), value.size(), next.data());
  replica.all_reduce(mean, next.elements());
  const std::span<T> copy = variable.component(replica);
  constexpr bool one_for_all = stores_centrally<std::remove_cvref_t<decltype(replica)>>;
  if (!one_for_all || replica.replica_id().index() == 0) {
    detail::move_towards(std::span<const T>{copy}, next.elements(), decay);
    std::copy_n(next.data(), next.size(), copy.data());
  }
  if constexpr (one_for_all) replica.barrier();
}
/// Outside replica functions: what `read` gives there, moved towards the one value, is assigned to every copy.
template <class Variable>
void assign_moving_average(const InCrossReplica auto& context, Variable& variable,
                           TensorView<const typename Variable::Element> value, float decay) {
  detail::require_value_of(variable, value, decay);
  Tensor<typename Variable::Element> next{value.shape()};
  std::copy_n(value.data(), value.size(), next.data());
  const auto now = variable.read(context);
  detail::move_towards(TensorView<const typename Variable::Element>{now}.elements(), next.elements(), decay);
  variable.assign(context, next);
}

/// A moving average that starts from nothing: after n values it is that of n values divided by 1 - decay^n, so that the
/// zero it started from has no weight (Kingma, Ba: "Adam", ICLR 2015, section 3; spec P23, zero_debias).
template <class S, class T = float>
class ZeroDebiasedAverage {
 public:
  /// Throws InvalidArgument for a decay that is not in [0, 1), OutOfMemory.
  ZeroDebiasedAverage(S& strategy, Shape shape, float decay, const std::string& name = "average")
      : decay_(decay),
        biased_(strategy.template variable<T, OnWrite, Mean>(shape, T{0}, text(name, "/biased"))),
        updates_(
            strategy.template variable<std::int64_t, OnWrite, OnlyFirstReplica>(Shape{}, 0, text(name, "/updates"))) {
    detail::require_decay("ZeroDebiasedAverage", "decay", decay);
  }

  /// As `assign_moving_average`. In a replica function a collective call.
  template <class Context>
  void update(const Context& context, TensorView<const T> value) {
    assign_moving_average(context, biased_, value, decay_);
    updates_.assign(context, same(updates_.value(context) + 1));
  }

  /// The average so far; zeros before the first value.
  template <class Context>
  [[nodiscard]] Tensor<T> read(const Context& context) const {
    const auto biased = biased_.read(context);
    Tensor<T> average{biased_.shape()};
    const auto updates = static_cast<double>(updates_.value(context));
    const T correction = updates == 0 ? T{0} : static_cast<T>(1 / (1 - std::pow(double{decay_}, updates)));
    for (std::size_t i = 0; i < average.size(); ++i) average[i] = biased[i] * correction;
    return average;
  }

  [[nodiscard]] std::int64_t updates(const auto& context) const { return updates_.value(context); }

 private:
  template <class E, class Sync, class Agg>
  using Variable = decltype(std::declval<S&>().template variable<E, Sync, Agg>(Shape{}, E{}, std::string{}));

  float decay_;
  Variable<T, OnWrite, Mean> biased_;
  Variable<std::int64_t, OnWrite, OnlyFirstReplica> updates_;
};

}  // namespace dist::nn
