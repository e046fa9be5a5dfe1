#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/context/in_trace.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/future.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/nn/choice.hpp>
#include <dist/nn/losses/average_loss.hpp>
#include <dist/nn/losses/reduced.hpp>
#include <dist/nn/parameter.hpp>

namespace dist::nn {

/// factor * sum |w| (Keras' regularizers.L1).
struct L1 {
  float factor = 0.01f;  ///< multiplies the sum

  template <class T>
  [[nodiscard]] DIST_HD T term(T weight) const {
    using std::abs;
    return static_cast<T>(factor) * abs(weight);
  }
  template <class T>
  [[nodiscard]] DIST_HD T slope(T weight) const {
    using detail::select;
    // The last operand is 0 or NaN.
    return static_cast<T>(factor) * select(weight > T{0}, T{1}, select(weight < T{0}, T{-1}, weight));
  }
};

/// factor * sum w^2 (Keras' regularizers.L2).
struct L2 {
  float factor = 0.01f;  ///< multiplies the sum

  template <class T>
  [[nodiscard]] DIST_HD T term(T weight) const {
    return static_cast<T>(factor) * weight * weight;
  }
  template <class T>
  [[nodiscard]] DIST_HD T slope(T weight) const {
    return T{2} * static_cast<T>(factor) * weight;
  }
};

/// l1 * sum |w| + l2 * sum w^2 (Keras' regularizers.L1L2).
struct L1L2 {
  float l1 = 0;  ///< factor of the absolute values
  float l2 = 0;  ///< factor of the squares

  template <class T>
  [[nodiscard]] DIST_HD T term(T weight) const {
    return L1{l1}.term(weight) + L2{l2}.term(weight);
  }
  template <class T>
  [[nodiscard]] DIST_HD T slope(T weight) const {
    return L1{l1}.slope(weight) + L2{l2}.slope(weight);
  }
};

/// A penalty: `term` is its value for one weight, `slope` the derivative. Both must be DIST_HD in networks on GPUs.
template <class R>
concept Regularizer = std::copyable<R> && requires(const R regularizer, float weight) {
  { regularizer.term(weight) } -> std::same_as<float>;
  { regularizer.slope(weight) } -> std::same_as<float>;
};

namespace detail {
template <class R, class T>
struct TermOfWeight {
  R regularizer;
  const T* weights;
  DIST_HD double operator()(std::size_t i) const { return static_cast<double>(regularizer.term(weights[i])); }
};
template <class R, class T>
struct AddSlope {
  R regularizer;
  const T* weights;
  T* gradients;
  T scale;
  DIST_HD void operator()(std::size_t i) const { gradients[i] += scale * regularizer.slope(weights[i]); }
};

/// Returns a parameter's range of elements.
[[nodiscard]] inline IndexRange elements_of(const Parameter& parameter) {
  return {parameter.offset, parameter.offset + parameter.shape.elements()};
}
}  // namespace detail

/// Selects kernels, the default for regularisation, also of parts of a layer, such as "query/kernel" of
/// MultiHeadAttention.
struct KernelsOnly {
  /// True for kernels.
  [[nodiscard]] bool operator()(const Parameter& parameter) const {
    return parameter.kind == "kernel" || parameter.kind.ends_with("/kernel");
  }
};

namespace detail {
/// The sum of numbers that a queue computes: a Future.
template <Future Part>
struct SumOfParts {
  std::vector<Part> parts;

