#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/lone_process.hpp>
#include <dist/cluster/task.hpp>
#include <dist/cluster/task_endpoint.hpp>
#include <dist/cluster/validate.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/kept_function.hpp>
#include <dist/core/pointers.hpp>
#include <dist/core/type_name.hpp>
#include <dist/core/warning.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/device/cpu.hpp>
#include <dist/net/deadline.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/net/random_number.hpp>
#include <dist/net/secret.hpp>
#include <dist/net/tls_files.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/clients.hpp>
#include <dist/server/error.hpp>
#include <dist/server/registry.hpp>
#include <dist/server/served.hpp>
#include <dist/server/server_shard.hpp>
#include <dist/server/server_variable.hpp>
#include <dist/server/session.hpp>
#include <dist/strategy/one_process.hpp>
#include <dist/strategy/one_replica.hpp>
#include <dist/strategy/strategy_of.hpp>
#include <dist/variable/make_sharded_variable.hpp>
#include <dist/variable/partitioner.hpp>
#include <dist/variable/store/mirrored.hpp>

namespace dist {

/// How a ParameterServer divides variables and waits for servers.
struct ParameterServerOptions {
  /// Into how many shards variables are divided: see Partitioner. None leaves them whole (spec J01).
  AnyPartitioner partitioner = {};
  rpc::ChannelOptions channel = {.secret = net::job_secret(), .tls = net::job_tls()};
  net::Milliseconds wait_for_servers{180'000};                  ///< for all parameter servers to come (spec J02)
  net::Milliseconds patience = net::default_patience;           ///< before stderr says who is missing
  std::chrono::nanoseconds timeout = std::chrono::seconds{60};  ///< of a call to a server
  std::size_t attempts = 3;  ///< of a call, before the server counts as gone (spec L15)
  /// What this process and the workers do with the memory of servers on their machines. By default `write` where one process that
  /// is lost ends all of them, which the resolver says by `ends_together`, or where all are threads of one process; else `read`.
  std::optional<server::SharedMemoryAccess> shared_memory = {};
};

namespace detail {

inline constinit Warning ran_on_coordinator{};

}  // namespace detail

/// Asynchronous training with parameter servers (spec J01): variables are on processes that serve them, functions run on
/// workers, and this process, the coordinator, schedules the functions (ClusterCoordinator). `T` is what calls travel by, such as
/// dist::Grpc, or dist::Local between threads of one process.
///
/// The one process that has this is the chief of the cluster; parameter servers and workers call dist::serve.
///
///     dist::ParameterServer<dist::Grpc> strategy{resolver, {.partitioner = dist::MinSizeShards{.max_shards = 8}}};
///     auto table = strategy.variable<float>({10'000'000, 64}, 0.0F, "table");
///
/// Besides `variable` it has what `Default` has: what the coordinator computes itself, its counters and metrics are in its own
/// process. Its end is that of the servers and workers, unless an exception ends it (server::Session).
template <rpc::Transport T>
class ParameterServer : public StrategyOf<ParameterServer<T>, OneReplica<Cpu>, OneProcess, MirroredStore> {
  using Base = StrategyOf<ParameterServer<T>, OneReplica<Cpu>, OneProcess, MirroredStore>;

 public:
  using Transport = T;
  using OnLoss = detail::KeptFunction<void, const ServerUnavailable&>;

  /// Waits until all parameter servers listen. Throws InvalidArgument for a cluster without them, or without workers, and in a
  /// process that is not the coordinator (spec J01); and as server::Session does.
  template <ClusterResolver Resolver>
  explicit ParameterServer(const Resolver& resolver, ParameterServerOptions options = {})
      : Base(replica_options()),
        options_(completed(std::move(options), resolver)),
        cluster_(coordinated_by(resolver)),
        workers_(endpoints_of(TaskType::worker, resolver.describe())),
        clients_(std::make_shared<server::Clients<T>>(endpoints_of(TaskType::parameter_server, resolver.describe()),
                                                      server::ClientOptions{.channel = options_.channel,
                                                                            .timeout = options_.timeout,
                                                                            .attempts = options_.attempts,
                                                                            .shared_memory = options_.shared_memory})),
        losses_(std::make_shared<Losses>()),
        session_(server::served_by(cluster_, resolver.describe()), session_options()) {}
  ParameterServer(const ParameterServer&) = delete;
  ParameterServer& operator=(const ParameterServer&) = delete;

