#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/comm/packing.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/indexed_slices.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/io/element_type.hpp>
#include <dist/server/batch.hpp>
#include <dist/server/client.hpp>
#include <dist/server/requests.hpp>
#include <dist/server/shard_spec.hpp>
#include <dist/server/update.hpp>
#include <dist/server/wire.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/shard.hpp>

namespace dist::server {

/// The contents of a variable's copy during a step; and what is pushed at its end.
enum class CacheKind : std::uint8_t {
  values,  ///< the values; the writes of the step
  sum,     ///< the sum of the step; the copy, which servers add to the values
  state,   ///< the values; the copy, if it has changed
  slot,    ///< nothing: only updates on the servers change it
};

/// A variable on parameter servers with a copy in this process. See VariableCache.
template <class T>
class CachedVariable {
 public:
  /// Tensors of CacheKind::values are transferred in buckets, the last ones first. A bucket is closed once it exceeds
  /// `bucket_bytes`; 0: one bucket. `push_update` is the update for a push of the whole copy. `kept` is destroyed with
  /// the variable.
  CachedVariable(CachedVariableSpec spec, CacheKind kind, std::byte* copy,
                 std::unique_ptr<const ElementUpdateBase> push_update, std::size_t bucket_bytes,
                 std::shared_ptr<void> kept = nullptr)
      : spec_(std::move(spec)),
        kind_(kind),
        copy_(copy),
        push_update_(std::move(push_update)),
        kept_(std::move(kept)),
        versions_(spec_.shards.size(), unknown_version) {
    std::vector<std::size_t> bytes;
    for (std::size_t shard = 0; shard < spec_.shards.size(); ++shard) {
      const CachedShard& its = spec_.shards[shard];
      if (its.tensor >= tensors_.size()) {
        tensors_.push_back({shard, shard});
        bytes.push_back(0);
      }
      ++tensors_.back().end;
      bytes.back() += (its.end - its.begin) * io::bytes_of(spec_.type);
    }
    buckets_ = packs_by_bytes(bytes, kind == CacheKind::values ? bucket_bytes : 0);
  }
  CachedVariable(const CachedVariable&) = delete;
  CachedVariable& operator=(const CachedVariable&) = delete;

  [[nodiscard]] const CachedVariableSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] CacheKind kind() const noexcept { return kind_; }
  /// The range of shards of each tensor.
  [[nodiscard]] std::span<const IndexRange> tensors() const noexcept { return tensors_; }
  [[nodiscard]] std::span<const IndexRange> buckets() const noexcept { return buckets_; }
  /// The index of the bucket's first element in the copy.
  [[nodiscard]] std::size_t first_of_bucket(std::size_t bucket) const {
    return static_cast<std::size_t>(spec_.shards[tensors_[buckets_[bucket].begin].begin].begin);
  }
  [[nodiscard]] std::span<std::byte> bytes_of(const CachedShard& shard) const {
    const std::size_t size = io::bytes_of(spec_.type);
    return {copy_ + shard.begin * size, static_cast<std::size_t>(shard.end - shard.begin) * size};
  }
  /// The number of computed gradients of the variable (ServerStore::renew).
  [[nodiscard]] std::uint64_t gradients() const noexcept { return gradients_; }
  void renew() noexcept { ++gradients_; }
  /// Reserves slots for an optimizer, and returns the number of the first.
  [[nodiscard]] std::uint32_t take_slots(std::size_t count) noexcept {
    return std::exchange(next_slot_, next_slot_ + static_cast<std::uint32_t>(count));
  }

 private:
  template <class>
  friend class VariableCache;

  const CachedVariableSpec spec_;
  const CacheKind kind_;
  std::byte* const copy_;
  const std::unique_ptr<const ElementUpdateBase> push_update_;
  const std::shared_ptr<void> kept_;
  std::vector<IndexRange> tensors_;
  std::vector<IndexRange> buckets_;
  std::uint32_t next_slot_ = 0;
  std::uint64_t gradients_ = 0;
  // Guarded by the mutex of the cache:
  std::vector<std::uint64_t> versions_;  ///< of the shards in the copy
  std::uint64_t step_ = 0;               ///< last step that used the variable
  bool has_changed_ = false;             ///< in this step
};

