#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/async/sent_function.hpp>
#include <dist/async/server_network.hpp>
#include <dist/context/cross_replica_context.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/pointers.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/check.hpp>
#include <dist/nn/optimizers/optimizer_function.hpp>
#include <dist/nn/optimizers/options.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/requests.hpp>
#include <dist/server/server_variable.hpp>
#include <dist/server/shard.hpp>
#include <dist/strategy/parameter_server.hpp>

namespace dist::nn {

/// What an optimizer on parameter servers is made of, for the workers that push gradients: its archive travels to them.
template <class O, rpc::Transport Via>
struct ServerOptimizerParts {
  SentFunction<O> function;
  ServerVariable<std::int64_t, Via> iterations;
  ServerVariable<float, Via> learning_rate;
  std::uint32_t first_slot = 0;
  std::uint64_t max_staleness = server::any_staleness;
};

/// What else a ServerOptimizer does.
struct ServerOptimizerOptions {
  /// Of the updates that a shard has taken since a gradient's parameters were pulled, the most with which it takes the gradient.
  /// It refuses its part of others, and counts these (`ServerVariable::staleness`), while the step counts as one.
  std::uint64_t max_staleness = server::any_staleness;
};

/// Updates the parameters of a ServerNetwork by an nn::OptimizerFunction, whose arithmetic runs on the parameter servers:
/// `nn::ServerOptimizer optimizer{strategy, net, nn::Adam{}};`. Its slots lie beside each shard, and the number of steps and the
/// learning rate are variables on the servers, which workers pull with the parameters.
///
/// This is the coordinator's side; WorkerNetwork::apply_gradients pushes. Workers do not wait for each other, so a gradient may
/// come from parameters that others have changed since, and two workers that have pulled at the same time take steps of the same
/// number. Gradients are a worker's own: nothing is summed before it is clipped. Refers to the network, which must outlive it.
///
/// An optimizer that scales by norms, such as nn::Lamb, needs each parameter whole on one server, which takes the norms. TensorFlow's
/// optimizers see each shard as a variable, so that their steps depend on the partitioner.
template <class Network, class O>
class ServerOptimizer {
  using Via = typename Network::Transport;
  using Scope = CrossReplicaContext<ParameterServer<Via>>;

 public:
  using Function = O;
  using Parts = ServerOptimizerParts<O, Via>;
  using Element = typename Network::Element;

  /// Throws InvalidArgument for hyper-parameters out of range, and for a parameter in several shards where the optimizer scales by
  /// norms, and what `ParameterServer::variable` does.
  ServerOptimizer(ParameterServer<Via>& strategy, Network& network, O function,
                  const ServerOptimizerOptions& options = {})
      : strategy_(&strategy),
        network_(&network),
        network_alive_(network.lifetime()),
        names_(checked_slot_names(network, function)),
        parts_{{function},
               strategy.template variable<std::int64_t>({}, 0, text(O::name, "/iterations")),
               strategy.template variable<float>({}, function.learning_rate, text(O::name, "/learning_rate")),
               network.take_slots(names_.size()),
               options.max_staleness} {
    for (auto& variable : network.parameters())
      variable.ensure_slots(strategy.scope(), std::vector<double>(names_.size(), 0.0), parts_.first_slot);
  }
  ServerOptimizer(const ServerOptimizer&) = delete;
  ServerOptimizer& operator=(const ServerOptimizer&) = delete;

  /// Throws InvalidArgument when the network has ended.
  [[nodiscard]] Network& network() const {
    detail::require_network(O::name, network_alive_);
    return *network_;
  }
  [[nodiscard]] const O& function() const noexcept { return parts_.function.function; }
  [[nodiscard]] const Parts& parts() const noexcept { return parts_; }

  /// Updates so far, those of all workers (spec P12).
  [[nodiscard]] std::int64_t iterations(const Scope& scope) const { return parts_.iterations.read(scope)[0]; }
  /// Makes the next step the one after `count`.
  void set_iterations(const Scope& scope, std::int64_t count) { parts_.iterations.assign(scope, count); }

  /// The learning rate of the next step; with a schedule it is that of step `iterations`.
  [[nodiscard]] float learning_rate() const {
    const auto scope = strategy_->scope();
    if constexpr (has_schedule<O>)
      return function().learning_rate_of(iterations(scope));
    else
      return parts_.learning_rate.read(scope)[0];
  }
  /// Sets the learning rate of the steps for which workers pull from now on. Throws InvalidArgument for a rate out of range, and
  /// where the optimizer has a schedule.
  void set_learning_rate(float rate) {
    parts_.learning_rate.assign(strategy_->scope(), detail::with_learning_rate(function(), rate).learning_rate);
  }

  /// What a slot keeps for one parameter: `slot(scope, "momentum", "dense/kernel")`. Throws InvalidArgument for a slot or a
  /// parameter that there is not.
  [[nodiscard]] Tensor<Element> slot(const Scope& scope, std::string_view name, std::string_view parameter) const {
    return network().variable(parameter).read_slot(scope, slot_named(name));
  }
  /// Writes it: `values` are a tensor of the parameter's shape. Throws as `slot` does, and ShapeMismatch.
  void assign_slot(const Scope& scope, std::string_view name, std::string_view parameter,
                   TensorView<const Element> values) {
    network().variable(parameter).assign_slot(scope, slot_named(name), values);
  }