  [[nodiscard]] std::string describe() const {
    const auto count = [](std::size_t number, std::string_view what) {
      return text(number, " ", what, number == 1 ? "" : "s");
    };
    return text("ParameterServer<", detail::type_name<T>(), ">: ", count(clients_->size(), "parameter server"), ", ",
                count(workers_.size(), "worker"));
  }

  /// A variable on the parameter servers. Shards go to them in turn, a variable that is not divided counting as one (spec J04);
  /// scalars are never divided, and none has more shards than rows (spec J05, J06).
  ///
  /// `initial` is what other strategies take: a number, a TensorView, a range of numbers, or a function that fills a
  /// `TensorView<E>`; a function `(TensorView<E> part, IndexRange rows)`, which needs memory for one shard only; or a function
  /// that another process can run (Schedulable), `fill(i)` for element i or `fill(first, std::span<E>)`, which the servers call
  /// themselves, so that no element travels (spec J07).
  template <class E, class Initial = E>
  [[nodiscard]] ServerVariable<E, T> variable(Shape shape, Initial&& initial = E{}, std::string name = "Variable") {
    const std::size_t count = number_of_shards(options_.partitioner, name, shape, sizeof(E));
    const ShardLayout layout = ShardLayout::div(shape.rank() == 0 ? 1 : shape[0], count);
    auto made = std::make_shared<Made>(clients_);
    std::vector<ServerShard<E, T>> shards;
    const auto make = [&](const auto& create) {
      const std::size_t row_size = shape.rank() == 0 ? 1 : shape.row().elements();
      for (std::size_t shard = 0; shard < count; ++shard) {
        const IndexRange rows = layout.rows_of(shard);
        const std::size_t server = next_server_.fetch_add(1, std::memory_order_relaxed) % clients_->size();
        typename ServerShard<E, T>::Place place{server, session_.incarnation({TaskType::parameter_server, server}),
                                                net::random_number(), count == 1 ? name : part_name(name, shard)};
        const server::ShardSpec spec{place.id, place.name, rows.size(), row_size, rows.begin * row_size};
        create(*clients_->of(server, place.incarnation), spec, rows);
        made->shards.push_back({server, place.incarnation, place.id});
        shards.emplace_back(std::move(place), shape.with_rows(rows.size()));
      }
    };
    using Given = std::remove_cvref_t<Initial>;
    if constexpr (server::MakesElements<Given, E>) {
      make([&](server::Client<T>& client, const server::ShardSpec& spec, IndexRange) {
        client.template create_filled<E>(spec, initial);
      });
    } else {
      const detail::InitialOfShards<E, std::remove_reference_t<Initial>> initials{name, shape, initial};
      make([&](server::Client<T>& client, const server::ShardSpec& spec, IndexRange rows) {
        const auto given = initials.rows(rows);
        using Rows = std::remove_cvref_t<decltype(given)>;
        if constexpr (Reducible<Rows>) {
          client.create(spec, detail::to_element<E>(given, spec.name));
        } else if constexpr (std::convertible_to<const Rows&, TensorView<const E>>) {
          client.create(spec, std::span<const E>{TensorView<const E>{given}.elements()});
        } else {
          Tensor<E> part{shape.with_rows(rows.size())};
          given(part.view());
          client.create(spec, std::span<const E>{part.elements()});
        }
      });
    }
    return {std::move(shards), std::move(name), std::move(made)};
  }

  /// Runs a replica function in this process, without workers. Allowed, and seldom meant (spec J10).
  template <class Fn, class... Args>
  decltype(auto) run(Fn&& fn, Args&&... args) {
    detail::ran_on_coordinator.give(
        "strategy.run of a ParameterServer ran a function on the coordinator: schedule it with a ClusterCoordinator, "
        "which runs "
        "it on workers. DIST_WARNINGS=0 silences this.");
    return Base::run(std::forward<Fn>(fn), std::forward<Args>(args)...);
  }
  /// Refuses a dataset, which workers make themselves (spec J11).
  template <class Dataset, class Options = data::InputOptions>
  auto distribute_dataset(Dataset, const Options& = {}) const {
    static_assert(sizeof(Dataset) == 0,
                  "the workers of a ParameterServer make their datasets themselves: give a function that makes one to "
                  "create_per_worker_dataset of the ClusterCoordinator");
  }

  /// The processes that run scheduled functions. `num_workers()` counts those of the strategy itself, which is this one.
  [[nodiscard]] std::size_t num_remote_workers() const noexcept { return workers_.size(); }
  [[nodiscard]] std::size_t num_parameter_servers() const noexcept { return clients_->size(); }
  /// Throws ServerUnavailable where a parameter server is gone or has lost its variables, also one that nobody has called since.
  void check() const { session_.check(); }

