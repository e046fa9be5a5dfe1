#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/indexed_slices.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/tensor.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/batch.hpp>
#include <dist/server/requests.hpp>
#include <dist/server/server_context.hpp>
#include <dist/server/server_shard.hpp>
#include <dist/server/shard_spec.hpp>
#include <dist/server/update.hpp>
#include <dist/variable/shard.hpp>
#include <dist/variable/sharded_variable.hpp>

namespace dist {

/// The elements of a variable, and of which version each of its shards was: a gradient that was computed from these is pushed
/// with the versions, so that its staleness is counted.
template <class T>
struct Pulled {
  Tensor<T> values;
  std::vector<std::uint64_t> versions;
};

/// What is said about a push besides its values: server::PushOptions for all shards.
struct ApplyOptions {
  std::vector<std::uint64_t> versions = {};  ///< of the shards when the values' origin was pulled; none: nobody knows
  std::uint32_t first_slot = 0;              ///< of those that the update uses
  std::uint64_t max_staleness =
      server::any_staleness;  ///< a shard that others have pushed to more often refuses its part
};

/// A variable on parameter servers, made by `ParameterServer::variable`. Its shards are on one server each, one shard where the
/// strategy does not divide it, and operations on all of them go on at the same time. Operations take the strategy's scope on
/// the coordinator, and on a worker the context of the scheduled function, whose argument the variable may be. Each sends one
/// message to each server, however many shards are there; what concerns several variables travels together in a server::Batch.
///
///     auto weights = strategy.template variable<float>({1'000}, 0.0F, "weights");
///     coordinator.schedule([](dist::WorkerContext& worker, auto& weights) {
///       const dist::Tensor<float> now = weights.read(worker);
///       weights.assign_sub(worker, gradient_of(now));
///     }, weights);
///
/// Besides the operations of a ShardedVariable it has those of optimizers, which run on the servers. Each operation sees and
/// changes each shard as a whole, and shards in no order among each other: training is asynchronous. Its elements are dropped
/// with what `variable` has returned; what a worker gets is a name for them.
///
/// All throw ServerUnavailable where a server is gone or has lost its variables (spec L15), which the coordinator of a scheduled
/// function counts and repeats.
template <class T, class Via>
class ServerVariable : public ShardedVariable<ServerShard<T, Via>> {
  using Sharded = ShardedVariable<ServerShard<T, Via>>;

 public:
  using Transport = Via;

  /// `kept` goes with this.
  ServerVariable(std::vector<ServerShard<T, Via>> shards, std::string name, std::shared_ptr<void> kept = nullptr)
      : Sharded(std::move(shards), std::move(name)), kept_(std::move(kept)) {}

  /// All elements, and their versions.
  template <ServerContext<Via> Context>
  [[nodiscard]] Pulled<T> pull(const Context& context) const {
    Pulled<T> pulled{Tensor<T>{this->shape()},
                     std::vector<std::uint64_t>(this->shards().size(), server::unknown_version)};
    refresh(context, pulled);
    return pulled;
  }
  /// Pulls again what has changed since, by others or by whoever has pulled it: shards that have not, do not travel. Returns how
  /// many have. Throws ShapeMismatch and InvalidArgument for what was not pulled from this variable.
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

  /// Sees to slots `first`, `first + 1` and so on beside the elements, as many as there are values: all elements of a slot have
  /// the value given for it, unless the slot was there. Shard after shard: where one fails, those before it have their slots, and
  /// another call sees to the others.
  template <ServerContext<Via> Context>
  void ensure_slots(const Context& context, const std::vector<double>& values, std::uint32_t first = 0) {
    for (const ServerShard<T, Via>& shard : this->shards())
      shard.client(context)->ensure_slots(shard.place().id, first, values);
  }
  /// What a slot holds.
  template <ServerContext<Via> Context>
  [[nodiscard]] Tensor<T> read_slot(const Context& context, std::uint32_t slot) const {
    return this->joined(context, [&](const auto& in, const auto& shard) { return shard.start_read(in, slot + 1); });
  }

  /// Writes a slot, which there is. Throws ShapeMismatch for values of another shape.
  template <ServerContext<Via> Context>
  void assign_slot(const Context& context, std::uint32_t slot, TensorView<const T> values) {
    apply(context, server::AssignSlot{}, values, {.first_slot = slot});
  }

  /// Lets the servers apply an update to all elements: `update(old, value)`, or an optimizer's functor, `update(weight, gradient,
  /// slots)`, whose slots are there (see server::ServerUpdate). Says what became of each shard's part: with a bound on the
  /// staleness it may not be applied (server::PushOptions), which is no error. Throws ShapeMismatch for values of another shape.
  template <ServerContext<Via> Context, class Update>
  std::vector<server::Pushed> apply(const Context& context, const Update& update, TensorView<const T> values,
                                    const ApplyOptions& options = {}) {
    detail::require_shape(*this, values.shape());
    return pushed(context, options, [&](const auto& batch, std::size_t shard, const server::PushOptions& of_shard) {
      return batch.push(this->shards()[shard].place(), update, this->part_of(values, shard).elements(), of_shard);
    });
  }
  /// The same to the rows that `slices` names, of which those of the same index are added up first (spec P14).
  template <ServerContext<Via> Context, class Update>
  std::vector<server::Pushed> apply(const Context& context, const Update& update, IndexedSlicesView<T> slices,
                                    const ApplyOptions& options = {}) {
    const std::vector<IndexedSlices<T>> parts = divided(slices);
    return pushed(context, options, [&](const auto& batch, std::size_t shard, const server::PushOptions& of_shard) {
      return push_summed(batch, shard, update, parts[shard], of_shard);
    });
  }

  /// Adds to a batch, and to `pushes`, what lets the servers apply an update to the rows that `slices` names, as `apply` does. The
  /// batch keeps the values.
  template <class Update>
  void add_to(const server::Batch<Via>& batch, std::vector<typename server::Batch<Via>::Push>& pushes,
              const Update& update, IndexedSlicesView<T> slices, const server::PushOptions& options) const {
    const auto parts = std::make_shared<std::vector<IndexedSlices<T>>>(divided(slices));
    for (std::size_t shard = 0; shard < parts->size(); ++shard) {
      pushes.push_back(push_summed(batch, shard, update, (*parts)[shard], options));
      pushes.back().keep(parts);
    }
  }
  /// For an optimizer that keeps `count` slots beside each element: the number of the first.
  [[nodiscard]] std::uint32_t take_slots(std::size_t count) noexcept {
    return std::exchange(next_slot_, next_slot_ + static_cast<std::uint32_t>(count));
  }

  /// How stale pushes were that have said from which version they came, over all shards.
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
      throw ArchiveError("A variable of a message has no shards that fit together", error.what(),
                         "Start all processes of the job from one build of the program");
    }
  }

 private:
  void require_versions(const std::vector<std::uint64_t>& versions) const {
    if (versions.size() != this->shards().size())
      throw InvalidArgument(concat("Versions do not fit variable ", quoted(this->name())),
                            concat(versions.size(), " were given, it has ", this->shards().size(), " shards"),
                            "Give those that pull has returned");
  }
  /// The slices of the rows of each shard.
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
  /// What became of the pushes of all shards, which `add(batch, shard, options)` adds to a batch.
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
