#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/async/replica_strategy.hpp>
#include <dist/async/server_network.hpp>
#include <dist/async/step_messages.hpp>
#include <dist/core/pointers.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/requests.hpp>
#include <dist/server/server_shard.hpp>
#include <dist/server/server_variable.hpp>

namespace dist::nn {

namespace detail {

/// The strategy of a replica, which is there before the network on it.
template <class Via>
struct HasReplicaStrategy {
  ReplicaStrategy<Via> strategy_;
};

}  // namespace detail

/// A replica of a network that is on parameter servers, in this process: an nn::Network with the values that it has pulled.
/// `Served` is a ServerNetwork.
///
/// Its forward and backward, and losses, compute as everywhere, in replica functions that `run` calls with the parameters as they
/// are then. Others may change these meanwhile. One thread.
// A parameter with the name of the base class, nvcc would take for that.
template <class Served>
class NetworkReplica
    : private detail::HasReplicaStrategy<typename Served::Transport>,
      public nn::Network<typename Served::Architecture, typename Served::Backend, typename Served::Element> {
  using Net = typename Served::Architecture;
  using Base = nn::Network<Net, typename Served::Backend, typename Served::Element>;

 public:
  using Transport = typename Served::Transport;
  using Element = typename Served::Element;
  using Strategy = ReplicaStrategy<Transport>;
  using Parts = typename Served::Parts;

  /// Throws ArchiveError for parts of another network, OutOfMemory.
  explicit NetworkReplica(Parts parts) : Base(this->strategy_, parts.seed), parts_(std::move(parts)) {
    require_layout(Served::layout(), parts_.parameters);
    require_layout(Served::state_layout(), parts_.state);
    const auto unknown = [](const auto& variables) {
      std::vector<std::vector<std::uint64_t>> versions;
      for (const auto& variable : variables) versions.emplace_back(variable.shards().size(), server::unknown_version);
      return versions;
    };
    versions_ = unknown(parts_.parameters);
    state_versions_ = unknown(parts_.state);
  }

  [[nodiscard]] Strategy& strategy() noexcept { return this->strategy_; }

  /// Gets the values that have changed on the servers since it was called last. `context` has the connections. Throws what server::Client::Call does.
  template <ServerContext<Transport> Context>
  void pull(const Context& context) {
    StepPull<Transport> pull{server::clients_of<Transport>(context)};
    add_to(pull);
    pull.send();
    pull.wait();
  }
  /// Pulls, and calls `fn(replica)`, whose result it returns. What the function pushes is sent when it has ended, one message to
  /// each server, and nothing if it throws. Throws what server::Client::Call does.
  template <ServerContext<Transport> Context, class Fn>
  auto run(const Context& context, Fn&& fn) {
    pull(context);
    return step(context, std::forward<Fn>(fn));
  }

 protected:
  /// Calls `fn(replica)` and sends what it pushes. It may change what layers keep, which is then pulled again.
  template <ServerContext<Transport> Context, class Fn>
  auto step(const Context& context, Fn&& fn) {
    for (auto& versions : state_versions_) std::fill(versions.begin(), versions.end(), server::unknown_version);
    return this->strategy_.step(context, std::forward<Fn>(fn));
  }
  [[nodiscard]] const Parts& parts() const noexcept { return parts_; }
  /// Of each parameter's shards, as they were pulled.
  [[nodiscard]] const std::vector<std::uint64_t>& versions_of(std::size_t parameter) const noexcept {
    return versions_[parameter];
  }
  void add_to(StepPull<Transport>& pull) {
    const auto scope = this->strategy_.scope();
    const auto all = [&](std::span<const Parameter> layout, const auto& variables, auto& versions, const auto values) {
      for (std::size_t i = 0; i < layout.size(); ++i)
        add_variable(pull, variables[i], values.subspan(layout[i].offset, layout[i].shape.elements()), versions[i]);
    };
    all(Served::layout(), parts_.parameters, versions_, this->parameters().component(scope, 0));
    if constexpr (Net::state_count > 0)
      all(Served::state_layout(), parts_.state, state_versions_, this->state().component(scope, 0));
  }
  template <class T>
  static void add_variable(StepPull<Transport>& pull, const ServerVariable<T, Transport>& variable, std::span<T> values,
                           std::vector<std::uint64_t>& versions) {
    dist::detail::for_each_shard(variable, values, [&](std::size_t shard, const auto& of_server, std::span<T> part) {
      pull.add(of_server, part, versions[shard]);
    });
  }

 private:
  template <class Variables>
  static void require_layout(std::span<const Parameter> layout, const Variables& variables) {
    const bool fits =
        layout.size() == variables.size() && std::equal(layout.begin(), layout.end(), variables.begin(),
                                                        [](const Parameter& parameter, const auto& variable) {
                                                          return parameter.shape == variable.shape();
                                                        });
    if (!fits)
      throw ArchiveError(
          "The variables of a network are those of another one",
          text("there are ", variables.size(), " of them, and the network has ", layout.size(), " or other shapes"),
          "Start all processes of the job from one build of the program");
  }

  Parts parts_;
  std::vector<std::vector<std::uint64_t>> versions_;
  std::vector<std::vector<std::uint64_t>> state_versions_;
};

}  // namespace dist::nn