  // What a ClusterCoordinator asks (CoordinatedStrategy), and variables.
  [[nodiscard]] const std::vector<net::Endpoint>& worker_endpoints() const noexcept { return workers_; }
  [[nodiscard]] const std::vector<net::Endpoint>& server_endpoints() const noexcept { return clients_->endpoints(); }
  [[nodiscard]] const rpc::ChannelOptions& channel_options() const noexcept { return options_.channel; }
  [[nodiscard]] server::SharedMemoryAccess shared_memory() const noexcept { return *options_.shared_memory; }
  [[nodiscard]] server::Clients<T>& clients() const noexcept { return *clients_; }
  /// Tells one more worker when the work is done, as it does with those of the cluster. Any thread.
  void attend_worker(std::size_t worker, const net::Endpoint& endpoint) const {
    session_.add({{TaskType::worker, worker}, endpoint});
  }
  /// Calls `on_loss` when a parameter server is gone, in a thread of this strategy, until it is given another one or an empty one.
  /// Then the one before is not called any more.
  void set_on_loss(OnLoss on_loss) const {
    const std::lock_guard lock{losses_->mutex};
    losses_->on_loss = std::move(on_loss);
  }

 private:
  /// The shards of a variable, which are dropped when it goes.
  struct Made {
    struct Where {
      std::size_t server = 0;
      std::uint64_t incarnation = 0;
      server::ShardId id = 0;
    };

    explicit Made(std::shared_ptr<server::Clients<T>> clients_of_strategy) : clients(std::move(clients_of_strategy)) {}
    Made(const Made&) = delete;
    Made& operator=(const Made&) = delete;
    ~Made() {
      for (const Where& shard : shards) try {
          clients->of(shard.server, shard.incarnation)->drop({shard.id});
        } catch (const Error&) {  // with its server the shard is gone
        }
    }

    std::shared_ptr<server::Clients<T>> clients;
    std::vector<Where> shards;
  };
  struct Losses {
    std::mutex mutex;
    OnLoss on_loss;
  };

  /// A launcher that has started this process has started its servers and workers, too.
  [[nodiscard]] static typename ParameterServer::ReplicaOptions replica_options() {
    if constexpr (!rpc::WithinProcess<T>) detail::has_joined_others.store(true, std::memory_order_relaxed);
    return {};
  }
  template <class Resolver>
  [[nodiscard]] static ParameterServerOptions completed(ParameterServerOptions options, const Resolver& resolver) {
    options.channel.secret = job_secret(std::move(options.channel.secret), resolver);
    if (!options.shared_memory)
      options.shared_memory =
          EndsTogether<Resolver> ? server::SharedMemoryAccess::write : server::default_shared_memory<T>;
    return options;
  }
  template <class Resolver>
  [[nodiscard]] static ClusterSpec coordinated_by(const Resolver& resolver) {
    const ClusterSpec cluster = resolver.cluster_spec();
    const std::optional<Task> task = resolver.task();
    validate_parameter_servers(cluster, task, resolver.describe());
    if (task->type != TaskType::chief)
      throw InvalidArgument(text("A ParameterServer was made in ", to_string(*task)),
                            text(resolver.describe(), " says so, and the coordinator is the chief"),
                            "Call dist::serve first, which returns true in parameter servers and workers at their end");
    return cluster;
  }
  [[nodiscard]] std::vector<net::Endpoint> endpoints_of(TaskType type, std::string_view source) const {
    std::vector<net::Endpoint> endpoints;
    for (const std::size_t index : cluster_.task_indices(type))
      endpoints.push_back(task_endpoint(cluster_, {type, index}, source));
    return endpoints;
  }
  [[nodiscard]] server::SessionOptions session_options() const {
    return {.channel = options_.channel,
            .wait_for_servers = options_.wait_for_servers,
            .patience = options_.patience,
            .attempts = options_.attempts,
            .on_loss = [losses = losses_](const ServerUnavailable& error) {
              const std::lock_guard lock{losses->mutex};
              if (losses->on_loss) losses->on_loss(error);
            }};
  }

  const ParameterServerOptions options_;
  const ClusterSpec cluster_;
  const std::vector<net::Endpoint> workers_;
  const std::shared_ptr<server::Clients<T>> clients_;
  const std::shared_ptr<Losses> losses_;
  mutable server::Session<T> session_;  // has a mutex of its own
  std::atomic<std::size_t> next_server_{0};
};

}  // namespace dist
