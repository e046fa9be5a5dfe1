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

#include <concepts>
#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/lone_process.hpp>
#include <dist/cluster/task.hpp>
#include <dist/cluster/task_endpoint.hpp>
#include <dist/cluster/validate.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/log.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/device/cpu.hpp>
#include <dist/io/element_type.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/net/secret.hpp>
#include <dist/rpc/rpc.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/batch.hpp>
#include <dist/server/clients.hpp>
#include <dist/server/coordinator_options.hpp>
#include <dist/server/error.hpp>
#include <dist/server/registry.hpp>
#include <dist/server/serve.hpp>
#include <dist/server/server_shard.hpp>
#include <dist/server/server_store.hpp>
#include <dist/server/server_variable.hpp>
#include <dist/server/session.hpp>
#include <dist/server/shard_spec.hpp>
#include <dist/server/store_memory_handle.hpp>
#include <dist/server/variable_cache.hpp>
#include <dist/strategy/basic_strategy.hpp>
#include <dist/strategy/make_variable.hpp>
#include <dist/strategy/one_process.hpp>
#include <dist/strategy/one_replica.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/layout.hpp>
#include <dist/variable/make_sharded_variable.hpp>
#include <dist/variable/partitioner.hpp>
#include <dist/variable/policies.hpp>
#include <span>

namespace dist {

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
/// A variable with a synchronization has a copy in the process that works with it (ServerStore): networks, optimizers, metrics and
/// models are made on this strategy as on every other. Its end is that of the servers and workers, unless an exception ends it
/// (server::Session).
///
/// A worker has one, too, with which scheduled functions work (ClusterCoordinator); it makes no variables.
template <rpc::Transport T>
class ParameterServer : public BasicStrategy<ParameterServer<T>, OneReplica<Cpu>, OneProcess, ServerStore<T>> {
  using Base = BasicStrategy<ParameterServer<T>, OneReplica<Cpu>, OneProcess, ServerStore<T>>;
  using Cached = server::CachedVariable<T>;

 public:
  using Transport = T;
  using OnLoss = detail::UniqueFunction<void, const ServerUnavailable&>;

  /// Waits until all parameter servers listen. Throws InvalidArgument for a cluster without them, or without workers, and in a
  /// process that is not the coordinator (spec J01); and as server::Session does.
  template <ClusterResolver Resolver>
  explicit ParameterServer(const Resolver& resolver, ParameterServerOptions options = {})
      : Base(replica_options()),
        options_(completed(std::move(options), resolver)),
        coordinator_(std::make_unique<Coordinator>(options_, coordinated_by(resolver), resolver.describe())),
        clients_(std::make_shared<server::Clients<T>>(coordinator_->servers,
                                                      server::ClientOptions{.channel = options_.channel,
                                                                            .timeout = options_.timeout,
                                                                            .attempts = options_.attempts,
                                                                            .shared_memory = options_.shared_memory})),
        cache_(clients_, options_.max_staleness) {}
  /// That of a worker, as its coordinator has it.
  ParameterServer(std::shared_ptr<server::Clients<T>> clients, const server::WorkerOptions& options)
      : Base(typename ParameterServer::ReplicaOptions{}),
        options_{.bucket_bytes = static_cast<std::size_t>(options.bucket_bytes),
                 .max_staleness = options.max_staleness},
        clients_(std::move(clients)),
        cache_(clients_, options.max_staleness) {}
  ParameterServer(const ParameterServer&) = delete;
  ParameterServer& operator=(const ParameterServer&) = delete;
  ~ParameterServer() { coordinator_.reset(); }  // tells servers and workers first

  [[nodiscard]] std::string describe() const {
    const auto count = [](std::size_t number, std::string_view what) {
      return concat(number, " ", what, number == 1 ? "" : "s");
    };
    const std::string name = concat("ParameterServer<", detail::type_name<T>(), ">: ");
    if (!coordinator_) return name + "a worker";
    return concat(name, count(clients_->size(), "parameter server"), ", ",
                  count(coordinator_->workers.size(), "worker"));
  }

