#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dist/context/contexts.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/indexed_slices.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/batch.hpp>
#include <dist/server/client.hpp>
#include <dist/server/parts.hpp>
#include <dist/server/requests.hpp>
#include <dist/server/shard_spec.hpp>
#include <dist/server/update.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/shard.hpp>
#include <dist/variable/sharded_variable.hpp>

namespace dist {

namespace detail {

template <class C, class T>
concept ScopeOfServers = (InCrossReplica<C> || InReplica<C>)&&requires(const C& context) {
  { context.strategy().clients() } -> std::same_as<server::Clients<T>&>;
};
template <class C, class T>
concept WorkerOfServers = requires(const C& context) {
  { context.template clients<T>() } -> std::same_as<server::Clients<T>&>;
};

}  // namespace detail

/// A context for variables on parameter servers, with transport `T`: the scope of a ParameterServer on the coordinator,
/// a replica function that it runs, or the context of a scheduled function on a worker.
template <class C, class T>
concept ServerContext = detail::ScopeOfServers<C, T> || detail::WorkerOfServers<C, T>;

namespace server {

/// Returns the clients of a context.
template <class T, ServerContext<T> Context>
[[nodiscard]] Clients<T>& clients_of(const Context& context) {
  if constexpr (dist::detail::ScopeOfServers<Context, T>)
    return context.strategy().clients();
  else
    return context.template clients<T>();
}

/// A pending read: a Future. Once it is done, `values()` returns the elements, and `result()` their version.
template <class Element, class T>
class ServerRead : public Batch<T>::Pull {
 public:
  ServerRead(typename Batch<T>::Pull part, std::shared_ptr<Tensor<Element>> values)
      : Batch<T>::Pull(std::move(part)), values_(std::move(values)) {
    this->keep(values_);
  }

  [[nodiscard]] TensorView<const Element> values() const noexcept { return std::as_const(*values_).view(); }

 private:
  std::shared_ptr<Tensor<Element>> values_;
};

}  // namespace server

/// A handle of a shard on a parameter server. It has an address but no connection, so it can be sent to workers;
/// operations take the context with the connection. See StartsOperations and ServerVariable.
template <class E, class T>
class ServerShard {
 public:
  using Element = E;
  /// The transport of calls to the server.
  using Transport = T;
  /// A pending read: a Future with the elements.
  using Read = server::ServerRead<E, T>;
  /// A pending write: a Future.
  using Write = typename server::Batch<T>::Push;

  /// Serialized, in addition to the shape.
  using Address = server::ShardAddress;

  /// The shard at `place`, as its server created it.
  ServerShard(Address place, Shape shape) : place_(std::move(place)), shape_(std::move(shape)) {}

  /// The server, and the number of the shard there.
  [[nodiscard]] const Address& place() const noexcept { return place_; }
  [[nodiscard]] const std::string& name() const noexcept { return place_.name; }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }

  /// Returns a batch for operations that are sent together (see StartsTogether).
  template <ServerContext<T> Context>
  [[nodiscard]] static server::Batch<T> together(const Context& context) {
    return server::Batch<T>{server::clients_of<T>(context)};
  }

  /// Starts to read array 0, the values, or i > 0, slot i - 1.
  template <ServerContext<T> Context>
  [[nodiscard]] Read start_read(const Context& context, std::uint32_t array = 0) const {
    return begin(context, [&](const server::Batch<T>& batch) {
      const auto values = std::make_shared<Tensor<Element>>(shape_);
      return Read{batch.pull(place_, values->elements(), {.array = array}), values};
    });
  }
  template <ServerContext<T> Context>
  [[nodiscard]] Read start_gather(const Context& context, std::span<const std::int64_t> rows) const {
    return begin(context, [&](const server::Batch<T>& batch) {
      const auto values = std::make_shared<Tensor<Element>>(shape_.with_rows(rows.size()));
      return Read{batch.pull_rows(place_, rows, values->elements()), values};
    });
  }
  template <ServerContext<T> Context, class Value, class Update>
  [[nodiscard]] Write start_write(const Context& context, const Value& value, Update update) {
    if constexpr (detail::is_same_value<Value>) {
      return start_write(context, value.value, update);
    } else {
      return begin(context, [&](const server::Batch<T>& batch) {
        if constexpr (std::same_as<Value, Element>) {
          return shape_.elements() == 0 ? Write{} : batch.push_uniform(place_, update, value);
        } else {
          const TensorView<const Element> values = value;
          return batch.push(place_, update, values.elements());
        }
      });
    }
  }
  template <ServerContext<T> Context, class Update>
  [[nodiscard]] Write start_scatter(const Context& context, IndexedSlicesView<Element> slices, Update update) {
    return begin(context, [&](const server::Batch<T>& batch) {
      return batch.push_rows(place_, update, slices.indices(), slices.values().elements(),
                             server::DuplicateRows::in_order);
    });
  }

