#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/context/contexts.hpp>
#include <dist/context/in_trace.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/strategy.hpp>
#include <dist/context/worker_copies.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/nn/check.hpp>
#include <dist/nn/gradient_storage.hpp>
#include <dist/nn/optimizer_slots.hpp>
#include <dist/nn/optimizers/options.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/nn/option_state.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/nn/segments.hpp>
#include <dist/nn/tracked_parts.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/policies.hpp>

namespace dist::nn {

/// Replaces the weights of all copies by slot `average` (nn::AverageWeights), which each replica has as a whole if
/// `each_has_all`, else as a share.
template <class Weights, class Slot>
void take_average(const InCrossReplica auto& context, Weights& weights, const Slot& average, bool each_has_all) {
  using T = typename Weights::Element;
  if (each_has_all) {
    for (std::size_t local = 0; local < context.strategy().num_local_replicas(); ++local)
      weights.queue(context, local).copy(average.component(context, local), weights.component(context, local));
  } else {
    const auto whole = average.read(context);
    weights.assign(context, TensorView<const T>{whole});
  }
}

/// The option of `apply_gradients` to skip aggregation (spec P08).
struct SkipAggregation {};
/// The value of SkipAggregation.
inline constexpr SkipAggregation skip_aggregation{};

/// Selects nn::Optimizer's functions for traced steps, in nn/hlo/traced_optimizer.hpp, which only strategies that
/// compile steps include.
struct OptimizerInTrace {};

/// Applies gradients to the parameters of a network: `nn::Optimizer optimizer{strategy, net, nn::Adam{}};`
///
/// Slots are sharded: each replica stores only the slots of elements that it updates for all (OnShard). Every parameter
/// of an nn::Network has a gradient, possibly zero. Other networks may lack some (MayLackGradients): a parameter
/// without a gradient on all replicas does not change, nor do its slots (spec P09). The step number, for Adam's bias
/// correction, is common to all parameters. The network must outlive the optimizer.
template <class S, class Network, class O>
class Optimizer {
  static_assert(
      !S::Store::shared || !(has_option<O, ClipValue> || has_option<O, ClipNorm> || has_option<O, GlobalClipNorm>),
      "gradients cannot be clipped under a strategy that keeps one copy of each variable, such as CentralStorage (spec "
      "P10): leave out nn::ClipValue, nn::ClipNorm and nn::GlobalClipNorm, or use Mirrored");

  /// True if servers store and update the parameters.
  static constexpr bool on_servers = RemoteStore<typename S::Store>;
  static_assert(!on_servers || !MayLackGradients<Network, ReplicaContext<S>>,
                "a ParameterServer updates all parameters of a network: train a network that may lack gradients under "
                "another strategy");

  /// True if all gradients are in memory before they are applied.
  static constexpr bool stored = detail::stores_gradients<Network>;
  static_assert(
      stored || !(has_option<O, ClipNorm> || has_option<O, GlobalClipNorm> || has_option<O, AccumulateGradients>),
      "a network with nn::OwnerComputedGradients has no gradients in memory to clip by norm or to accumulate: leave "
      "out nn::ClipNorm, nn::GlobalClipNorm and nn::AccumulateGradients, or use nn::StoredGradients");
  static_assert(stored || !ScalesByNorms<O>,
                "this optimizer, like nn::Lamb, takes norms of gradients, but a network with "
                "nn::OwnerComputedGradients has no gradients in memory: use nn::StoredGradients, or another optimizer");

 public:
  /// The type of the parameters and the slots.
  using Element = typename std::remove_cvref_t<decltype(std::declval<Network&>().parameters())>::Element;
  /// The type of all slots.
  using Slots = OptimizerSlots<S, Element, detail::OwnersOf<Network>>;
  /// The type of one slot.
  using Slot = typename Slots::Slot;
  /// The state of the options of nn::With.
  using Options = OptionState<S, Element, O>;

