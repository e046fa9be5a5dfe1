#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <dist/async/network_replica.hpp>
#include <dist/async/replica_strategy.hpp>
#include <dist/async/server_network.hpp>
#include <dist/async/server_optimizer.hpp>
#include <dist/async/step_messages.hpp>
#include <dist/comm/rpc.hpp>
#include <dist/context/input_context.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/nn/option_state.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/server/requests.hpp>
#include <dist/server/server_shard.hpp>
#include <dist/server/server_variable.hpp>
#include <dist/variable/element_update.hpp>
#include <dist/variable/slot_update.hpp>

namespace dist::nn {

/// A worker's replica of a network on parameter servers, with what its optimizer does there: an argument of scheduled functions
/// (`create_per_worker_network`). `Network` is a ServerNetwork, `O` an nn::OptimizerFunction.
///
///     [](dist::WorkerContext& worker, auto& net, auto& train) {
///       const auto& batch = train.next();
///       return net.run(worker, [&](auto& replica) {         // with the parameters as they are now
///         const auto outputs = net.forward(replica, batch.x);
///         const auto loss = nn::sparse_categorical_crossentropy(replica, outputs, batch.y, batch_size);
///         net.backward(replica, loss);
///         net.apply_gradients(replica);                     // sent when the function ends
///         return loss.value();
///       });
///     }
template <class Network, class O>
class WorkerNetwork : public NetworkReplica<Network> {
  using Base = NetworkReplica<Network>;

 public:
  using Transport = typename Base::Transport;
  using Element = typename Base::Element;
  using Strategy = typename Base::Strategy;

  /// Throws ArchiveError for parts of another network, OutOfMemory.
  WorkerNetwork(typename Network::Parts network, ServerOptimizerParts<O, Transport> optimizer)
      : Base(std::move(network)),
        optimizer_(std::move(optimizer)),
        options_(this->strategy(), *this, optimizer_.function.function),
        learning_rate_(optimizer_.function.function.learning_rate) {}

  /// Gets what has changed of the parameters, the number of steps so far and the learning rate. Throws what
  /// server::Client::Call does.
  template <ServerContext<Transport> Context>
  void pull(const Context& context) {
    StepPull<Transport> pull{server::clients_of<Transport>(context)};
    this->add_to(pull);
    pull.add(optimizer_.iterations.shards()[0], std::span{&iterations_, 1}, version_of_iterations_);
    pull.add(optimizer_.learning_rate.shards()[0], std::span{&learning_rate_, 1}, version_of_rate_);
    pull.send();
    pull.wait();
    applied_ = 0;
  }
  /// See NetworkReplica::run.
  template <ServerContext<Transport> Context, class Fn>
  auto run(const Context& context, Fn&& fn) {
    pull(context);
    return this->step(context, std::forward<Fn>(fn));
  }

  /// See nn::Network::backward. Gradients that wait to be sent leave first.
  template <class Loss, class... WhenReady>
  void backward(const InReplica auto& replica, const Loss& loss, WhenReady&&... when_ready) {
    this->strategy().pushes().send();
    Base::backward(replica, loss, std::forward<WhenReady>(when_ready)...);
  }

  /// Lets the servers update the parameters with the gradients of the last `backward`, as nn::Optimizer::apply_gradients does with
  /// those of one replica, and gives them what layers have kept. Counts one iteration. Throws InvalidArgument where there are no
  /// gradients that were not applied yet, and outside `run`.
  void apply_gradients(const InReplica auto& replica) {
    StepPush<Transport>& pushes = this->strategy().pushes();
    O function = optimizer_.function.function;
    const auto gradient = options_.accumulated(replica, function, this->take_gradients(replica));
    push_state(replica, pushes);
    if (!gradient) return;
    const auto clipped = options_.template clipped<true>(replica, function, *gradient);
    const std::span<const Element> gradients = clipped.gradients;

    const std::int64_t iteration = iterations_ + ++applied_;
    if constexpr (!has_schedule<O>) function.learning_rate = learning_rate_;
    function.template with_update<Element>(iteration, [&]<class Functor>(const Functor& functor) {
      const auto update = options_.applied_to(replica, SlotUpdate<Functor, Element>{functor, {}}, clipped);
      for (std::size_t i = 0; i < Network::layout().size(); ++i) {
        const Parameter& parameter = Network::layout()[i];
        const Functor of_parameter = functor_of(update, i);
        dist::detail::for_each_shard(this->parts().parameters[i],
                                     gradients.subspan(parameter.offset, parameter.shape.elements()),
                                     [&](std::size_t shard, const auto& of_server, std::span<const Element> part) {
                                       pushes.add(of_server, of_parameter, part,
                                                  {.version = this->versions_of(i)[shard],
                                                   .first_slot = optimizer_.first_slot,
                                                   .max_staleness = optimizer_.max_staleness});
                                     });
      }
    });
    pushes.add(optimizer_.iterations.shards()[0], Sum{}, std::int64_t{1});
  }