  /// Throws InvalidArgument if the context does not have the shard's server.
  template <ServerContext<T> Context>
  [[nodiscard]] std::shared_ptr<server::Client<T>> client(const Context& context) const {
    return server::clients_of<T>(context).of(static_cast<std::size_t>(place_.server), place_.incarnation);
  }

  void write_to(ArchiveWriter& archive) const { archive.put(place_).put(shape_); }
  [[nodiscard]] static ServerShard read_from(ArchiveReader& archive) {
    auto place = archive.get<Address>();
    return ServerShard{std::move(place), archive.get<Shape>()};
  }

 private:
  /// Adds an operation with `add(batch)` to `context` if that is a batch, otherwise to a new batch that is sent at
  /// once.
  template <class Context, class Add>
  [[nodiscard]] static auto begin(const Context& context, const Add& add) {
    if constexpr (std::same_as<Context, server::Batch<T>>) {
      return add(context);
    } else {
      const server::Batch<T> alone = together(context);
      auto begun = add(alone);
      alone.send();
      return begun;
    }
  }
  Address place_;
  Shape shape_;
};

/// The elements of a variable, and the versions of its shards. Push gradients computed from the elements with these
/// versions, so that their staleness is known.
template <class T>
struct Pulled {
  /// The elements of all shards, as one tensor.
  Tensor<T> values;
  /// The version of each shard when its elements were read.
  std::vector<std::uint64_t> versions;
};

/// Options of a push, as in server::PushOptions, for all shards.
struct ApplyOptions {
  std::vector<std::uint64_t> versions = {};             ///< pulled versions of the shards; empty: unknown
  std::uint32_t first_slot = 0;                         ///< first slot that the update uses
  std::uint64_t max_staleness = server::any_staleness;  ///< limit of other pushes; beyond it, a shard rejects its part
};

/// A variable on parameter servers, created by `ParameterServer::variable`. It has one shard, or several if the
/// strategy divides it. Operations take the strategy's scope on the coordinator, or the context of a scheduled function
/// on a worker, which gets the variable as an argument. They run on all shards concurrently, with one message to each
/// server. A server::Batch combines operations on several variables.
///
///     auto weights = strategy.template variable<float>({1'000}, 0.0F, "weights");
///     coordinator.schedule([](dist::WorkerContext& worker, auto& weights) {
///       const dist::Tensor<float> now = weights.read(worker);
///       weights.assign_sub(worker, gradient_of(now));
///     }, weights);
///
/// In addition to the operations of a ShardedVariable, it has the operations of optimizers, which run on the servers.
/// Training is asynchronous: each shard is read and changed atomically, but shards are not ordered among each other.
/// The elements exist as long as the object returned by `variable`; workers get references.
///
/// All operations throw ServerUnavailable if a server is unreachable or has lost its variables (spec L15). The
/// coordinator counts these errors, and repeats the scheduled function.
template <class T, class Via>
class ServerVariable : public ShardedVariable<ServerShard<T, Via>> {
  using Sharded = ShardedVariable<ServerShard<T, Via>>;

 public:
  /// The transport of calls to the servers.
  using Transport = Via;

  /// `kept` is destroyed with the variable.
  ServerVariable(std::vector<ServerShard<T, Via>> shards, std::string name, std::shared_ptr<void> kept = nullptr)
      : Sharded(std::move(shards), std::move(name)), kept_(std::move(kept)) {}