/// The cached variables of a strategy, and the current step. A step sees each variable as of its first use. It pulls
/// what has changed since the previous step, and pushes its writes at its end, with one message to each server, or
/// several if buckets are sent earlier. If it throws, unsent writes are discarded.
///
/// Outside steps, a read pulls and a write pushes at once. One thread at a time: others wait for the end of a step.
template <class T>
class VariableCache {
 public:
  using Variable = CachedVariable<T>;

  /// Shards reject updates of a step that are staler than `max_staleness` (PushOptions).
  VariableCache(std::shared_ptr<Clients<T>> clients, std::uint64_t max_staleness)
      : clients_(std::move(clients)), max_staleness_(max_staleness), pushes_(*clients_) {}
  VariableCache(const VariableCache&) = delete;
  VariableCache& operator=(const VariableCache&) = delete;

  // ---- variables, in the order of creation ----

  void add(const std::shared_ptr<Variable>& variable) {
    const std::lock_guard lock{mutex_};
    if (variables_.size() == forget_at_) {
      std::erase_if(variables_, [](const Numbered& each) { return each.variable.expired(); });
      forget_at_ = 2 * variables_.size() + least_forgotten;
    }
    variables_.push_back({count_++, variable});
  }
  /// The number of added variables, which is also the number of the next one.
  [[nodiscard]] std::uint64_t count() const {
    const std::lock_guard lock{mutex_};
    return count_;
  }
  /// Returns the existing variables from number `first` on.
  [[nodiscard]] std::vector<std::shared_ptr<Variable>> since(std::uint64_t first) const {
    const std::lock_guard lock{mutex_};
    std::vector<std::shared_ptr<Variable>> left;
    for (const Numbered& each : variables_)
      if (each.number >= first)
        if (auto variable = each.variable.lock()) left.push_back(std::move(variable));
    return left;
  }
  [[gnu::noinline]] static void append(std::vector<std::shared_ptr<Variable>>& variables,
                                       const std::vector<std::shared_ptr<Variable>>& others) {
    variables.insert(variables.end(), others.begin(), others.end());
  }
  [[nodiscard, gnu::noinline, gnu::cold]] std::vector<CachedVariableSpec> specs_since(std::uint64_t first) const {
    std::vector<CachedVariableSpec> specs;
    for (const auto& variable : since(first)) specs.push_back(variable->spec());
    return specs;
  }

  // ---- steps ----

  /// Calls `fn()` as a step, or as part of the current step. Pulls the variables in `wanted` first. Throws
  /// ServerUnavailable, StoreError or RpcError.
  template <class Fn>
  auto step(std::span<const std::shared_ptr<Variable>> wanted, Fn&& fn) {
    const std::lock_guard lock{mutex_};
    if (phase_ != Phase::none) return fn();
    const Ended ended{*this};
    begin(wanted);
    if constexpr (std::is_void_v<decltype(fn())>) {
      fn();
      push();
    } else {
      auto result = fn();
      push();
      return result;
    }
  }
  /// Ends the current step, and begins another. Throws InvalidArgument outside a step.
  void next_step(std::span<const std::shared_ptr<Variable>> wanted) {
    const std::lock_guard lock{mutex_};
    require_step("the next step cannot begin");
    push();
    forget();
    begin(wanted);
  }

  /// While it exists, variables are local to this process: each is pulled once, sums begin at zero, and nothing is
  /// pushed.
  class LocalSteps {
   public:
    explicit LocalSteps(VariableCache& cache)
        : lock_(cache.mutex_), cache_(cache.phase_ == Phase::none ? &cache : nullptr) {
      if (cache_ == nullptr) return;
      cache_->phase_ = Phase::local;
      ++cache_->step_;
    }
    LocalSteps(const LocalSteps&) = delete;
    LocalSteps& operator=(const LocalSteps&) = delete;
    ~LocalSteps() {
      if (cache_ != nullptr) cache_->end();
    }

   private:
    const std::lock_guard<std::recursive_mutex> lock_;
    VariableCache* cache_;
  };
  /// True during a step of this thread.
  [[nodiscard]] bool is_in_step() const {
    const std::lock_guard lock{mutex_};
    return phase_ != Phase::none;
  }

  /// True during LocalSteps of this thread.
  [[nodiscard]] bool is_local() const {
    const std::lock_guard lock{mutex_};
    return phase_ == Phase::local;
  }

  // ---- operations on a variable, in steps and outside ----

