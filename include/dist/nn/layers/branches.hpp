#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/chain.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layout.hpp>
#include <dist/nn/sequential.hpp>

namespace dist::nn::detail {

/// The common base of layers that combine several branches, layers or Sequentials, with the same input.
template <class In, class... Branch>
struct Branches {
  using Nets = std::tuple<NetworkOn<In, Branch>...>;
  template <std::size_t Index>
  using Net = std::tuple_element_t<Index, Nets>;
  static constexpr std::size_t count = sizeof...(Branch);

  using Leaves = typename Joined<typename AllLeaves<typename NetworkOn<In, Branch>::Bound>::Type...>::Type;

  static constexpr auto& parameters = specs_of<Learned, ParameterSpec, Leaves>;
  static constexpr auto& state = specs_of<Kept, StateSpec, Leaves>;
  static constexpr bool is_view = false;
  static constexpr bool uses_replica = (NetworkOn<In, Branch>::uses_replica || ...);

  static constexpr bool uses_global_rows = (NetworkOn<In, Branch>::uses_global_rows || ...);
  static constexpr bool takes_ids = (NetworkOn<In, Branch>::takes_ids || ...);

  /// The index of the branch's first parameter among all parameters.
  template <std::size_t Index>
  static constexpr std::size_t first_parameter = []<std::size_t... Before>(std::index_sequence<Before...>) {
    return (std::size_t{0} + ... + Net<Before>::parameters.size());
  }
  (std::make_index_sequence<Index>{});
  template <std::size_t Index>
  static constexpr std::size_t first_state = []<std::size_t... Before>(std::index_sequence<Before...>) {
    return (std::size_t{0} + ... + Net<Before>::state.size());
  }
  (std::make_index_sequence<Index>{});
};

/// The sum of tensors of one shape.
template <std::size_t Count, class T>
struct SumOf {
  const T* from[Count];  // a std::array is not usable in device code
  T* to;
  DIST_HD void operator()(std::size_t i) const {
    T sum = from[0][i];
    for (std::size_t other = 1; other < Count; ++other) sum += from[other][i];
    to[i] = sum;
  }
};

/// The Operation of layers that combine branches. `Join` has two static functions:
///
/// - `join<T, count>(queue, outputs, y)` computes y from the array of outputs;
/// - `part<Index>(queue, outputs, dy, gradient)` writes the gradient of a branch's output.
template <class Of, class Backend, class T, class Join>
class BranchesOperation {
  using State = typename Backend::State;
  using Queue = typename Backend::Device::Queue;
  using Where = typename Backend::Device::Space;
  template <class Element>
  using View = ViewOn<Backend, Element>;
  template <class Element>
  using Views = ParameterViewsOn<Backend, Element, Of::parameters.size()>;
  using All = std::make_index_sequence<Of::count>;

 public:
  static constexpr bool skips_parameter_gradients = true;

  void forward(State& state, View<const T> x, const Views<const T>& parameters, View<T> y) {
    forward_each(NoReplica{}, state, x, parameters, y);
  }
  template <class Call>
  void forward(const Call& call, State& state, View<const T> x, const Views<const T>& parameters, View<T> y) {
    forward_each(call, state, x, parameters, y);
  }

  template <bool InputGradient, bool ParameterGradients = true>
  void backward(State& state, View<const T>, const Views<const T>& parameters, View<const T>, View<T> dy,
                const Views<T>& gradients, View<T> dx) {
    backward_each<InputGradient, ParameterGradients>(NoReplica{}, state, parameters, dy, gradients, dx, All{});
  }
  template <bool InputGradient, bool ParameterGradients = true, class Replica>
  void backward(const Replica& replica, State& state, View<const T>, const Views<const T>& parameters, View<const T>,
                View<T> dy, const Views<T>& gradients, View<T> dx) {
    backward_each<InputGradient, ParameterGradients>(replica, state, parameters, dy, gradients, dx, All{});
  }

  void swap_scratch(BranchesOperation& other) {
    [&]<std::size_t... Index>(std::index_sequence<Index...>) {
      (std::get<Index>(chains_).swap_scratch(std::get<Index>(other.chains_)), ...);
    }
    (All{});
  }

 protected:
  /// Computes the outputs of the branches.
  template <class Call>
  void compute(const Call& call, State& state, View<const T> x, const Views<const T>& parameters) {
    [&]<std::size_t... Index>(std::index_sequence<Index...>) {
      (forward_one<Index>(queue_of<Backend>(state), call, state, x, parameters), ...);
    }
    (All{});
  }

 private:
  template <std::size_t Index>
  using Net = typename Of::template Net<Index>;

  template <class Call>
  void forward_each(const Call& call, State& state, View<const T> x, const Views<const T>& parameters, View<T> y) {
    compute(call, state, x, parameters);
    Join::template join<T, Of::count>(queue_of<Backend>(state), outputs_, y);
  }
  template <std::size_t Index, class Call>
  void forward_one(const Queue& queue, const Call& call, State& state, View<const T> x,
                   const Views<const T>& parameters) {
    auto& chain = std::get<Index>(chains_);
    const T* const first = data_of<Index>(parameters);
    const auto outputs = [&] {
      if constexpr (!Net<Index>::uses_replica) {
        return chain.forward(queue, state, first, x, NoReplica{});
      } else if constexpr (Net<Index>::state.size() == 0) {
        return chain.forward(queue, state, first, x, call.pass());
      } else {
        return chain.forward(queue, state, first, x, call.pass(call.state[Of::template first_state<Index>].data()));
      }
    }();
    outputs_[Index] = outputs.values;
  }

  template <bool InputGradient, bool ParameterGradients, class Replica, std::size_t... Index>
  void backward_each(const Replica& replica, State& state, const Views<const T>& parameters, View<T> dy,
                     const Views<T>& gradients, View<T> dx, std::index_sequence<Index...>) {
    const Queue queue = queue_of<Backend>(state);
    (Join::template part<Index>(queue, outputs_, View<const T>{dy.data(), dy.shape()},
                                std::get<Index>(chains_).output_gradient()),
     ...);
    (backward_one<Index, InputGradient, ParameterGradients>(queue, replica, state, parameters, gradients), ...);
    if constexpr (InputGradient)
      queue.for_each({0, dx.size()},
                     SumOf<Of::count, T>{{std::get<Index>(chains_).input_gradient().data()...}, dx.data()});
  }
  template <std::size_t Index, bool InputGradient, bool ParameterGradients, class Replica>
  void backward_one(const Queue& queue, const Replica& replica, State& state, const Views<const T>& parameters,
                    const Views<T>& gradients) {
    std::get<Index>(chains_).template backward<InputGradient, ParameterGradients>(
        queue, state, data_of<Index>(parameters), data_of<Index>(gradients), replica, NoOp{});
  }

  /// The branch's first parameter.
  template <std::size_t Index, class Element>
  [[nodiscard]] static Element* data_of([[maybe_unused]] const Views<Element>& all) {
    if constexpr (Net<Index>::parameters.size() == 0) {
      return nullptr;
    } else {
      return all[Of::template first_parameter<Index>].data();
    }
  }

  template <std::size_t... Index>
  static auto chains_of(std::index_sequence<Index...>) -> std::tuple<Chain<Net<Index>, Backend, T>...>;

  decltype(chains_of(All{})) chains_;
  std::array<View<const T>, Of::count> outputs_;
};

}  // namespace dist::nn::detail