  /// Throws InvalidArgument for hyper-parameters out of range and parameters that are not trainable (spec G03), and
  /// OutOfMemory.
  Optimizer(S& strategy, Network& network, O function)
      : variables_made_(strategy),
        strategy_(&strategy),
        function_(checked(std::move(function))),
        network_(&network),
        iterations_(strategy.template host_variable<std::int64_t, OnWrite, OnlyFirstReplica>(
            Shape{}, 0, concat(O::name, "/iterations"))),
        rate_(strategy, function_.learning_rate),
        slots_(strategy, O::name, detail::slot_names<Element>(function_), network.parameters(),
               detail::layout_of(network)),
        options_(strategy, network, function_) {
    detail::require_trainable(network.parameters());
    if constexpr (on_servers && ScalesByNorms<O>) S::Store::require_whole_tensors(O::name, network.parameters());
    if constexpr (HasLifetime<Network>) network_alive_ = network.lifetime();
  }

  /// Reports a network of another type.
  template <class Other>
    requires(!std::same_as<Other, Network>)
  Optimizer(S& strategy, Other&, O function)
      : Optimizer(strategy, dist::detail::refused<Network&>(), std::move(function)) {
    static_assert(dist::detail::always_false<Other>,
                  "the type of this optimizer names a different network than its argument: let the compiler deduce the "
                  "type, as in nn::Optimizer{strategy, net, nn::SGD{}}");
  }

  /// Sums the gradients over the replicas (spec P07) and updates every replica's parameters, in one pass over memory,
  /// or in two if it clips by norm. Counts one iteration. A collective call. Throws InvalidArgument after steps without
  /// aggregation, if the network was destroyed, or if it has no new gradients; and the errors of the network's
  /// `reduce_and_apply`.
  void apply_gradients(const InReplica auto& replica) { apply<true>(replica); }

  /// True if gradients may be sent during the backward pass: under a ParameterServer, unless an option needs all
  /// gradients or several passes.
  static constexpr bool applies_when_ready =
      on_servers && !has_option<O, ClipNorm> && !has_option<O, GlobalClipNorm> && !has_option<O, AccumulateGradients>;
  /// Returns the `when_ready` argument of `Network::backward`. Under a ParameterServer it sends gradients to the
  /// servers when they are ready, during the backward pass (ParameterServerOptions::bucket_bytes), so they must not be
  /// changed. `apply_gradients` must follow, and sends the rest. Sent gradients are applied even if the function throws
  /// later. Under other strategies it does nothing.
  ///
  ///     net.backward(replica, loss, optimizer.when_ready(replica));
  ///     optimizer.apply_gradients(replica);
  [[nodiscard]] auto when_ready([[maybe_unused]] const InReplica auto& replica) {
    if constexpr (applies_when_ready)
      return [this, &replica](IndexRange elements) {
        if (elements.begin == 0) return;  // the last part is sent with the counts of the step
        const auto& parameters = *S::Store::on_servers(network_->parameters());
        std::size_t ready = pushed(parameters);
        while (parameters.first_of_bucket(ready) >= elements.begin) ++ready;
        if (ready == pushed_.buckets) return;
        push(replica, std::as_const(*network_).gradients().component(replica), ready);
        S::Store::cache_of(replica).send_pushes();
      };
    else
      return NoOp{};
  }

  /// Updates this replica's copy with its own gradients, without communication. Unless an `all_reduce` has summed the
  /// gradients, the replicas' copies will differ (spec P08). With equal gradients, copies stay equal bit by bit if all
  /// processors have fused multiply-add, or none has. On mixed processors they drift apart in the last bit, because
  /// fused multiply-add rounds once instead of twice: compile with -ffp-contract=off, or apply gradients with
  /// aggregation, where one replica updates an element for all.
  ///
  /// Each replica stores whole slots. Throws InvalidArgument if steps with and without aggregation are mixed.
  template <InReplica Replica>
  void apply_gradients(const Replica& replica, SkipAggregation) {
    static_assert(
        !StoreOf<Replica>::shared,
        "nn::skip_aggregation needs a copy of the parameters on every replica (spec P08): a strategy that keeps "
        "one copy of each variable, such as CentralStorage, cannot apply the gradients of each replica to it");
    static_assert(!on_servers,
                  "nn::skip_aggregation needs a copy of the parameters on every replica (spec P08): a ParameterServer "
                  "keeps the parameters on its servers");
    static_assert(stored,
                  "nn::skip_aggregation needs each replica's own gradients, which a network with "
                  "nn::OwnerComputedGradients does not have: use nn::StoredGradients");
    apply<false>(replica);
  }