  /// Waits for these elements of the copy.
  void await(Variable& variable, IndexRange elements) {
    const std::lock_guard lock{mutex_};
    if (phase_ == Phase::none) {
      Pull pull{*clients_};
      for (std::size_t shard = 0; shard < variable.spec_.shards.size(); ++shard) pull.add(variable, shard);
      pull.batch.send();
      pull.wait();
      return;
    }
    if (variable.step_ != step_) {
      const std::shared_ptr<Variable> one{std::shared_ptr<void>{}, &variable};
      start_pulls({&one, 1}, true);
    }
    for (std::size_t i = 0; i < pulls_.size();) {
      if (pulls_[i].has(variable, elements)) {
        Pull pull = std::move(pulls_[i]);
        pulls_.erase(pulls_.begin() + static_cast<std::ptrdiff_t>(i));
        pull.wait();
      } else {
        ++i;
      }
    }
  }
  /// Marks the copy as changed by the step. Requires `await`.
  void change(Variable& variable) {
    const std::lock_guard lock{mutex_};
    if (phase_ == Phase::none || variable.has_changed_) return;
    variable.has_changed_ = true;
    changed_.push_back(&variable);
  }
  /// Adds a part of a push, with its update, to a request.
  using PutPart = dist::detail::FunctionRef<void(PushRequest&, const detail::PushPart&)>;

  /// Updates the elements of `range` on the servers, with one value each, or one for all if `is_uniform`: at the end of
  /// the step, or at once outside steps. The range must consist of whole shards. Returns true if the caller must update
  /// the copy.
  [[gnu::noinline]] bool write(const Variable& variable, IndexRange range, Bytes values, bool is_uniform, PutPart put) {
    const std::lock_guard lock{mutex_};
    if (phase_ == Phase::local) return true;
    const bool at_once = phase_ == Phase::none;
    const Batch<T> batch = at_once ? Batch<T>{*clients_} : pushes_;
    Pushes pushed_alone;
    Pushes& pushed = at_once ? pushed_alone : pushed_;
    std::shared_ptr<const std::vector<std::byte>> kept;
    if (!at_once && !is_uniform) {
      kept = std::make_shared<const std::vector<std::byte>>(values.begin(), values.end());
      values = *kept;
    }
    const std::size_t size = io::bytes_of(variable.spec_.type);
    for (const CachedShard& shard : variable.spec_.shards) {
      if (shard.end <= range.begin || shard.begin >= range.end || shard.begin == shard.end) continue;
      DIST_EXPECT(range.begin <= shard.begin && shard.end <= range.end);
      detail::PushPart part{shard.place.id};
      part.form = is_uniform ? detail::PushEncoding::uniform : detail::PushEncoding::dense;
      part.options.first_slot = variable.spec_.array == 0 ? 0 : variable.spec_.array - 1;
      part.values =
          is_uniform ? detail::ValueBytes::copy_of(values)
                     : detail::ValueBytes{values.subspan((static_cast<std::size_t>(shard.begin) - range.begin) * size,
                                                         static_cast<std::size_t>(shard.end - shard.begin) * size)};
      add_push(batch, pushed, shard, [&](PushRequest& request) { put(request, part); });
      if (kept) pushed.back().keep(kept);
    }
    if (at_once) {
      batch.send();
      wait_for(std::move(pushed));
    }
    return !at_once;
  }
  /// Queues updates of the tensors of some buckets. `gradients` must stay valid until `wait_for_pushes` or the end of
  /// the step. `functor_of(tensor)` returns the functor of a tensor, with slots from `first_slot` on. Throws
  /// InvalidArgument outside a step.
  template <class E, class FunctorOf>
  void push_updates(const Variable& variable, IndexRange buckets, std::span<const E> gradients,
                    const FunctorOf& functor_of, std::uint32_t first_slot) {
    push_tensors(variable, buckets, std::as_bytes(gradients), first_slot,
                 [&](PushRequest& request, const detail::PushPart& part, std::size_t tensor) {
                   request.put<E>(part, functor_of(tensor));
                 });
  }
  /// Queues updates of rows of a ServerVariable, which has no copy here.
  template <class Table, class E, class Functor>
  void push_rows(const Table& table, IndexedSlicesView<E> gradient, const Functor& functor, std::uint32_t first_slot) {
    const std::lock_guard lock{mutex_};
    require_step("gradients cannot be applied");
    table.add_to(pushes_, pushed_, functor, gradient, {.first_slot = first_slot});
  }
  /// Sends queued pushes without waiting.
  void send_pushes() {
    const std::lock_guard lock{mutex_};
    pushes_.send();
  }
  /// Sends queued pushes, and waits until all are applied.
  void wait_for_pushes() {
    const std::lock_guard lock{mutex_};
    if (pushed_.empty()) return;
    pushes_.send();
    wait_for(std::exchange(pushed_, {}));
  }