  /// See ServerOptimizerOptions: that of the workers whose replicas are made from now on.
  void set_max_staleness(std::uint64_t max) noexcept { parts_.max_staleness = max; }
  /// How stale the gradients were that the shards of all parameters have taken, and how many they have refused.
  [[nodiscard]] server::Staleness staleness(const Scope& scope) const {
    server::Staleness all;
    for (const auto& variable : network().parameters()) all.add(variable.staleness(scope));
    return all;
  }

  /// Replaces the weights by their average, if the optimizer keeps one (nn::AverageWeights). Call it when training ends (spec
  /// P11).
  void finalize(const Scope& scope) {
    if constexpr (has_option<O, AverageWeights>) {
      if (iterations(scope) == 0) return;
      for (auto& variable : network().parameters())
        variable.assign(scope, variable.read_slot(scope, slot_named("average")).view());
    }
  }

  /// The learning rate unless it has a schedule, the iterations, and the slots, by the names that an nn::Optimizer has for them:
  /// a checkpoint of one is restored by the other. Gradients that a worker accumulates are its own, and are not kept. See
  /// Trackable.
  void track(auto& visit) {
    if constexpr (!has_schedule<O>) visit("learning_rate", parts_.learning_rate);
    visit("iterations", parts_.iterations);
    visit("kind", Zeros<std::int64_t>{Shape{1}});
    for (std::size_t slot = 0; slot < names_.size(); ++slot)
      visit(names_[slot], OfParameters<SlotLeaf>{network(), parts_.first_slot + static_cast<std::uint32_t>(slot)});
    if constexpr (has_option<O, AccumulateGradients>) visit("accumulated", Accumulated{network()});
  }

 private:
  /// A leaf that an nn::Optimizer has and servers have not: it is saved as zeros, and what is restored goes nowhere.
  template <class T>
  struct Zeros {
    using Element = T;
    Shape extents;

    [[nodiscard]] const Shape& shape() const noexcept { return extents; }
    [[nodiscard]] Tensor<T> whole(const InCrossReplica auto&) const { return Tensor<T>{extents}; }
    void restore(const InCrossReplica auto&, TensorView<const T>) const {}
  };
  struct ZerosLeaf : Zeros<typename Network::Element> {
    ZerosLeaf(auto& variable, std::uint32_t) : Zeros<typename Network::Element>{variable.shape()} {}
  };
  /// A slot of one parameter.
  struct SlotLeaf {
    using Element = typename Network::Element;
    typename Network::Variable* variable;
    std::uint32_t slot;

    SlotLeaf(typename Network::Variable& of, std::uint32_t number) : variable(&of), slot(number) {}
    [[nodiscard]] const Shape& shape() const noexcept { return variable->shape(); }
    [[nodiscard]] Tensor<Element> whole(const InCrossReplica auto& scope) const {
      return variable->read_slot(scope, slot);
    }
    void restore(const InCrossReplica auto& scope, TensorView<const Element> values) const {
      variable->assign_slot(scope, slot, values);
    }
  };
  /// A leaf for each parameter, by its name.
  template <class Leaf>
  struct OfParameters {
    Network& network;
    std::uint32_t slot;

    void track(auto& visit) {
      for (std::size_t i = 0; i < network.layout().size(); ++i)
        visit(network.layout()[i].name(), Leaf{network.parameters()[i], slot});
    }
  };
  struct Accumulated {
    Network& network;

    void track(auto& visit) {
      visit("calls", Zeros<std::int64_t>{Shape{1}});
      visit("total", OfParameters<ZerosLeaf>{network, 0});
    }
  };

  [[nodiscard]] static std::span<const std::string_view> checked_slot_names(const Network& network, const O& function) {
    function.check();
    if constexpr (ScalesByNorms<O>) require_whole(network);
    return detail::slot_names<Element>(function);
  }
  static void require_whole(const Network& network) {
    for (std::size_t i = 0; i < network.layout().size(); ++i)
      if (const std::size_t shards = network.parameters()[i].shards().size(); shards > 1)
        throw InvalidArgument(text(O::name, " cannot train a parameter that is divided among parameter servers"),
                              text("it scales each step by norms of a whole parameter, and ",
                                   network.layout()[i].name(), " has ", shards, " shards, each with a norm of its own"),
                              "Give the ParameterServer a partitioner that leaves the parameter whole, or none, or use "
                              "nn::Adam or nn::AdamW");
  }
  [[nodiscard]] std::uint32_t slot_named(std::string_view name) const {
    std::string names;
    for (std::size_t slot = 0; slot < names_.size(); ++slot) {
      if (names_[slot] == name) return parts_.first_slot + static_cast<std::uint32_t>(slot);
      names += text(names.empty() ? "" : ", ", names_[slot]);
    }
    throw InvalidArgument(text("Optimizer ", O::name, " has no slot '", name, "'"), text("it has ", names),
                          "Use one of these names");
  }

  ParameterServer<Via>* strategy_;
  Network* network_;
  std::weak_ptr<const void> network_alive_;
  std::span<const std::string_view> names_;  ///< of the slots
  Parts parts_;
};

template <rpc::Transport Via, class Network, class O>
ServerOptimizer(ParameterServer<Via>&, Network&, O, const ServerOptimizerOptions& = {}) -> ServerOptimizer<Network, O>;

}  // namespace dist::nn