  /// Apply gradients in a compiled step. Before each call the host computes values such as the learning rate; after it,
  /// it counts the step.
  void apply_gradients(const InTrace auto& trace) { apply_traced<true>(trace); }
  /// Applies this replica's own gradients in a compiled step, without communication.
  void apply_gradients(const InTrace auto& trace, SkipAggregation) { apply_traced<false>(trace); }

  /// Error message for calls outside replica functions.
  template <InCrossReplica Context>
  void apply_gradients(const Context&, auto&&...) {
    static_assert(dist::detail::always_false<Context>,
                  "apply_gradients must be called in a replica function, where gradients are computed (spec P07): use "
                  "strategy.run");
  }

  /// Replaces the weights by their average, if there is one (nn::AverageWeights). Call it at the end of training, as
  /// Model::fit does (spec P11).
  void finalize(const InCrossReplica auto& context) {
    if constexpr (has_option<O, AverageWeights>) {
      if (iterations(context) == 0) return;
      require_network();
      take_average(context, network_->parameters(), slots().back(), slots_.whole_on_each(context));
    }
  }

  /// Returns the number of steps up to now (spec P12): updates, which may accumulate several calls.
  [[nodiscard]] std::int64_t iterations(const InCrossReplica auto& context) const { return iterations_.value(context); }
  /// Returns the number of steps up to now, in a replica function.
  [[nodiscard]] std::int64_t iterations(const InReplica auto& replica) const { return iterations_.value(replica); }
  /// Sets the step count, outside replica functions (Keras' optimizer.iterations.assign).
  void set_iterations(const InCrossReplica auto& scope, std::int64_t count) { iterations_.assign(scope, count); }

  /// Returns the learning rate of the next step, outside replica functions (Keras' optimizer.learning_rate).
  [[nodiscard]] float learning_rate() const {
    if constexpr (has_schedule<O> || on_servers)
      return learning_rate(strategy_->scope());
    else
      return function_.learning_rate;
  }
  /// Returns the learning rate of the next step, in any context; with a schedule, of step `iterations(context)`,
  /// counted from 0.
  [[nodiscard]] float learning_rate([[maybe_unused]] const auto& context) const {
    if constexpr (has_schedule<O>)
      return function_.learning_rate_of(iterations(context));
    else if constexpr (on_servers)
      return rate_.variable.value(context);
    else
      return function_.learning_rate;
  }
  /// Sets the learning rate, outside replica functions. Throws InvalidArgument for a rate out of range, and with a
  /// schedule.
  void set_learning_rate(float rate) {
    function_ = detail::with_learning_rate(function_, rate);
    if constexpr (on_servers) rate_.variable.assign(strategy_->scope(), rate);
  }

  /// The optimizer's arithmetic with its hyper-parameters, such as nn::Adam.
  [[nodiscard]] const O& function() const noexcept { return function_; }
  // See HasWorkerCopies.
  [[nodiscard]] const VariablesMade& variables_made() const noexcept { return variables_made_; }
  [[nodiscard]] std::tuple<Network&, const O&> arguments() const {
    require_network();
    return {*network_, function_};
  }
  /// Returns the slots, one variable of the parameters' size for each of the functor's `slots` (spec P13), OnShard:
  /// each element belongs to the replica that updates it for all. With `skip_aggregation` each replica has a whole
  /// slot, its `component`.
  [[nodiscard]] std::span<const Slot> slots() const noexcept { return slots_.all(); }
  /// Returns one parameter's part of a slot, outside replica functions: `slot(scope, "momentum", "dense/kernel")`.
  /// Throws InvalidArgument for an unknown slot or parameter.
  [[nodiscard]] Tensor<Element> slot(const InCrossReplica auto& scope, std::string_view name,
                                     std::string_view parameter) const {
    const Parameter& place = detail::parameter_named(network_->layout(), parameter);
    const Tensor<Element> all = slots_.whole(scope, slots_.named(name));
    return Tensor<Element>{TensorView<const Element>{all.data() + place.offset, place.shape}};
  }
  /// Assigns one parameter's part of a slot, on the replicas that update it, from a tensor of its shape, a contiguous
  /// range of as many numbers, or one number for all elements. Throws InvalidArgument for an unknown slot or parameter,
  /// and ShapeMismatch.
  template <class Values>
  void assign_slot(const InCrossReplica auto& scope, std::string_view name, std::string_view parameter,
                   const Values& values) {
    const Slot& slot = slots_.named(name);
    const Parameter& place = detail::parameter_named(network_->layout(), parameter);
    const auto given = dist::detail::given_to(detail::NamedPart<Element>{place.name(), place.shape}, values);
    slots_.assign(scope, slot, IndexRange{place.offset, place.offset + place.shape.elements()}, given);
  }