  /// Returns the staleness of applied updates of a variable, and the number of rejected ones.
  [[nodiscard]] Staleness staleness(const Variable& variable) const {
    Staleness all;
    for (const CachedShard& shard : variable.spec_.shards)
      all.add(clients_->of(static_cast<std::size_t>(shard.place.server), shard.place.incarnation)
                  ->staleness({shard.place.id})
                  .front());
    return all;
  }
  [[nodiscard]] Clients<T>& clients() const noexcept { return *clients_; }

 private:
  using Pushes = std::vector<typename Batch<T>::Push>;
  enum class Phase : std::uint8_t { none, step, local };
  struct Numbered {
    std::uint64_t number;
    std::weak_ptr<Variable> variable;
  };
  static constexpr std::size_t least_forgotten = 64;

  /// Pending pulls of shards, with one message to each server.
  struct Pull {
    explicit Pull(Clients<T>& clients) : batch(clients) {}

    struct Wanted {
      Variable* variable;
      std::size_t shard;
    };
    Batch<T> batch;
    std::vector<typename Batch<T>::Pull> parts;
    std::vector<Wanted> wanted;

    void add(Variable& variable, std::size_t number) {
      const CachedShard& shard = variable.spec_.shards[number];
      // The version counts changes of the values, but slots change, too.
      const std::uint64_t known = variable.spec_.array == 0 ? variable.versions_[number] : unknown_version;
      parts.push_back(batch.pull(shard.place, variable.spec_.type, variable.bytes_of(shard),
                                 {.known = known, .array = variable.spec_.array}));
      wanted.push_back({&variable, number});
    }
    [[nodiscard]] bool has(const Variable& variable, IndexRange elements) const {
      return std::any_of(wanted.begin(), wanted.end(), [&](const Wanted& each) {
        const CachedShard& shard = each.variable->spec_.shards[each.shard];
        return each.variable == &variable && shard.begin < elements.end && shard.end > elements.begin;
      });
    }
    /// Waits for all messages, then throws ServerUnavailable, StoreError or RpcError if one failed.
    void wait() {
      dist::detail::wait_for_all(parts, [&](std::size_t part, const auto& pulled) {
        wanted[part].variable->versions_[wanted[part].shard] = pulled.result();
      });
    }
  };
  struct Ended {
    VariableCache& cache;
    ~Ended() { cache.end(); }
  };

  [[gnu::noinline]] static void add_push(const Batch<T>& batch, Pushes& pushed, const CachedShard& shard,
                                         dist::detail::FunctionRef<void(PushRequest&)> add) {
    pushed.push_back(batch.push(shard.place, add));
  }
  [[gnu::noinline]] void push_tensors(
      const Variable& variable, IndexRange buckets, Bytes gradients, std::uint32_t first_slot,
      dist::detail::FunctionRef<void(PushRequest&, const detail::PushPart&, std::size_t)> put) {
    const std::lock_guard lock{mutex_};
    require_step("gradients cannot be applied");
    const std::size_t size = io::bytes_of(variable.spec_.type);
    for (std::size_t bucket = buckets.begin; bucket < buckets.end; ++bucket)
      for (std::size_t tensor = variable.buckets_[bucket].begin; tensor < variable.buckets_[bucket].end; ++tensor)
        for (std::size_t i = variable.tensors_[tensor].begin; i < variable.tensors_[tensor].end; ++i) {
          const CachedShard& shard = variable.spec_.shards[i];
          if (shard.begin == shard.end) continue;
          detail::PushPart part{shard.place.id};
          part.options = {variable.versions_[i], first_slot, max_staleness_};
          part.values = detail::ValueBytes{gradients.subspan(static_cast<std::size_t>(shard.begin) * size,
                                                             static_cast<std::size_t>(shard.end - shard.begin) * size)};
          add_push(pushes_, pushed_, shard, [&](PushRequest& request) { put(request, part, tensor); });
        }
  }