  void wait() const {
    for (const Part& part : parts) part.wait();
  }
  [[nodiscard]] bool is_done() const {
    return std::all_of(parts.begin(), parts.end(), [](const Part& part) { return part.is_done(); });
  }
  [[nodiscard]] double value() const {
    double total = 0;
    for (const Part& part : parts) total += part.value();
    return total;
  }
};
}  // namespace detail

/// Starts the unscaled regularisation loss of a network's parameters, for logs (spec P06). Returns a Future with a
/// `value()`, which waits for the replica's queue.
template <Regularizer R, class Network, class Which = KernelsOnly>
[[nodiscard]] auto start_total_regularization(const InReplica auto& replica, Network& network, const R& regularizer,
                                              Which&& which = {}) {
  const auto weights = network.parameters().component(replica);
  using T = typename decltype(weights)::value_type;
  const detail::TermOfWeight<R, T> term{regularizer, weights.data()};
  const auto start = [&](const Parameter& parameter) {
    return replica.queue().start_transform_reduce(sum, detail::elements_of(parameter), term);
  };
  if constexpr (std::same_as<decltype(start(network.layout()[0])), Ready<double>>) {
    double total = 0;
    for (const Parameter& parameter : network.layout())
      if (which(parameter)) total += start(parameter).value();
    return Ready{total};
  } else {
    detail::SumOfParts<decltype(start(network.layout()[0]))> sum_of_all;
    for (const Parameter& parameter : network.layout())
      if (which(parameter)) sum_of_all.parts.push_back(start(parameter));
    return sum_of_all;
  }
}
/// Returns the unscaled regularisation loss of a network's parameters. Waits for the replica's queue.
template <Regularizer R, class Network, class Which = KernelsOnly>
[[nodiscard]] double total_regularization(const InReplica auto& replica, Network& network, const R& regularizer,
                                          Which&& which = {}) {
  return start_total_regularization(replica, network, regularizer, which).value();
}

/// Adds the gradient of this replica's 1 / R of the regularisation loss to the network's gradients, between `backward`
/// and `apply_gradients` (spec P03, P05).
template <Regularizer R, class Network, class Which = KernelsOnly>
void add_regularization_gradients(const InReplica auto& replica, Network& network, const R& regularizer,
                                  Which&& which = {}) {
  const auto weights = network.parameters().component(replica);
  const auto gradients = std::as_const(network).gradients().component(replica);
  using T = typename decltype(weights)::value_type;
  const T scale = scale_regularization_loss(replica, T{1});
  for (const Parameter& parameter : network.layout())
    if (which(parameter))
      replica.queue().for_each(detail::elements_of(parameter),
                               detail::AddSlope<R, T>{regularizer, weights.data(), gradients.data(), scale});
}

/// Returns this replica's 1 / R of the regularisation loss, so that the sum over R replicas counts it once (spec P03,
/// P05), and adds its gradient to the network's gradients, between `backward` and `apply_gradients`. Waits for the
/// replica's queue.
///
///     net.backward(replica, loss);
///     const float penalty = nn::regularization_loss(replica, net, nn::L2{1e-4f});
///     optimizer.apply_gradients(replica);
template <Regularizer R, class Network, class Which = KernelsOnly>
auto regularization_loss(const InReplica auto& replica, Network& network, const R& regularizer, Which&& which = {}) {
  using T = typename decltype(network.parameters().component(replica))::value_type;
  add_regularization_gradients(replica, network, regularizer, which);
  return scale_regularization_loss(replica, static_cast<T>(total_regularization(replica, network, regularizer, which)));
}

/// Selects the functions for traced steps in nn/hlo/traced_regularizer.hpp, which only strategies that compile steps
/// include.
struct RegularizerInTrace {};

/// Returns the unscaled regularisation loss in a traced step, a traced number. The network has
/// `traced_parameters(replica)`, and `add_gradient(replica, number, array)` by a parameter's number in the layout.
template <class R, class Network, class Which = KernelsOnly>
[[nodiscard]] auto total_regularization(const InTrace auto& replica, Network& network, const R& regularizer,
                                        const Which& which = {}) {
  return traced_regularization(RegularizerInTrace{}, replica, network, regularizer, which);
}
/// Adds the gradient of this replica's part of the regularisation loss, in a traced step.
template <class R, class Network, class Which = KernelsOnly>
void add_regularization_gradients(const InTrace auto& replica, Network& network, const R& regularizer,
                                  const Which& which = {}) {
  add_traced_regularization(RegularizerInTrace{}, replica, network, regularizer, which);
}
/// Returns this replica's part of the regularisation loss and adds its gradient, in a traced step.
template <class R, class Network, class Which = KernelsOnly>
auto regularization_loss(const InTrace auto& replica, Network& network, const R& regularizer, const Which& which = {}) {
  using Element = typename std::remove_cvref_t<decltype(network.parameters())>::Element;
  add_regularization_gradients(replica, network, regularizer, which);
  const auto total = total_regularization(replica, network, regularizer, which);
  return scale_regularization_loss(replica, total.template as<Element>());
}

/// A Model's loss with a regulariser of the network's kernels:
/// `nn::Regularized{nn::MeanSquaredError{}, nn::L2{1e-4f}}`.
template <class L, Regularizer R>
struct Regularized {
  static_assert(!detail::FitLoss<L>::is_regularized,
                "an nn::Regularized inside another would lose its regularizer: give one with the sum of both, such as "
                "nn::L1L2");
  static constexpr std::string_view name = L::name;

  L loss;         ///< of the data
  R regularizer;  ///< of the kernels
};

/// Deduces the template arguments.
template <class L, class R>
Regularized(L, R) -> Regularized<L, R>;

namespace detail {
template <class L, class R>
struct FitLoss<Regularized<L, R>> {
  using Function = typename FitLoss<L>::Function;
  static constexpr bool is_one_number = FitLoss<L>::is_one_number;
  static constexpr bool is_sum = FitLoss<L>::is_sum;
  static constexpr bool is_regularized = true;
  static const Function& function(const Regularized<L, R>& loss) { return FitLoss<L>::function(loss.loss); }
};
}  // namespace detail

}  // namespace dist::nn