  /// Tracks the learning rate unless it has a schedule, the iterations, the slots, and accumulated gradients, the last
  /// two by parameter, as in "momentum/dense_1/kernel". Throws InvalidArgument if the network was destroyed. See
  /// Trackable.
  void track(auto& visit) {
    require_network();
    if constexpr (!has_schedule<O>) visit("learning_rate", rate_.leaf(function_.learning_rate));
    visit("iterations", iterations_);
    slots_.track(visit);
    options_.track(visit);
  }

 private:
  static O checked(O function) {
    function.check();
    return function;
  }

  template <bool aggregate, class Replica>
  void apply(const Replica& replica) {
    require_network();
    slots_.require_kind(replica, aggregate);
    const auto gradient = options_.accumulated(replica, function_, detail::gradient_of(*network_, replica));
    if (!gradient) return;
    if constexpr (on_servers) {
      push(replica, *gradient, S::Store::on_servers(network_->parameters())->buckets().size());
      pushed_.buckets = 0;
      iterations_.assign_add(replica, same(std::int64_t{1}));
    } else {
      apply_gradient<aggregate>(replica, *gradient);
    }
  }
  template <bool aggregate, class Replica>
  void apply_gradient(const Replica& replica, typename Options::Span gradient) {
    const auto present = detail::parameters_with_gradients(*network_, replica);
    if constexpr (aggregate && MayLackGradients<Network, Replica>) replica.all_reduce(max, std::span{present});
    const auto clipped = options_.template clipped<aggregate>(replica, function_, gradient);
    const auto mirror = network_->parameters().component(replica);

    const std::int64_t iteration = iterations_.value(replica) + 1;
    function_.template with_update<Element>(iteration, [&](const auto functor) {
      const auto with_slots = slots_.update(replica, functor);
      const auto given = options_.template directed<aggregate>(replica, with_slots, gradient, clipped, mirror, present);
      const auto update = options_.applied_to(replica, with_slots, given, present);
      if constexpr (!stored)
        network_->reduce_and_apply(replica, update);
      else if constexpr (!aggregate)
        dist::detail::update_on(replica.queue(), update, mirror, given.gradients);
      else if constexpr (Options::keeps_share)
        replica.update_shards(given.gradients, mirror, update);
      else
        replica.reduce_and_apply(sum, gradient, mirror, update);
    });
    if constexpr (MayLackGradients<Network, Replica>) std::fill(present.begin(), present.end(), std::uint8_t{0});
    iterations_.assign(replica, same(iteration));  // not aggregated: every replica counts (spec P12)
  }

  /// Makes the servers update all buckets before number `end` that were not pushed yet.
  void push(const InReplica auto& replica, std::span<Element> gradient, std::size_t end) {
    const auto clipped = options_.template clipped<true>(replica, function_, gradient);
    O function = function_;
    if constexpr (!has_schedule<O>) function.learning_rate = rate_.variable.value(replica);
    function.template with_update<Element>(iterations_.value(replica) + 1, [&]<class Functor>(const Functor& functor) {
      const auto update = options_.applied_to(replica, slots_.update(replica, functor), clipped);
      const auto functor_of = [&](std::size_t parameter) {
        if constexpr (UpdatesBySegment<std::remove_const_t<decltype(update)>>)
          return update.of_segment(parameter).functor;
        else
          return update.functor;
      };
      auto& parameters = *S::Store::on_servers(network_->parameters());
      S::Store::cache_of(replica).push_updates(parameters, IndexRange{pushed(parameters), end},
                                               std::span<const Element>{clipped.gradients}, functor_of,
                                               slots_.first_on_servers());
    });
    pushed_.buckets = end;
  }
  /// Returns the number of pushed buckets of the current gradients.
  [[nodiscard]] std::size_t pushed(const auto& parameters) {
    if (std::exchange(pushed_.gradients, parameters.gradients()) != parameters.gradients()) pushed_.buckets = 0;
    return pushed_.buckets;
  }

