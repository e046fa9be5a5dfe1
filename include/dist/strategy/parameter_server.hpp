#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/lone_process.hpp>
#include <dist/cluster/validate.hpp>
#include <dist/core/config.hpp>
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
#include <dist/server/client.hpp>
#include <dist/server/coordinator_options.hpp>
#include <dist/server/error.hpp>
#include <dist/server/registry.hpp>
#include <dist/server/serve.hpp>
#include <dist/server/server_store.hpp>
#include <dist/server/server_variable.hpp>
#include <dist/server/session.hpp>
#include <dist/server/shard_spec.hpp>
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
#include <dist/variable/variable_core.hpp>

namespace dist {

namespace detail {

inline constinit Warning ran_on_coordinator{};

}  // namespace detail

/// Asynchronous training (spec J01): parameter servers hold the variables, and this process, the coordinator, schedules
/// functions on workers (ClusterCoordinator). `T` is the transport, such as dist::Grpc, or dist::Local between threads
/// of one process.
///
/// Create it in the chief only; parameter servers and workers call dist::serve.
///
///     dist::ParameterServer<dist::Grpc> strategy{resolver, {.partitioner = dist::MinSizeShards{.max_shards = 8}}};
///     auto table = strategy.variable<float>({10'000'000, 64}, 0.0F, "table");
///
/// A variable with a synchronization has a copy in each process that uses it (ServerStore): networks, optimizers,
/// metrics and models are created as on other strategies. The destructor shuts down servers and workers, unless an
/// exception is the cause (server::Session).
///
/// A worker also has one, for scheduled functions; it cannot create variables.
template <rpc::Transport T>
class ParameterServer : public BasicStrategy<ParameterServer<T>, OneReplica<Cpu>, OneProcess, ServerStore<T>> {
  using Base = BasicStrategy<ParameterServer<T>, OneReplica<Cpu>, OneProcess, ServerStore<T>>;
  using Cached = server::CachedVariable<T>;

 public:
  using Transport = T;
  /// A function that receives the error of a lost parameter server.
  using OnLoss = detail::UniqueFunction<void, const ServerUnavailable&>;

  /// Waits until all parameter servers listen. Throws InvalidArgument for a cluster without parameter servers or
  /// workers, or outside the coordinator (spec J01), and the errors of server::Session.
  template <ClusterResolver Resolver>
  explicit ParameterServer(const Resolver& resolver, ParameterServerOptions options = {})
      : ParameterServer(coordinated(resolver.cluster_spec(), resolver.task(), resolver.describe()), resolver.describe(),
                        completed(std::move(options), resolver)) {}
  /// A worker's strategy, with the coordinator's settings.
  ParameterServer(std::shared_ptr<server::Clients<T>> clients, const server::WorkerOptions& options);
  ParameterServer(const ParameterServer&) = delete;
  ParameterServer& operator=(const ParameterServer&) = delete;
  ~ParameterServer();

  [[nodiscard]] std::string describe() const {
    const auto count = [](std::size_t number, std::string_view what) {
      return concat(number, " ", what, number == 1 ? "" : "s");
    };
    const std::string name = concat("ParameterServer<", detail::type_name<T>(), ">: ");
    if (!coordinator_) return name + "a worker";
    return concat(name, count(clients_->size(), "parameter server"), ", ",
                  count(coordinator_->workers.size(), "worker"));
  }