  void begin(std::span<const std::shared_ptr<Variable>> wanted) {
    phase_ = Phase::step;
    ++step_;
    start_pulls(wanted, false);
  }
  /// Pulls what has changed, in the order of layers: first the variables with one bucket and the first tensors of the
  /// others.
  void start_pulls(std::span<const std::shared_ptr<Variable>> wanted, bool with_slots) {
    std::vector<Pull> pulls;
    pulls.emplace_back(*clients_);
    bool first_is_open = true;
    for (const bool in_buckets : {false, true}) {
      for (const auto& variable : wanted) {
        if ((variable->buckets_.size() > 1) != in_buckets || variable->step_ == step_) continue;
        if (variable->kind_ == CacheKind::slot && !with_slots) continue;
        variable->step_ = step_;
        if (variable->kind_ == CacheKind::sum) {
          for (const CachedShard& shard : variable->spec_.shards) {
            const std::span<std::byte> bytes = variable->bytes_of(shard);
            if (!bytes.empty()) std::memset(bytes.data(), 0, bytes.size());
          }
          std::fill(variable->versions_.begin(), variable->versions_.end(), unknown_version);
          continue;
        }
        for (std::size_t bucket = variable->buckets_.size(); bucket-- > 0;) {
          if (in_buckets && !std::exchange(first_is_open, false)) pulls.emplace_back(*clients_);
          for (std::size_t tensor = variable->buckets_[bucket].begin; tensor < variable->buckets_[bucket].end; ++tensor)
            for (std::size_t i = variable->tensors_[tensor].begin; i < variable->tensors_[tensor].end; ++i)
              pulls.back().add(*variable, i);
        }
      }
    }
    for (Pull& pull : pulls) {
      if (pull.parts.empty()) continue;
      pull.batch.send();
      pulls_.push_back(std::move(pull));
    }
  }
  /// Pushes the changes of the step, and waits for all pushes.
  void push() {
    for (const Variable* const variable : changed_) {
      if (variable->kind_ != CacheKind::sum && variable->kind_ != CacheKind::state) continue;
      for (const CachedShard& shard : variable->spec_.shards) {
        if (shard.begin == shard.end) continue;
        detail::PushPart part{shard.place.id};
        part.update = variable->push_update_.get();
        part.values = detail::ValueBytes{Bytes{variable->bytes_of(shard)}};
        add_push(pushes_, pushed_, shard, [&](PushRequest& request) { request.add(part); });
      }
    }
    wait_for_pushes();
  }
  static void wait_for(Pushes pushed) {
    dist::detail::wait_for_all(pushed, [](std::size_t, const auto&) {});
  }
  /// Invalidates changed copies, and drops pending pulls, which are repeated later.
  void forget() {
    pulls_.clear();
    for (Variable* const variable : std::exchange(changed_, {})) {
      variable->has_changed_ = false;
      std::fill(variable->versions_.begin(), variable->versions_.end(), unknown_version);
    }
  }
  /// Ends a step, and discards unsent pushes.
  void end() noexcept {
    if (!pushed_.empty()) pushes_ = Batch<T>{*clients_};
    try {
      wait_for(std::exchange(pushed_, {}));
    } catch (...) {  // not sent, or the step has thrown another error
    }
    forget();
    ++step_;  // copies with local sums belong to no step
    phase_ = Phase::none;
  }
  void require_step(std::string_view what) const {
    if (phase_ != Phase::step)
      throw InvalidArgument(
          concat("On a ParameterServer, ", what, " outside a step"),
          phase_ == Phase::local ? "an evaluation or a prediction is running" : "no function is running",
          "Call it in a function that a ClusterCoordinator schedules, or in strategy.run");
  }

  const std::shared_ptr<Clients<T>> clients_;
  const std::uint64_t max_staleness_;
  mutable std::recursive_mutex mutex_;
  std::vector<Numbered> variables_;  ///< sorted by number; some may have expired
  std::size_t forget_at_ = least_forgotten;
  std::uint64_t count_ = 0;
  Phase phase_ = Phase::none;
  std::uint64_t step_ = 0;
  std::vector<Pull> pulls_;  ///< pending, in order
  Batch<T> pushes_;
  Pushes pushed_;
  std::vector<Variable*> changed_;
};

}  // namespace dist::server