  template <bool aggregate>
  void apply_traced(const InTrace auto& trace) {
    require_network();
    auto gradients = options_.accumulated(trace, function_, network_->layout(), network_->traced_gradients(trace));
    trace.beforehand([this] {
      require_network();
      slots_.require_kind_in_program(strategy_->scope(), aggregate);
    });
    if (!gradients) return;
    const std::int64_t before = trace.count_call(this);  // position within one call of the program
    traced_apply<aggregate>(OptimizerInTrace{}, trace, *this, *network_, std::move(*gradients),
                            [this, before] { return iterations(strategy_->scope()) + before + 1; });
    trace.afterwards([this] { set_iterations(strategy_->scope(), iterations(strategy_->scope()) + 1); });
  }

  void require_network() const {
    if constexpr (HasLifetime<Network>) detail::require_network(O::name, network_alive_);
  }

  /// The learning rate under a ParameterServer: a variable that workers read.
  struct RateOnServers {
    RateOnServers(S& strategy, float rate)
        : variable(strategy.template host_variable<float, OnWrite, OnlyFirstReplica>(
              Shape{}, rate, concat(O::name, "/learning_rate"))) {}
    auto& leaf(float&) { return variable; }
    DistributedVariable<float, OnWrite, OnlyFirstReplica, typename S::HostDevice> variable;
  };
  /// The learning rate under other strategies: a member of the function.
  struct RateOfFunction {
    RateOfFunction(S&, float) {}
    static float& leaf(float& rate) { return rate; }
  };
  struct Pushed {
    std::uint64_t gradients = 0;  ///< to which `buckets` belongs
    std::size_t buckets = 0;
  };
  struct NothingPushed {};

  VariablesMade variables_made_;
  S* strategy_;
  O function_;
  Network* network_;
  std::weak_ptr<const void> network_alive_;
  decltype(std::declval<S&>().template host_variable<std::int64_t, OnWrite, OnlyFirstReplica>(
      Shape{}, 0, std::string{})) iterations_;
  [[no_unique_address]] std::conditional_t<on_servers, RateOnServers, RateOfFunction> rate_;
  Slots slots_;
  Options options_;
  [[no_unique_address]] std::conditional_t<on_servers, Pushed, NothingPushed> pushed_;
};

/// Deduces the template arguments.
template <Strategy S, class Network, class O>
Optimizer(S&, Network&, O) -> Optimizer<S, Network, O>;

template <class S, class Network, class O>
  requires(!Strategy<S> || !TrainableNetwork<Network> || !OptimizerFunction<O>)
struct Optimizer<S, Network, O> : dist::detail::Refused {
  using Refused::Refused;
  static_assert(dist::detail::satisfied<Strategy<S>>,
                DIST_NEEDS_STRATEGY("an optimizer", "nn::Optimizer optimizer{strategy, net, nn::SGD{}}"));
  static_assert(dist::detail::satisfied<(!Strategy<S> || TrainableNetwork<Network>)>,
                "the second argument of an optimizer must be a network with parameters() and gradients(), as in "
                "nn::TrainableNetwork: nn::Optimizer optimizer{strategy, net, nn::SGD{}}");
  static_assert(dist::detail::satisfied<(!Strategy<S> || !TrainableNetwork<Network> || OptimizerFunction<O>)>,
                "the third argument of an optimizer must be an nn::OptimizerFunction, such as nn::SGD{} or nn::Adam{}: "
                "nn::Optimizer optimizer{strategy, net, nn::SGD{}}");
};
/// Reports a first argument that is not a strategy.
template <dist::detail::NoStrategy First, class... Rest>
Optimizer(First&&, Rest&&...) -> Optimizer<std::remove_reference_t<First>, void, void>;

}  // namespace dist::nn