  /// A variable on the parameter servers. Shards go to them in turn, a variable that is not divided counting as one (spec J04);
  /// scalars are never divided, and none has more shards than rows (spec J05, J06).
  ///
  /// `initial` is what other strategies take: a number, a TensorView, a range of numbers, or a function that fills a
  /// `TensorView<E>`; a function `(TensorView<E> part, IndexRange rows)`, which needs memory for one shard only; or a function
  /// that another process can run (Schedulable), `fill(i)` for element i or `fill(first, std::span<E>)`, which the servers call
  /// themselves, so that no element travels (spec J07).
  template <class E, class Initial = E>
    requires(!Synchronization<std::remove_cvref_t<Initial>>)
  [[nodiscard]] ServerVariable<E, T> variable(Shape shape, Initial&& initial = E{}, std::string name = "Variable") {
    auto made = std::make_shared<Made>(clients_);
    std::vector<ServerShard<E, T>> shards;
    const auto add = [&](typename ServerShard<E, T>::Address place, IndexRange rows) {
      shards.emplace_back(std::move(place), shape.with_rows(rows.size()));
    };
    using Given = std::remove_cvref_t<Initial>;
    if constexpr (server::MakesElements<Given, E>) {
      create_shards<E>(*made, shape, name, add, [&](auto& client, const server::ShardSpec& spec, IndexRange) {
        client.template create_filled<E>(spec, initial);
      });
    } else {
      const detail::InitialOfShards<E, std::remove_reference_t<Initial>> initials{name, shape, initial};
      create_shards<E>(*made, shape, name, add, [&](auto& client, const server::ShardSpec& spec, IndexRange rows) {
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

  /// The same with a copy in each process that works with it: a variable as other strategies make it. The tensors of `layout`, where
  /// there are several, are placed and divided each by itself. `initial` is what BasicStrategy::variable takes.
  template <class E, Synchronization Sync, Aggregation Agg = None, class Initial = E>
  [[nodiscard]] DistributedVariable<E, Sync, Agg, Cpu> variable(Shape shape, Initial&& initial = E{},
                                                                std::string name = "Variable",
                                                                Trainable trainable = Trainable::by_synchronization,
                                                                VariableLayout layout = {}) {
    using Variable = DistributedVariable<E, Sync, Agg, Cpu>;
    static_assert(
        std::same_as<Sync, OnWrite> || std::same_as<Agg, Sum> || std::same_as<Agg, Mean>,
        "an OnRead variable of a ParameterServer has the aggregation Sum or Mean: without one it has no value "
        "on which the workers could agree");
    this->require_outside("variable", "make it before run");
    if (!coordinator_) return attached(Variable{this->template memory_on<Cpu>(), shape, std::move(name), trainable});
    Variable made = detail::make_variable<Variable>(this->scope(), this->template memory_on<Cpu>(), shape, initial,
                                                    std::move(name), trainable);
    server::CachedVariableSpec spec{made.name(), made.shape(), io::element_type<E>};
    const auto shards = std::make_shared<Made>(clients_);
    const std::span<const E> elements = made.copy(this->scope());
    const auto create = [&](const Shape& of_tensor, const std::string& of_name, std::uint64_t tensor,
                            std::size_t offset) {
      create_shards<E>(
          *shards, of_tensor, of_name,
          [&](server::ShardAddress place, IndexRange rows) {
            const std::size_t row_size = of_tensor.rank() == 0 ? 1 : of_tensor.row().elements();
            spec.shards.push_back(
                {std::move(place), tensor, offset + rows.begin * row_size, offset + rows.end * row_size});
          },
          [&](auto& client, const server::ShardSpec& of_shard, IndexRange) {
            client.create(of_shard, elements.subspan(offset + static_cast<std::size_t>(of_shard.offset),
                                                     static_cast<std::size_t>(of_shard.rows * of_shard.row_size)));
          });
    };
    if (layout.empty()) create(shape, made.name(), 0, 0);
    for (std::size_t tensor = 0; tensor < layout.size(); ++tensor)
      create(layout[tensor].shape, layout[tensor].name(), tensor, layout[tensor].offset);
    keep(made, std::move(spec), shards);
    return made;
  }
  /// The same: the devices of workers are those of the host.
  template <class E, Synchronization Sync = OnWrite, Aggregation Agg = None, class Initial = E>
  [[nodiscard]] auto host_variable(Shape shape, Initial&& initial = E{}, std::string name = "Variable",
                                   Trainable trainable = Trainable::by_synchronization) {
    return variable<E, Sync, Agg>(shape, std::forward<Initial>(initial), std::move(name), trainable);
  }
  /// What an optimizer keeps for each element of a variable, beside its shards: slot `slot` of those that the variable has given out
  /// (CachedVariable::take_slots), with zeros.
  template <class Owners, class E, class Sync, class Agg>
  [[nodiscard]] DistributedVariable<E, Owners, None, Cpu> slot(const DistributedVariable<E, Sync, Agg, Cpu>& parameters,
                                                               std::uint32_t slot, std::string name) {
    DistributedVariable<E, Owners, None, Cpu> made{this->template memory_on<Cpu>(), parameters.shape(), std::move(name),
                                                   Trainable::no};
    if (!coordinator_) return attached(std::move(made));
    server::CachedVariableSpec spec = ServerStore<T>::on_servers(parameters)->spec();
    spec.name = made.name();
    spec.array = slot + 1;
    for (const server::CachedShard& shard : spec.shards)
      clients_->of(static_cast<std::size_t>(shard.place.server), shard.place.incarnation)
          ->ensure_slots(shard.place.id, slot, {0.0});
    keep(made, std::move(spec), nullptr);
    return made;
  }

  /// Runs a replica function in this process, without workers. Allowed, and seldom meant (spec J10).
  template <class Fn, class... Args>
  decltype(auto) run(Fn&& fn, Args&&... args) {
    if (coordinator_ && !cache_.is_in_step())
      detail::ran_on_coordinator.emit(
          "strategy.run of a ParameterServer ran a function on the coordinator: schedule it with a ClusterCoordinator, "
          "which runs "
          "it on workers. DIST_WARNINGS=0 silences this.");
    return step({}, [&]() -> decltype(auto) { return Base::run(std::forward<Fn>(fn), std::forward<Args>(args)...); });
  }
  template <class Fn, class... Args>
  decltype(auto) run_here(Fn&& fn, Args&&... args) {
    return run(std::forward<Fn>(fn), std::forward<Args>(args)...);
  }
  /// Calls `fn(replica)` as a step of this process, which pulls `wanted` from its beginning.
  template <class Fn>
  decltype(auto) run_step(std::span<const std::shared_ptr<Cached>> wanted, Fn&& fn) {
    return step(wanted, [&]() -> decltype(auto) { return Base::run(fn); });
  }
  /// Refuses a dataset, which workers make themselves (spec J11).
  template <class Dataset, class Options = data::InputOptions>
  auto distribute_dataset(Dataset, const Options& = {}) const {
    static_assert(sizeof(Dataset) == 0,
                  "the workers of a ParameterServer make their datasets themselves: give a function that makes one to "
                  "create_per_worker_dataset of the ClusterCoordinator");
  }

  /// The dataset itself, of which this process alone takes the batches.
  template <class Dataset, class Options = data::InputOptions>
  [[nodiscard]] Dataset distribute_dataset_here(Dataset dataset, const Options& = {}) const {
    return dataset;
  }

  /// The coordinator is the chief of its cluster.
  [[nodiscard]] bool is_chief() const noexcept { return coordinator_ != nullptr; }
  /// The processes that run scheduled functions. `num_workers()` counts those of the strategy itself, which is this one.
  [[nodiscard]] std::size_t num_remote_workers() const noexcept { return worker_endpoints().size(); }
  [[nodiscard]] std::size_t num_parameter_servers() const noexcept { return clients_->size(); }
  /// Throws ServerUnavailable where a parameter server is gone or has lost its variables, also one that nobody has called since.
  void check() const { coordinator_->session.check(); }

  // What a ClusterCoordinator asks (CoordinatedStrategy), and variables.
  [[nodiscard]] const std::vector<net::Endpoint>& worker_endpoints() const noexcept { return coordinator_->workers; }
  [[nodiscard]] const std::vector<net::Endpoint>& server_endpoints() const noexcept { return clients_->endpoints(); }
  [[nodiscard]] const rpc::ChannelOptions& channel_options() const noexcept { return options_.channel; }
  [[nodiscard]] const CoordinatorOptions& coordinator_options() const noexcept { return options_.coordinator; }
  [[nodiscard]] server::WorkerOptions worker_options() const noexcept {
    return {*options_.shared_memory, options_.bucket_bytes, options_.max_staleness};
  }
  [[nodiscard]] server::Clients<T>& clients() const noexcept { return *clients_; }
  [[nodiscard]] server::VariableCache<T>& variable_cache() const noexcept { return cache_; }
  /// Makes the variables that follow those of `specs`, in this order, on a worker.
  void attach(std::vector<server::CachedVariableSpec> specs) { attaching_ = std::move(specs); }
  /// Tells one more worker when the work is done, as it does with those of the cluster. Thread-safe.
  void watch_worker(std::size_t worker, const net::Endpoint& endpoint) const {
    coordinator_->session.add({{TaskType::worker, worker}, endpoint});
  }
  /// Calls `on_loss` when a parameter server is gone, in a thread of this strategy, until it is given another one or an empty one.
  /// Then the one before is not called any more.
  void set_on_loss(OnLoss on_loss) const {
    Losses& losses = *coordinator_->losses;
    const std::lock_guard lock{losses.mutex};
    losses.on_loss = std::move(on_loss);
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
  /// What the coordinator has besides the copies of variables.
  struct Coordinator {
    Coordinator(const ParameterServerOptions& options, const ClusterSpec& cluster, const std::string& source)
        : workers(endpoints_of(TaskType::worker, cluster, source)),
          servers(endpoints_of(TaskType::parameter_server, cluster, source)),
          session(server::served_by(cluster, source), session_options(options, losses)) {}

    const std::vector<net::Endpoint> workers;
    const std::vector<net::Endpoint> servers;
    const std::shared_ptr<Losses> losses = std::make_shared<Losses>();
    mutable server::Session<T> session;  // has a mutex of its own
    std::atomic<std::size_t> next_server{0};
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
      throw InvalidArgument(concat("A ParameterServer was made in ", to_string(*task)),
                            concat(resolver.describe(), " says so, and the coordinator is the chief"),
                            "Call dist::serve first, which returns true in parameter servers and workers at their end");
    return cluster;
  }
  [[nodiscard]] static std::vector<net::Endpoint> endpoints_of(TaskType type, const ClusterSpec& cluster,
                                                               std::string_view source) {
    std::vector<net::Endpoint> endpoints;
    for (const std::size_t index : cluster.task_indices(type))
      endpoints.push_back(task_endpoint(cluster, {type, index}, source));
    return endpoints;
  }
  [[nodiscard]] static server::SessionOptions session_options(const ParameterServerOptions& options,
                                                              const std::shared_ptr<Losses>& losses) {
    server::SessionOptions session{options};
    session.on_loss = [losses](const ServerUnavailable& error) {
      const std::lock_guard lock{losses->mutex};
      if (losses->on_loss) losses->on_loss(error);
    };
    return session;
  }

  /// Creates the shards of a tensor on the servers in turn, by `create(client, spec, rows)`, and calls `add(place, rows)` for each.
  template <class E, class Add, class Create>
  void create_shards(Made& made, const Shape& shape, const std::string& name, const Add& add, const Create& create) {
    if (!coordinator_)
      throw InvalidArgument(concat("Variable ", quoted(name), " was to be made on a worker"),
                            "the variables of a ParameterServer are made on the coordinator",
                            "Make it there, and give it, or the object that has it, to the scheduled function");
    const std::size_t count = number_of_shards(options_.partitioner, name, shape, sizeof(E));
    const ShardLayout layout = ShardLayout::div(shape.rank() == 0 ? 1 : shape[0], count);
    const std::size_t row_size = shape.rank() == 0 ? 1 : shape.row().elements();
    for (std::size_t shard = 0; shard < count; ++shard) {
      const IndexRange rows = layout.rows_of(shard);
      const std::size_t server = coordinator_->next_server.fetch_add(1, std::memory_order_relaxed) % clients_->size();
      server::ShardAddress place{server, coordinator_->session.incarnation({TaskType::parameter_server, server}),
                                 net::random_number(), count == 1 ? name : part_name(name, shard)};
      const server::ShardSpec spec{place.id, place.name, rows.size(), row_size, rows.begin * row_size};
      create(*clients_->of(server, place.incarnation), spec, rows);
      made.shards.push_back({server, place.incarnation, place.id});
      add(std::move(place), rows);
    }
  }
  /// Gives a variable of this process its place on the servers.
  template <class Variable>
  void keep(Variable& variable, server::CachedVariableSpec spec, std::shared_ptr<void> kept) {
    using E = typename Variable::Element;
    using Sync = typename Variable::Synchronization;
    constexpr bool is_sum = std::same_as<typename Variable::Aggregation, Sum>;
    constexpr server::CacheKind kind = std::derived_from<Sync, OnShard> ? server::CacheKind::slot
                                       : std::same_as<Sync, OnWrite>    ? server::CacheKind::values
                                       : is_sum                         ? server::CacheKind::sum
                                                                        : server::CacheKind::state;
    constexpr auto push_copy = [](const Cached& cached, const server::Batch<T>& batch,
                                  typename Cached::Pushes& pushes) {
      for (const server::CachedShard& shard : cached.spec().shards)
        pushes.push_back(batch.push(shard.place, std::conditional_t<is_sum, Sum, detail::Assign>{},
                                    cached.template elements_of<E>(shard)));
    };
    auto* const copy = reinterpret_cast<std::byte*>(variable.copy(this->scope()).data());
    auto cached =
        std::make_shared<Cached>(std::move(spec), kind, copy, *+push_copy, options_.bucket_bytes, std::move(kept));
    cache_.add(cached);
    variable.set_remote(std::move(cached));
  }
  /// The same of the variable that the coordinator's has made in its turn.
  template <class Variable>
  [[nodiscard]] Variable attached(Variable variable) {
    if (attaching_.empty())
      throw InvalidArgument(concat("Variable ", quoted(variable.name()), " was to be made on a worker"),
                            "the variables of a ParameterServer are made on the coordinator",
                            "Make it there, and give the object that has it to the scheduled function");
    server::CachedVariableSpec spec = std::move(attaching_.front());
    attaching_.erase(attaching_.begin());
    if (spec.name != variable.name() || spec.shape != variable.shape() ||
        spec.type != io::element_type<typename Variable::Element>)
      throw ArchiveError("A worker's copy of an object has another variable than the coordinator's",
                         concat("here it is ", quoted(variable.name()), " of shape ", to_string(variable.shape()),
                                ", there ", quoted(spec.name), " of shape ", to_string(spec.shape)),
                         "Let the constructor make the same variables in the same order in every process, and make the "
                         "objects of a ParameterServer in one thread");
    keep(variable, std::move(spec), nullptr);
    return variable;
  }

  template <class Fn>
  decltype(auto) step(std::span<const std::shared_ptr<Cached>> wanted, Fn&& fn) {
    return cache_.step(wanted, std::forward<Fn>(fn));
  }

  const ParameterServerOptions options_;
  std::unique_ptr<Coordinator> coordinator_;  ///< null on a worker
  const std::shared_ptr<server::Clients<T>> clients_;
  mutable server::VariableCache<T> cache_;  // has a mutex of its own
  std::vector<server::CachedVariableSpec> attaching_;
};

}  // namespace dist