  /// Reads all elements, with their versions.
  template <ServerContext<Via> Context>
  [[nodiscard]] Pulled<T> pull(const Context& context) const {
    Pulled<T> pulled{Tensor<T>{this->shape()},
                     std::vector<std::uint64_t>(this->shards().size(), server::unknown_version)};
    refresh(context, pulled);
    return pulled;
  }
  /// Pulls the shards that have changed since `pulled`, and returns their number. Throws ShapeMismatch or
  /// InvalidArgument if `pulled` is of another variable.
  template <ServerContext<Via> Context>
  std::size_t refresh(const Context& context, Pulled<T>& pulled) const {
    detail::require_shape(*this, pulled.values.shape());
    require_versions(pulled.versions);
    const std::size_t width = pulled.values.view().row_size();
    const server::Batch<Via> batch{server::clients_of<Via>(context)};
    const auto pull = [&](std::size_t shard) {
      const IndexRange rows = this->layout().rows_of(shard);
      return batch.pull(this->shards()[shard].place(),
                        pulled.values.elements().subspan(rows.begin * width, rows.size() * width),
                        {.known = pulled.versions[shard]});
    };
    detail::PendingOnShards pulls{this->shards().size(), pull, [&] { batch.send(); }};
    std::size_t changed = 0;
    pulls.wait([&](std::size_t shard, const auto& its) {
      if (its.result() != std::exchange(pulled.versions[shard], its.result())) ++changed;
    });
    return changed;
  }

  /// Creates the missing slots from `first` on, one for each of `values`, filled with that value. Shards are processed
  /// in order; after an error, another call creates the rest.
  template <ServerContext<Via> Context>
  void ensure_slots(const Context& context, const std::vector<double>& values, std::uint32_t first = 0) {
    for (const ServerShard<T, Via>& shard : this->shards())
      shard.client(context)->ensure_slots(shard.place().id, first, values);
  }
  /// Reads slot `slot` of all shards as one tensor. Throws StoreError if a shard lacks it.
  template <ServerContext<Via> Context>
  [[nodiscard]] Tensor<T> read_slot(const Context& context, std::uint32_t slot) const {
    return this->joined(context, [&](const auto& in, const auto& shard) { return shard.start_read(in, slot + 1); });
  }

  /// Writes an existing slot. Throws ShapeMismatch if the shape of the values differs.
  template <ServerContext<Via> Context>
  void assign_slot(const Context& context, std::uint32_t slot, TensorView<const T> values) {
    apply(context, server::AssignSlot{}, values, {.first_slot = slot});
  }

  /// Applies an update to all elements on the servers: `update(old, value)`, or an optimizer's functor `update(weight,
  /// gradient, slots)` with existing slots (see server::ServerUpdate). Returns the result for each shard. With a
  /// staleness limit, a shard may reject its part (server::PushOptions). Throws ShapeMismatch if the shape of the
  /// values differs.
  template <ServerContext<Via> Context, class Update>
  std::vector<server::Pushed> apply(const Context& context, const Update& update, TensorView<const T> values,
                                    const ApplyOptions& options = {}) {
    detail::require_shape(*this, values.shape());
    return pushed(context, options, [&](const auto& batch, std::size_t shard, const server::PushOptions& of_shard) {
      return batch.push(this->shards()[shard].place(), update, this->part_of(values, shard).elements(), of_shard);
    });
  }
  /// Applies an update to the rows of `slices`, after summing slices with the same index (spec P14).
  template <ServerContext<Via> Context, class Update>
  std::vector<server::Pushed> apply(const Context& context, const Update& update, IndexedSlicesView<T> slices,
                                    const ApplyOptions& options = {}) {
    const std::vector<IndexedSlices<T>> parts = divided(slices);
    return pushed(context, options, [&](const auto& batch, std::size_t shard, const server::PushOptions& of_shard) {
      return push_summed(batch, shard, update, parts[shard], of_shard);
    });
  }

