#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <dist/async/step_messages.hpp>
#include <dist/core/error.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/device/cpu.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/server_shard.hpp>
#include <dist/strategy/one_process.hpp>
#include <dist/strategy/one_replica.hpp>
#include <dist/strategy/strategy_of.hpp>
#include <dist/variable/store/mirrored.hpp>

namespace dist {

/// The strategy of a worker's replica of what is on parameter servers: one replica in the calling thread, as Default has it,
/// and messages to the servers, which leave together at the end of a step.
template <rpc::Transport T>
class ReplicaStrategy : public StrategyOf<ReplicaStrategy<T>, OneReplica<Cpu>, OneProcess, MirroredStore> {
  using Base = StrategyOf<ReplicaStrategy<T>, OneReplica<Cpu>, OneProcess, MirroredStore>;

 public:
  using Transport = T;
  static constexpr bool updates_elsewhere = true;

  ReplicaStrategy() : Base(typename ReplicaStrategy::ReplicaOptions{}) {}

  [[nodiscard]] static std::string describe() { return "ReplicaStrategy: 1 replica in the calling thread of a worker"; }

  /// The dataset itself.
  template <class Dataset>
  [[nodiscard]] static Dataset distribute_dataset(Dataset dataset, const data::InputOptions& = {}) {
    return dataset;
  }

  /// Calls `fn(replica)`, and then sends what that has put into `pushes`: one message to each server. Where `fn` throws,
  /// nothing is sent. `context` has the connections (ServerContext). Throws what server::Client::Call does.
  template <ServerContext<T> Context, class Fn>
  auto step(const Context& context, Fn&& fn) {
    pushes_.emplace(server::clients_of<T>(context));
    const Ended ended{pushes_};
    if constexpr (std::is_void_v<decltype(Base::run(fn))>) {
      Base::run(fn);
      pushes_->send();
    } else {
      auto result = Base::run(fn);
      pushes_->send();
      return result;
    }
  }

  /// What the step that goes on is to send. Throws InvalidArgument outside a step.
  [[nodiscard]] StepPush<T>& pushes() {
    if (!pushes_)
      throw InvalidArgument("A replica's gradients or counts were to be pushed outside a step",
                            "the connections to the parameter servers are those of the function that runs",
                            "Call it inside the run of the worker's network");
    return *pushes_;
  }

 private:
  struct Ended {
    std::optional<StepPush<T>>& pushes;
    ~Ended() { pushes.reset(); }
  };

  std::optional<StepPush<T>> pushes_;
};

/// The context of a replica function on a worker whose replica is one of something on parameter servers by transport `T`.
template <class Replica, class T>
concept InWorkerReplica = std::same_as<typename std::remove_cvref_t<Replica>::Strategy, ReplicaStrategy<T>>;

}  // namespace dist
