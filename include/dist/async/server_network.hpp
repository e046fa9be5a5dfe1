#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/context/cross_replica_context.hpp>
#include <dist/core/pointers.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/server_variable.hpp>
#include <dist/strategy/parameter_server.hpp>

namespace dist::nn {

/// What a network on parameter servers is made of, by name, for those who have a replica of it: its archive travels to workers.
template <class Element, rpc::Transport Via>
struct ServerNetworkParts {
  std::vector<ServerVariable<Element, Via>> parameters;
  std::vector<ServerVariable<Accumulator<Element>, Via>> state;
  std::uint64_t seed = 0;
  std::uint64_t bytes_per_message = 0;
};

/// What else a ServerNetwork does.
struct ServerNetworkOptions {
  /// Parameters travel whole, from the last to the first in one message to each server until that has more than so many bytes,
  /// then in another one: to a worker, which waits for them layer by layer, and their gradients back, which leave when they are
  /// ready. 0: in one message. The default costs small networks no second message, and lets the transfer of large layers go on
  /// while others are computed.
  std::size_t bytes_per_message = std::size_t{1} << 20;
};

/// A network whose parameters are variables of their own on parameter servers, in turn, where the strategy's partitioner divides
/// the large ones: `Net` is a Sequential, as for nn::Network, and the back end is the workers'. What layers keep but do not
/// learn lies there, too.
///
///     nn::ServerNetwork<Net, nn::Reference, dist::Grpc> net{strategy};
///     nn::ServerOptimizer optimizer{strategy, net, nn::Adam{}};
///     const auto replicas = nn::create_per_worker_network(coordinator, optimizer);
///     coordinator.schedule(step, replicas, train);
///
/// This is the coordinator's side, which reads and writes parameters; workers compute with replicas of it (WorkerNetwork). Its
/// elements are dropped with it.
template <class Net, Backend BackendType, rpc::Transport Via, class ElementType = float>
class ServerNetwork {
  static_assert(Net::parameter_count > 0,
                "a network needs a layer with parameters: there is nothing to train in this nn::Sequential");

 public:
  using Architecture = Net;
  using Backend = BackendType;
  using Transport = Via;
  using Element = ElementType;
  using Parts = ServerNetworkParts<Element, Via>;
  using Variable = ServerVariable<Element, Via>;
  using StateElement = Accumulator<Element>;

  /// Parameters are initialised from `seed`, with the numbers that nn::Network has. Throws what
  /// `ParameterServer::variable` does.
  explicit ServerNetwork(ParameterServer<Via>& strategy, std::uint64_t seed = 0,
                         const ServerNetworkOptions& options = {}) {
    Tensor<Element> parameters{Shape{Net::padded_count}};
    Net::initialize(parameters.view(), seed);
    Tensor<StateElement> state{Shape{Net::padded_state_count}};
    if constexpr (Net::state_count > 0) Net::initialize_state(state.view(), seed);
    parts_ = {on_servers(strategy, parameters, layout()), on_servers(strategy, state, state_layout()), seed,
              options.bytes_per_message};
  }
  ServerNetwork(const ServerNetwork&) = delete;
  ServerNetwork& operator=(const ServerNetwork&) = delete;

  /// Name and shape of every parameter, and of what layers keep.
  [[nodiscard]] static constexpr std::span<const Parameter> layout() noexcept { return Net::parameters; }
  [[nodiscard]] static constexpr std::span<const Parameter> state_layout() noexcept {
    if constexpr (Net::state_count > 0)
      return Net::state;
    else
      return {};
  }
  /// The variables, in the order of the layouts.
  [[nodiscard]] std::span<Variable> parameters() noexcept { return parts_.parameters; }
  [[nodiscard]] std::span<const Variable> parameters() const noexcept { return parts_.parameters; }
  [[nodiscard]] const Parts& parts() const noexcept { return parts_; }

  /// A parameter by its name in `layout()`, such as "dense_1/kernel". Throws InvalidArgument for a name that no parameter has.
  [[nodiscard]] const Variable& variable(std::string_view name) const { return parts_.parameters[number_of(name)]; }
  [[nodiscard]] Variable& variable(std::string_view name) { return parts_.parameters[number_of(name)]; }
  /// The same as a tensor.
  [[nodiscard]] Tensor<Element> parameter(const ServerContext<Via> auto& context, std::string_view name) const {
    return variable(name).read(context);
  }
  /// Writes a parameter: `values` are a tensor of its shape, a contiguous range of as many numbers, or one number for all
  /// elements. Throws InvalidArgument for a name that no parameter has, ShapeMismatch.
  template <class Values>
  void assign_parameter(const ServerContext<Via> auto& context, std::string_view name, const Values& values) {
    variable(name).assign(context, values);
  }

  /// Its parameters and what its layers keep, by the names that they have in an nn::Network: a checkpoint of one is restored by
  /// the other. See Trackable.
  void track(auto& visit) {
    const auto all = [&](std::span<const Parameter> layout, auto& variables) {
      for (std::size_t i = 0; i < layout.size(); ++i) visit(layout[i].name(), variables[i]);
    };
    all(layout(), parts_.parameters);
    all(state_layout(), parts_.state);
  }

  /// For an optimizer that keeps `count` slots beside each parameter: the number of the first.
  [[nodiscard]] std::uint32_t take_slots(std::size_t count) noexcept {
    return next_slot_.fetch_add(static_cast<std::uint32_t>(count), std::memory_order_relaxed);
  }
  /// Expires with the network, for those that refer to it.
  [[nodiscard]] std::weak_ptr<const void> lifetime() const noexcept { return lifetime_; }

 private:
  /// A variable for each tensor of the layout.
  template <class T>
  [[nodiscard]] static std::vector<ServerVariable<T, Via>> on_servers(ParameterServer<Via>& strategy,
                                                                      const Tensor<T>& all,
                                                                      std::span<const Parameter> layout) {
    std::vector<ServerVariable<T, Via>> variables;
    variables.reserve(layout.size());
    for (const Parameter& parameter : layout)
      variables.push_back(strategy.template variable<T>(
          parameter.shape, TensorView<const T>{all.data() + parameter.offset, parameter.shape}, parameter.name()));
    return variables;
  }
  [[nodiscard]] static std::size_t number_of(std::string_view name) {
    return static_cast<std::size_t>(&detail::parameter_named(layout(), name) - layout().data());
  }

  Parts parts_;
  std::atomic<std::uint32_t> next_slot_{0};
  std::shared_ptr<const void> lifetime_ = std::make_shared<char>();
};

}  // namespace dist::nn