  /// Adds updates of the rows of `slices` to a batch, like `apply`. The batch keeps the values alive.
  template <class Update>
  void add_to(const server::Batch<Via>& batch, std::vector<typename server::Batch<Via>::Push>& pushes,
              const Update& update, IndexedSlicesView<T> slices, const server::PushOptions& options) const {
    const auto parts = std::make_shared<std::vector<IndexedSlices<T>>>(divided(slices));
    for (std::size_t shard = 0; shard < parts->size(); ++shard) {
      pushes.push_back(push_summed(batch, shard, update, (*parts)[shard], options));
      pushes.back().keep(parts);
    }
  }
  /// Reserves slots for an optimizer, and returns the number of the first.
  [[nodiscard]] std::uint32_t take_slots(std::size_t count) noexcept {
    return std::exchange(next_slot_, next_slot_ + static_cast<std::uint32_t>(count));
  }

  /// Returns the staleness of pushes with a version, over all shards.
  template <ServerContext<Via> Context>
  [[nodiscard]] server::Staleness staleness(const Context& context) const {
    server::Staleness all;
    for (const ServerShard<T, Via>& shard : this->shards())
      all.add(shard.client(context)->staleness({shard.place().id}).front());
    return all;
  }

  void write_to(ArchiveWriter& archive) const {
    archive.put(this->name()).put(static_cast<std::uint32_t>(this->shards().size()));
    for (const ServerShard<T, Via>& shard : this->shards()) archive.put(shard);
  }
  [[nodiscard]] static ServerVariable read_from(ArchiveReader& archive) {
    auto name = archive.get<std::string>();
    const auto count = archive.get<std::uint32_t>();
    std::vector<ServerShard<T, Via>> shards;
    for (std::uint32_t shard = 0; shard < count; ++shard) shards.push_back(archive.get<ServerShard<T, Via>>());
    try {
      return ServerVariable{std::move(shards), std::move(name)};
    } catch (const Error& error) {
      throw ArchiveError("The shards of a variable in a message do not fit together", error.what(),
                         "Start all processes of the job from one build of the program");
    }
  }

 private:
  void require_versions(const std::vector<std::uint64_t>& versions) const {
    if (versions.size() != this->shards().size())
      throw InvalidArgument(concat("Versions do not fit variable ", quoted(this->name())),
                            concat(versions.size(), " were given, it has ", this->shards().size(), " shards"),
                            "Give the versions that pull returned");
  }
  [[nodiscard]] std::vector<IndexedSlices<T>> divided(IndexedSlicesView<T> slices) const {
    detail::require_shape(*this, slices.dense_shape());
    const SplitRows split = this->layout().split(this->name(), slices.indices());
    std::vector<IndexedSlices<T>> parts;
    for (std::size_t shard = 0; shard < this->shards().size(); ++shard)
      parts.push_back(split.slices(shard, slices.values(), this->shards()[shard].shape()));
    return parts;
  }
  template <class Update>
  [[nodiscard]] auto push_summed(const server::Batch<Via>& batch, std::size_t shard, const Update& update,
                                 const IndexedSlices<T>& slices, const server::PushOptions& options) const {
    return batch.push_rows(this->shards()[shard].place(), update, slices.indices(), slices.values().elements(),
                           server::DuplicateRows::summed, options);
  }
  /// Returns the results of the pushes that `add(batch, shard, options)` adds.
  template <class Context, class Add>
  [[nodiscard]] std::vector<server::Pushed> pushed(const Context& context, const ApplyOptions& options,
                                                   const Add& add) const {
    if (!options.versions.empty()) require_versions(options.versions);
    const server::Batch<Via> batch{server::clients_of<Via>(context)};
    std::vector<server::Pushed> all(this->shards().size());
    const auto push = [&](std::size_t shard) {
      const std::uint64_t version = options.versions.empty() ? server::unknown_version : options.versions[shard];
      return add(batch, shard, server::PushOptions{version, options.first_slot, options.max_staleness});
    };
    detail::PendingOnShards pushes{all.size(), push, [&] { batch.send(); }};
    pushes.wait([&](std::size_t shard, const auto& its) { all[shard] = its.result(); });
    return all;
  }

  std::shared_ptr<void> kept_;
  std::uint32_t next_slot_ = 0;
};

}  // namespace dist