  /// The number of updates and the learning rate, as they were pulled.
  [[nodiscard]] std::int64_t iterations() const noexcept { return iterations_; }
  [[nodiscard]] float learning_rate() const noexcept {
    if constexpr (has_schedule<O>)
      return optimizer_.function.function.learning_rate_of(iterations_);
    else
      return learning_rate_;
  }

 private:
  /// The functor of the elements of one parameter.
  template <class Update>
  [[nodiscard]] static auto functor_of(const Update& update, std::size_t parameter) {
    if constexpr (requires { update.of_segment(parameter); })
      return update.of_segment(parameter).functor;
    else
      return update.functor;
  }
  void push_state([[maybe_unused]] const InReplica auto& replica, [[maybe_unused]] StepPush<Transport>& pushes) {
    if constexpr (Network::Architecture::state_count > 0) {
      using Kept = const typename Network::StateElement;
      const std::span<Kept> state = Base::state().component(replica);
      for (std::size_t i = 0; i < Network::state_layout().size(); ++i) {
        const Parameter& kept = Network::state_layout()[i];
        dist::detail::for_each_shard(this->parts().state[i], state.subspan(kept.offset, kept.shape.elements()),
                                     [&](std::size_t, const auto& of_server, std::span<Kept> part) {
                                       pushes.add(of_server, dist::detail::Assign{}, part);
                                     });
      }
    }
  }

  const ServerOptimizerParts<O, Transport> optimizer_;
  const OptionState<Strategy, Element, O> options_;
  std::int64_t iterations_ = 0;  ///< as they were pulled
  std::int64_t applied_ = 0;     ///< since then
  float learning_rate_;
  std::uint64_t version_of_iterations_ = server::unknown_version;
  std::uint64_t version_of_rate_ = server::unknown_version;
};

/// The optimizer of a worker's replica, for code that has one beside its network: the network itself pushes.
template <class Network, class O>
class Optimizer<ReplicaStrategy<typename Network::Transport>, WorkerNetwork<Network, O>, O> {
 public:
  Optimizer(ReplicaStrategy<typename Network::Transport>&, WorkerNetwork<Network, O>& network, const O&)
      : network_(&network) {}

  /// See WorkerNetwork.
  void apply_gradients(const InReplica auto& replica) { network_->apply_gradients(replica); }

 private:
  WorkerNetwork<Network, O>* network_;
};

namespace detail {

/// Makes the replica of a worker.
template <class Network, class O>
struct MakeWorkerNetwork {
  [[nodiscard]] auto operator()(const InputContext&, typename Network::Parts& network,
                                ServerOptimizerParts<O, typename Network::Transport>& optimizer) const {
    return WorkerNetwork<Network, O>{std::move(network), std::move(optimizer)};
  }
};

}  // namespace detail

/// Makes a replica of a network on parameter servers on every worker, and anew on one that was lost: an argument of scheduled
/// functions, which get a WorkerNetwork.
template <class Strategy, class Network, class O>
[[nodiscard]] auto create_per_worker_network(ClusterCoordinator<Strategy>& coordinator,
                                             const ServerOptimizer<Network, O>& optimizer) {
  return coordinator.create_per_worker_resource(detail::MakeWorkerNetwork<Network, O>{}, optimizer.network().parts(),
                                                optimizer.parts());
}

}  // namespace dist::nn
