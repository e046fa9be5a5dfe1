#pragma once

#include <concepts>
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
#include <dist/comm/packing.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/pointers.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/forward_mode.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/outputs.hpp>
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
/// are then. Others may change these meanwhile. Parameters may still be on their way when such a function begins: `forward` waits
/// for those of a layer before it computes that, and whoever takes `parameters()` waits for all. One thread.
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
    std::vector<std::size_t> bytes;
    for (const Parameter& parameter : Served::layout()) bytes.push_back(parameter.shape.elements() * sizeof(Element));
    groups_ = packs_by_bytes(bytes, static_cast<std::size_t>(parts_.bytes_per_message));
  }

  [[nodiscard]] Strategy& strategy() noexcept { return this->strategy_; }

  /// Gets the values that have changed on the servers since it was called last. `context` has the connections. Throws what server::Client::Call does.
  template <ServerContext<Transport> Context>
  void pull(const Context& context) {
    pull_with(context, [](StepPull<Transport>&) {});
  }
  /// Pulls, and calls `fn(replica)`, whose result it returns. What the function pushes is sent when it has ended, one message to
  /// each server, and nothing if it throws, except what was to leave earlier (WorkerNetwork::push_when_ready). Throws what
  /// server::Client::Call does.
  template <ServerContext<Transport> Context, class Fn>
  auto run(const Context& context, Fn&& fn) {
    start_pull(context, [](StepPull<Transport>&) {});
    return step(context, std::forward<Fn>(fn));
  }

  /// See nn::Network::forward.
  template <InReplica Replica, class X, ForwardMode Mode = Training>
  [[nodiscard]] Outputs<Element, typename Base::Place> forward(const Replica& replica, const X& x, Mode mode = {}) {
    if constexpr (std::convertible_to<const X&, TensorView<const Element, typename Base::Place>>) {
      const auto outputs =
          Base::forward(replica, x, mode, [this](IndexRange elements) { await_elements_before(elements.end); });
      finish_pull();  // also where there are no rows, for which layers do not ask
      return outputs;
    } else {
      return Base::forward(replica, x, mode);
    }
  }
  /// See nn::Network.
  [[nodiscard]] typename Base::Parameters& parameters() {
    finish_pull();
    return Base::parameters();
  }
  using Base::parameter;
  template <std::size_t Layer, std::size_t Which>
  [[nodiscard]] auto parameter(const InReplica auto& replica) {
    finish_pull();
    return Base::template parameter<Layer, Which>(replica);
  }

 protected:
  /// Asks for what has changed. `add(pull)` adds to what comes first, which is what layers keep and the first parameters.
  template <ServerContext<Transport> Context, class Add>
  void start_pull(const Context& context, const Add& add) {
    const auto scope = this->strategy_.scope();
    std::vector<StepPull<Transport>> pulls;
    pulls.reserve(groups_.size());
    for (const IndexRange group : groups_) {
      StepPull<Transport>& pull = pulls.emplace_back(server::clients_of<Transport>(context));
      add_to(pull, group, Served::layout(), parts_.parameters, versions_, Base::parameters().component(scope, 0));
    }
    add(pulls.back());
    if constexpr (Net::state_count > 0)
      add_to(pulls.back(), {0, Served::state_layout().size()}, Served::state_layout(), parts_.state, state_versions_,
             this->state().component(scope, 0));
    for (std::size_t group = pulls.size(); group-- > 0;) pulls[group].send();
    pulls_ = std::move(pulls);
  }
  template <ServerContext<Transport> Context, class Add>
  void pull_with(const Context& context, const Add& add) {
    const PullEnds ends{pulls_};
    start_pull(context, add);
    finish_pull();
  }
  /// Waits for all parameters.
  void finish_pull() { await_elements_before(Net::padded_count); }
  /// Waits for what comes first, calls `fn(replica)` and sends what it pushes. It may change what layers keep, which is then pulled
  /// again. What has not come when it ends is pulled again, too.
  template <ServerContext<Transport> Context, class Fn>
  auto step(const Context& context, Fn&& fn) {
    const PullEnds ends{pulls_};
    await_elements_before(1);
    for (auto& versions : state_versions_) std::fill(versions.begin(), versions.end(), server::unknown_version);
    return this->strategy_.step(context, std::forward<Fn>(fn));
  }
  /// The same after `prepare()`, with `fn(replica, prepared)`.
  template <ServerContext<Transport> Context, class Prepare, class Fn>
  auto step(const Context& context, Prepare&& prepare, Fn&& fn) {
    const PullEnds ends{pulls_};
    auto&& prepared = prepare();
    return step(context, [&](auto& replica) { return fn(replica, prepared); });
  }
  [[nodiscard]] const Parts& parts() const noexcept { return parts_; }
  /// The parameters that travel together, the last ones first.
  [[nodiscard]] std::span<const IndexRange> groups() const noexcept { return groups_; }
  /// Of each parameter's shards, as they were pulled.
  [[nodiscard]] const std::vector<std::uint64_t>& versions_of(std::size_t parameter) const noexcept {
    return versions_[parameter];
  }

 private:
  /// No pull outlives the context whose connections it has.
  struct PullEnds {
    std::vector<StepPull<Transport>>& pulls;
    ~PullEnds() { pulls.clear(); }
  };

  template <class Variables>
  static void add_to(StepPull<Transport>& pull, IndexRange which, std::span<const Parameter> layout,
                     const Variables& variables, std::vector<std::vector<std::uint64_t>>& versions, const auto values) {
    for (std::size_t i = which.begin; i < which.end; ++i)
      dist::detail::for_each_shard(variables[i], values.subspan(layout[i].offset, layout[i].shape.elements()),
                                   [&](std::size_t shard, const auto& of_server, const auto part) {
                                     pull.add(of_server, part, versions[i][shard]);
                                   });
  }
  /// Waits for the groups that have elements before `end`.
  void await_elements_before(std::size_t end) {
    while (!pulls_.empty() && Served::layout()[groups_[pulls_.size() - 1].begin].offset < end) {
      StepPull<Transport> next = std::move(pulls_.back());
      pulls_.pop_back();
      next.wait();
    }
  }

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
  std::vector<IndexRange> groups_;
  std::vector<StepPull<Transport>> pulls_;  ///< on their way, those of the first of the groups
};

}  // namespace dist::nn
