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
#include <dist/context/input_context.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/coordinator/cluster_coordinator.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/nn/option_state.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/rpc/rpc.hpp>
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
///       const auto next = [&] { return train.next(); };     // while the parameters come
///       return net.run(worker, next, [&](auto& replica, const auto& batch) {
///         const auto outputs = net.forward(replica, batch.x);
///         const auto loss = nn::sparse_categorical_crossentropy(replica, outputs, batch.y, batch_size);
///         net.backward(replica, loss, net.push_when_ready(replica));
///         net.apply_gradients(replica);                     // the rest is sent when the function ends
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
    this->pull_with(context, add_counts());
  }
  /// See NetworkReplica::run.
  template <ServerContext<Transport> Context, class Fn>
  auto run(const Context& context, Fn&& fn) {
    this->start_pull(context, add_counts());
    return this->step(context, std::forward<Fn>(fn));
  }
  /// Calls `prepare()`, such as what makes the next batch, while the parameters come, and then `fn(replica, prepared)` with what it
  /// has returned.
  template <ServerContext<Transport> Context, class Prepare, class Fn>
  auto run(const Context& context, Prepare&& prepare, Fn&& fn) {
    this->start_pull(context, add_counts());
    return this->step(context, std::forward<Prepare>(prepare), std::forward<Fn>(fn));
  }

  /// Whether gradients may be applied before the backward pass has ended: not where the optimizer needs them all, or those of
  /// several passes.
  static constexpr bool pushes_when_ready =
      !has_option<O, ClipNorm> && !has_option<O, GlobalClipNorm> && !has_option<O, AccumulateGradients>;

  /// See nn::Network::backward. Gradients that wait to be sent leave first.
  template <class Loss, class... WhenReady>
  void backward(const InReplica auto& replica, const Loss& loss, WhenReady&&... when_ready) {
    this->finish_pull();
    this->strategy().pushes().send();
    pushed_ = 0;
    Base::backward(replica, loss, std::forward<WhenReady>(when_ready)...);
  }
  /// For `backward`: gradients leave for the servers when they are ready, while those of the layers before are computed
  /// (ServerNetworkOptions::bytes_per_message). Nothing may change them then. `apply_gradients`, which has to follow, sends the
  /// others:
  ///
  ///     net.backward(replica, loss, net.push_when_ready(replica));
  ///     net.apply_gradients(replica);
  ///
  /// What has left is applied also where the function throws afterwards.
  [[nodiscard]] auto push_when_ready(const InReplica auto& replica) {
    static_assert(pushes_when_ready,
                  "gradients that are clipped by norms or accumulated are not applied before the backward pass has "
                  "ended: leave out push_when_ready, or nn::ClipNorm, nn::GlobalClipNorm and nn::AccumulateGradients");
    return [this, &replica](IndexRange elements) {
      if (elements.begin == 0) return;  // what is ready last leaves with the counts of the step
      std::size_t ready = pushed_;
      while (Network::layout()[this->groups()[ready].begin].offset >= elements.begin) ++ready;
      if (ready == pushed_) return;
      const O& function = optimizer_.function.function;
      const auto gradients = std::as_const(*this).gradients().component(replica);
      push_gradients(replica, options_.template clipped<true>(replica, function, gradients), ready);
      this->strategy().pushes().start();
    };
  }

  /// Lets the servers update the parameters with the gradients of the last `backward`, as nn::Optimizer::apply_gradients does with
  /// those of one replica, and gives them what layers have kept. Counts one iteration. Throws InvalidArgument where there are no
  /// gradients that were not applied yet, and outside `run`.
  void apply_gradients(const InReplica auto& replica) {
    StepPush<Transport>& pushes = this->strategy().pushes();
    const O& function = optimizer_.function.function;
    const auto gradient = options_.accumulated(replica, function, this->take_gradients(replica));
    push_state(replica, pushes);
    if (!gradient) return;
    push_gradients(replica, options_.template clipped<true>(replica, function, *gradient), this->groups().size());
    pushed_ = 0;
    ++applied_;
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
  using Options = OptionState<Strategy, Element, O>;

  /// Adds the number of steps and the learning rate to a pull, after which no gradient has been applied yet.
  [[nodiscard]] auto add_counts() {
    applied_ = 0;
    return [this](StepPull<Transport>& pull) {
      pull.add(optimizer_.iterations.shards()[0], std::span{&iterations_, 1}, version_of_iterations_);
      pull.add(optimizer_.learning_rate.shards()[0], std::span{&learning_rate_, 1}, version_of_rate_);
    };
  }
  /// Adds the gradients of the groups of parameters before number `end` that were not pushed yet.
  void push_gradients(const InReplica auto& replica, const typename Options::Clipped& clipped, std::size_t end) {
    StepPush<Transport>& pushes = this->strategy().pushes();
    const std::span<const Element> gradients = clipped.gradients;
    O function = optimizer_.function.function;
    if constexpr (!has_schedule<O>) function.learning_rate = learning_rate_;
    function.template with_update<Element>(iterations_ + applied_ + 1, [&]<class Functor>(const Functor& functor) {
      const auto update = options_.applied_to(replica, SlotUpdate<Functor, Element>{functor, {}}, clipped);
      for (; pushed_ < end; ++pushed_) {
        for (std::size_t i = this->groups()[pushed_].begin; i < this->groups()[pushed_].end; ++i) {
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
      }
    });
  }
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
  const Options options_;
  std::int64_t iterations_ = 0;  ///< as they were pulled
  std::int64_t applied_ = 0;     ///< since then
  std::size_t pushed_ = 0;       ///< groups of parameters, of the last gradients
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
  static constexpr bool applies_when_ready = WorkerNetwork<Network, O>::pushes_when_ready;
  [[nodiscard]] auto when_ready(const InReplica auto& replica) { return network_->push_when_ready(replica); }

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