  /// Creates a variable on the parameter servers. Shards are assigned in rotation, and an undivided variable counts as
  /// one (spec J04). Scalars are never divided, and there is at most one shard per row (spec J05, J06).
  ///
  /// `initial` is as in other strategies: a number, a TensorView, a range of numbers, or a function that fills a
  /// `TensorView<E>`. It may also be a function `(TensorView<E> part, IndexRange rows)`, which needs memory for only
  /// one shard, or one that other processes can run (Schedulable), `fill(i)` for element i or `fill(first,
  /// std::span<E>)`, which the servers call, so that no elements are sent (spec J07).
  template <class E, class Initial = E>
    requires(!Synchronization<std::remove_cvref_t<Initial>>)
  [[nodiscard]] ServerVariable<E, T> variable(Shape shape, Initial&& initial = E{}, std::string name = "Variable") {
    auto made = std::make_shared<Made>(clients_);
    std::vector<ServerShard<E, T>> shards;
    const auto add = [&](server::ShardAddress place, IndexRange rows) {
      shards.emplace_back(std::move(place), shape.with_rows(rows.size()));
    };
    using Given = std::remove_cvref_t<Initial>;
    if constexpr (server::MakesElements<Given, E>) {
      create_shards(*made, shape, name, sizeof(E), add, [&](Client& client, const server::ShardSpec& spec, IndexRange) {
        client.template create_filled<E>(spec, initial);
      });
    } else {
      const detail::InitialOfShards<E, std::remove_reference_t<Initial>> initials{name, shape, initial};
      create_shards(*made, shape, name, sizeof(E), add,
                    [&](Client& client, const server::ShardSpec& spec, IndexRange rows) {
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

  /// Creates a variable with a copy in each process that uses it. The tensors of `layout` are placed and divided
  /// separately. `initial` is as in BasicStrategy::variable.
  template <class E, Synchronization Sync, Aggregation Agg = None, class Initial = E>
  [[nodiscard]] DistributedVariable<E, Sync, Agg, Cpu> variable(Shape shape, Initial&& initial = E{},
                                                                std::string name = "Variable",
                                                                Trainable trainable = Trainable::by_synchronization,
                                                                VariableLayout layout = {}) {
    using Variable = DistributedVariable<E, Sync, Agg, Cpu>;
    static_assert(std::same_as<Sync, OnWrite> || std::same_as<Agg, Sum> || std::same_as<Agg, Mean>,
                  "an OnRead variable of a ParameterServer needs the aggregation Sum or Mean: without one, the workers "
                  "have no common value");
    this->require_outside("variable", "make it before run");
    Variable made{this->template memory_on<Cpu>(), shape, std::move(name), trainable};
    if (coordinator_) detail::initialise(this->scope(), made, initial);
    constexpr bool is_sum = std::same_as<Agg, Sum>;
    constexpr server::CacheKind kind = std::same_as<Sync, OnWrite> ? server::CacheKind::values
                                       : is_sum                    ? server::CacheKind::sum
                                                                   : server::CacheKind::state;
    using PushUpdate = server::detail::TypedUpdate<std::conditional_t<is_sum, Sum, detail::Assign>, E>;
    made.set_remote(place(made, io::element_type<E>, kind, layout,
                          std::make_unique<const PushUpdate>(typename PushUpdate::Function{})));
    return made;
  }
  /// Creates a variable like `variable`, because workers' devices are on the host.
  template <class E, Synchronization Sync = OnWrite, Aggregation Agg = None, class Initial = E>
  [[nodiscard]] auto host_variable(Shape shape, Initial&& initial = E{}, std::string name = "Variable",
                                   Trainable trainable = Trainable::by_synchronization) {
    return variable<E, Sync, Agg>(shape, std::forward<Initial>(initial), std::move(name), trainable);
  }
  /// Creates an optimizer's slot for a variable, stored with its shards and initially zero. `slot` is from
  /// CachedVariable::take_slots.
  template <class Owners, class E, class Sync, class Agg>
  [[nodiscard]] DistributedVariable<E, Owners, None, Cpu> slot(const DistributedVariable<E, Sync, Agg, Cpu>& parameters,
                                                               std::uint32_t slot, std::string name) {
    DistributedVariable<E, Owners, None, Cpu> made{this->template memory_on<Cpu>(), parameters.shape(), std::move(name),
                                                   Trainable::no};
    made.set_remote(place_slot(made, io::element_type<E>, *ServerStore<T>::on_servers(parameters), slot));
    return made;
  }

  /// Runs a replica function in this process. Allowed, but rarely intended (spec J10).
  template <class Fn, class... Args>
  decltype(auto) run(Fn&& fn, Args&&... args) {
    if (coordinator_ && !cache_.is_in_step())
      detail::ran_on_coordinator.emit(
          "strategy.run of a ParameterServer ran a function on the coordinator: schedule it with a ClusterCoordinator, "
          "which runs "
          "it on workers. DIST_WARNINGS=0 silences this.");
    return step({}, [&]() -> decltype(auto) { return Base::run(std::forward<Fn>(fn), std::forward<Args>(args)...); });
  }
  /// Runs a function in this process, like `run`; Model calls it on every strategy.
  template <class Fn, class... Args>
  decltype(auto) run_here(Fn&& fn, Args&&... args) {
    return run(std::forward<Fn>(fn), std::forward<Args>(args)...);
  }
  /// Calls `fn(replica)` as a step, which first starts to pull `wanted`.
  template <class Fn>
  decltype(auto) run_step(std::span<const std::shared_ptr<Cached>> wanted, Fn&& fn) {
    return step(wanted, [&]() -> decltype(auto) { return Base::run(fn); });
  }
  /// Rejects a dataset, because workers create their own (spec J11).
  template <class Dataset, class Options = data::InputOptions>
  auto distribute_dataset(Dataset, const Options& = {}) const {
    static_assert(sizeof(Dataset) == 0,
                  "the workers of a ParameterServer make their own datasets: give a function that makes one to "
                  "create_per_worker_dataset of the ClusterCoordinator");
  }

  /// Returns the dataset itself, for passes in this process.
  template <class Dataset, class Options = data::InputOptions>
  [[nodiscard]] Dataset distribute_dataset_here(Dataset dataset, const Options& = {}) const {
    return dataset;
  }

  /// True for the coordinator.
  [[nodiscard]] bool is_chief() const noexcept { return coordinator_ != nullptr; }
  /// The number of processes that run scheduled functions; `num_workers()` is one.
  [[nodiscard]] std::size_t num_remote_workers() const noexcept { return worker_endpoints().size(); }
  /// The number of parameter servers of the cluster.
  [[nodiscard]] std::size_t num_parameter_servers() const noexcept { return clients_->size(); }
  /// Throws ServerUnavailable if a parameter server is lost or has lost its variables, even without a call since.
  void check() const { coordinator_->session.check(); }

  // For ClusterCoordinator (CoordinatedStrategy) and variables.
  [[nodiscard]] const std::vector<net::Endpoint>& worker_endpoints() const noexcept { return coordinator_->workers; }
  [[nodiscard]] const std::vector<net::Endpoint>& server_endpoints() const noexcept { return clients_->endpoints(); }
  [[nodiscard]] const rpc::ChannelOptions& channel_options() const noexcept { return options_.channel; }
  /// Timeouts and limits for the ClusterCoordinator.
  [[nodiscard]] const CoordinatorOptions& coordinator_options() const noexcept { return options_.coordinator; }
  [[nodiscard]] server::WorkerOptions worker_options() const noexcept {
    return {*options_.shared_memory, options_.bucket_bytes, options_.max_staleness};
  }
  /// The clients of the parameter servers. Thread-safe.
  [[nodiscard]] server::Clients<T>& clients() const noexcept { return *clients_; }
  /// The cached variables of this process.
  [[nodiscard]] server::VariableCache<T>& variable_cache() const noexcept { return cache_; }
  /// Prepares a worker to create the variables after `specs`, in order.
  void attach(std::vector<server::CachedVariableSpec> specs) { attaching_ = std::move(specs); }
  /// Adds a worker to notify when the work is done. Thread-safe.
  void watch_worker(std::size_t worker, const net::Endpoint& endpoint) const {
    coordinator_->session.add({{TaskType::worker, worker}, endpoint});
  }
  /// Sets a function that a thread of this strategy calls if a parameter server is lost; empty removes it. Replaces the
  /// previous one for all later losses.
  void set_on_loss(OnLoss on_loss) const {
    Losses& losses = *coordinator_->losses;
    const std::lock_guard lock{losses.mutex};
    losses.on_loss = std::move(on_loss);
  }

 private:
  /// The shards of a variable; removed from the servers by the destructor.
  struct Made {
    /// The location of a shard.
    struct Where {
      std::size_t server = 0;         ///< index among the parameter servers
      std::uint64_t incarnation = 0;  ///< of the server when it created the shard
      server::ShardId id = 0;         ///< of the shard on the server
    };

    explicit Made(std::shared_ptr<server::Clients<T>> clients_of_strategy) : clients(std::move(clients_of_strategy)) {}
    Made(const Made&) = delete;
    Made& operator=(const Made&) = delete;
    ~Made();

    std::shared_ptr<server::Clients<T>> clients;
    std::vector<Where> shards;
  };
  struct Losses {
    std::mutex mutex;
    OnLoss on_loss;
  };
  /// The state of the coordinator, except the copies of variables.
  struct Coordinator {
    Coordinator(const ParameterServerOptions& options, const ClusterSpec& cluster, const std::string& source);

    const std::vector<net::Endpoint> workers;
    const std::vector<net::Endpoint> servers;
    const std::shared_ptr<Losses> losses = std::make_shared<Losses>();
    mutable server::Session<T> session;  // has its own mutex
    std::atomic<std::size_t> next_server{0};
  };

  ParameterServer(const ClusterSpec& cluster, const std::string& source, ParameterServerOptions options);

  /// Suppresses the warning of lone processes: the launcher also started servers and workers.
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
  /// Checks that this process is the coordinator of the cluster, which it returns.
  [[nodiscard]] static ClusterSpec coordinated(ClusterSpec cluster, const std::optional<Task>& task,
                                               const std::string& source);
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

  using Client = server::Client<T>;
  /// Creates a shard, with these rows of its tensor, on the server of a client.
  using CreateShard = void(Client&, const server::ShardSpec&, IndexRange rows);
  /// Receives the address of a new shard and its rows.
  using AddShard = void(server::ShardAddress, IndexRange rows);

  /// Creates the shards of a tensor in rotation with `create(client, spec, rows)`, and calls `add(place, rows)` for
  /// each.
  void create_shards(Made& made, const Shape& shape, const std::string& name, std::size_t element_bytes,
                     detail::FunctionRef<AddShard> add, detail::FunctionRef<CreateShard> create);
  /// Creates the shards of a variable's tensors, with these elements, and adds them to `spec`.
  void create_tensors(Made& made, server::CachedVariableSpec& spec, const VariableLayout& layout,
                      std::span<const std::byte> elements);
  using Core = detail::VariableCore<Cpu::Memory>;
  /// Assigns shards to a variable of this process: new ones with its elements, or on a worker the coordinator's.
  [[nodiscard]] std::shared_ptr<Cached> place(const Core& variable, io::ElementType type, server::CacheKind kind,
                                              const VariableLayout& layout,
                                              std::unique_ptr<const server::ElementUpdateBase> push_update);
  /// Places a slot with the shards of the variable `parameters`.
  [[nodiscard]] std::shared_ptr<Cached> place_slot(const Core& variable, io::ElementType type, const Cached& parameters,
                                                   std::uint32_t slot);
  /// Returns the next description from the coordinator. Throws if its name, shape or type differ.
  [[nodiscard]] server::CachedVariableSpec take_spec(const server::CachedVariableSpec& wanted);

  template <class Fn>
  decltype(auto) step(std::span<const std::shared_ptr<Cached>> wanted, Fn&& fn) {
    return cache_.step(wanted, std::forward<Fn>(fn));
  }

  const ParameterServerOptions options_;
  std::unique_ptr<Coordinator> coordinator_;  ///< null on a worker
  const std::shared_ptr<server::Clients<T>> clients_;
  mutable server::VariableCache<T> cache_;  // has its own mutex
  std::vector<server::CachedVariableSpec> attaching_;
};

template <rpc::Transport T>
ClusterSpec ParameterServer<T>::coordinated(ClusterSpec cluster, const std::optional<Task>& task,
                                            const std::string& source) {
  validate_parameter_servers(cluster, task, source);
  if (task->type != TaskType::chief)
    throw InvalidArgument(
        concat("A ParameterServer was made in ", to_string(*task)),
        concat(source, " names this task, and the coordinator is the chief"),
        "First call dist::serve, which returns true in parameter servers and workers when they have finished");
  return cluster;
}

template <rpc::Transport T>
ParameterServer<T>::ParameterServer(const ClusterSpec& cluster, const std::string& source,
                                    ParameterServerOptions options)
    : Base(replica_options()),
      options_(std::move(options)),
      coordinator_(std::make_unique<Coordinator>(options_, cluster, source)),
      clients_(std::make_shared<server::Clients<T>>(coordinator_->servers,
                                                    server::ClientOptions{.channel = options_.channel,
                                                                          .timeout = options_.timeout,
                                                                          .attempts = options_.attempts,
                                                                          .shared_memory = options_.shared_memory})),
      cache_(clients_, options_.max_staleness) {}

template <rpc::Transport T>
ParameterServer<T>::ParameterServer(std::shared_ptr<server::Clients<T>> clients, const server::WorkerOptions& options)
    : Base(typename ParameterServer::ReplicaOptions{}),
      options_{.bucket_bytes = static_cast<std::size_t>(options.bucket_bytes), .max_staleness = options.max_staleness},
      clients_(std::move(clients)),
      cache_(clients_, options.max_staleness) {}

template <rpc::Transport T>
ParameterServer<T>::~ParameterServer() {
  coordinator_.reset();  // first notifies servers and workers
}

template <rpc::Transport T>
ParameterServer<T>::Coordinator::Coordinator(const ParameterServerOptions& options, const ClusterSpec& cluster,
                                             const std::string& source)
    : workers(endpoints_of(TaskType::worker, cluster, source)),
      servers(endpoints_of(TaskType::parameter_server, cluster, source)),
      session(server::served_by(cluster, source), session_options(options, losses)) {}

template <rpc::Transport T>
ParameterServer<T>::Made::~Made() {
  for (const Where& shard : shards) try {
      clients->of(shard.server, shard.incarnation)->drop({shard.id});
    } catch (const Error&) {  // the shard was lost with its server
    }
}

template <rpc::Transport T>
void ParameterServer<T>::create_shards(Made& made, const Shape& shape, const std::string& name,
                                       std::size_t element_bytes, detail::FunctionRef<AddShard> add,
                                       detail::FunctionRef<CreateShard> create) {
  if (!coordinator_)
    throw InvalidArgument(concat("Variable ", quoted(name), " cannot be created on a worker"),
                          "the variables of a ParameterServer are made on the coordinator",
                          "Make it there, and pass it, or the object that contains it, to the scheduled function");
  const std::size_t count = number_of_shards(options_.partitioner, name, shape, element_bytes);
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

template <rpc::Transport T>
void ParameterServer<T>::create_tensors(Made& made, server::CachedVariableSpec& spec, const VariableLayout& layout,
                                        std::span<const std::byte> elements) {
  const std::size_t size = io::bytes_of(spec.type);
  const auto create = [&](const Shape& shape, const std::string& name, std::uint64_t tensor, std::size_t offset) {
    create_shards(
        made, shape, name, size,
        [&](server::ShardAddress place, IndexRange rows) {
          const std::size_t row_size = shape.rank() == 0 ? 1 : shape.row().elements();
          spec.shards.push_back(
              {std::move(place), tensor, offset + rows.begin * row_size, offset + rows.end * row_size});
        },
        [&](Client& client, const server::ShardSpec& of_shard, IndexRange) {
          client.create(of_shard, spec.type,
                        elements.subspan((offset + static_cast<std::size_t>(of_shard.offset)) * size,
                                         static_cast<std::size_t>(of_shard.rows * of_shard.row_size) * size));
        });
  };
  if (layout.empty()) create(spec.shape, spec.name, 0, 0);
  for (std::size_t tensor = 0; tensor < layout.size(); ++tensor)
    create(layout[tensor].shape, layout[tensor].name(), tensor, layout[tensor].offset);
}

template <rpc::Transport T>
auto ParameterServer<T>::place(const Core& variable, io::ElementType type, server::CacheKind kind,
                               const VariableLayout& layout,
                               std::unique_ptr<const server::ElementUpdateBase> push_update)
    -> std::shared_ptr<Cached> {
  server::CachedVariableSpec spec{variable.name(), variable.shape(), type};
  std::shared_ptr<Made> shards;
  if (coordinator_) {
    shards = std::make_shared<Made>(clients_);
    create_tensors(*shards, spec, layout, variable.bytes(0));
  } else {
    spec = take_spec(spec);
  }
  auto cached = std::make_shared<Cached>(std::move(spec), kind, variable.bytes(0).data(), std::move(push_update),
                                         options_.bucket_bytes, std::move(shards));
  cache_.add(cached);
  return cached;
}

template <rpc::Transport T>
auto ParameterServer<T>::place_slot(const Core& variable, io::ElementType type, const Cached& parameters,
                                    std::uint32_t slot) -> std::shared_ptr<Cached> {
  server::CachedVariableSpec spec{variable.name(), variable.shape(), type};
  if (coordinator_) {
    spec.array = slot + 1;
    spec.shards = parameters.spec().shards;
    for (const server::CachedShard& shard : spec.shards)
      clients_->of(static_cast<std::size_t>(shard.place.server), shard.place.incarnation)
          ->ensure_slots(shard.place.id, slot, {0.0});
  } else {
    spec = take_spec(spec);
  }
  auto cached = std::make_shared<Cached>(std::move(spec), server::CacheKind::slot, variable.bytes(0).data(), nullptr,
                                         options_.bucket_bytes);
  cache_.add(cached);
  return cached;
}

template <rpc::Transport T>
server::CachedVariableSpec ParameterServer<T>::take_spec(const server::CachedVariableSpec& wanted) {
  if (attaching_.empty())
    throw InvalidArgument(concat("Variable ", quoted(wanted.name), " cannot be created on a worker"),
                          "the variables of a ParameterServer are made on the coordinator",
                          "Make it there, and pass the object that contains it to the scheduled function");
  server::CachedVariableSpec spec = std::move(attaching_.front());
  attaching_.erase(attaching_.begin());
  if (spec.name != wanted.name || spec.shape != wanted.shape || spec.type != wanted.type)
    throw ArchiveError("A worker's copy of an object has a different variable than the coordinator's copy",
                       concat("here it is ", quoted(wanted.name), " of shape ", to_string(wanted.shape),
                              ", on the coordinator ", quoted(spec.name), " of shape ", to_string(spec.shape)),
                       "Let the constructor make the same variables in the same order in every process, and make the "
                       "objects of a ParameterServer in one thread");
  return spec;
}

}  // namespace dist
