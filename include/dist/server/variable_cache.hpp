#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <string>
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
#include <dist/server/clients.hpp>
#include <dist/server/requests.hpp>
#include <dist/server/shard_spec.hpp>
#include <dist/server/update.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/shard.hpp>

namespace dist::server {

/// A shard of a variable that has a copy in this process.
struct CachedShard {
  ShardAddress place;
  std::uint64_t tensor = 0;  ///< its number in the layout of the variable
  std::uint64_t begin = 0;   ///< its elements in the copy
  std::uint64_t end = 0;
};

/// What another process needs to have a copy of the variable, too.
struct CachedVariableSpec {
  std::string name;
  Shape shape;
  io::ElementType type = io::ElementType::f32;
  std::uint32_t array = 0;  ///< of the shards: 0 has the values, then come the slots
  std::vector<CachedShard> shards = {};
};

/// What the copy of a variable has in a step, and what is pushed when the step ends.
enum class CacheKind : std::uint8_t {
  values,  ///< the values; the writes that the step made
  sum,     ///< what the step adds; the copy, which is added to the values
  state,   ///< the values; the copy, if it has changed
  slot,    ///< nothing: only updates on the servers change it
};

/// A variable on parameter servers, and its copy in this process. A VariableCache reads and writes it.
template <class T>
class CachedVariable {
 public:
  using Pushes = std::vector<typename Batch<T>::Push>;
  /// Pushes the whole copy.
  using PushCopy = void(const CachedVariable&, const Batch<T>&, Pushes&);

  /// Tensors of `values` travel together, the last ones first, in buckets that are closed once they have more than `bucket_bytes`;
  /// 0 closes none. `kept` goes with this.
  CachedVariable(CachedVariableSpec spec, CacheKind kind, std::byte* copy, PushCopy& push_copy,
                 std::size_t bucket_bytes, std::shared_ptr<void> kept = nullptr)
      : spec_(std::move(spec)),
        kind_(kind),
        copy_(copy),
        push_copy_(&push_copy),
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
  /// The shards of each tensor, and the tensors of each bucket.
  [[nodiscard]] std::span<const IndexRange> tensors() const noexcept { return tensors_; }
  [[nodiscard]] std::span<const IndexRange> buckets() const noexcept { return buckets_; }
  /// The first element of a bucket in the copy.
  [[nodiscard]] std::size_t first_of_bucket(std::size_t bucket) const {
    return static_cast<std::size_t>(spec_.shards[tensors_[buckets_[bucket].begin].begin].begin);
  }
  [[nodiscard]] std::span<std::byte> bytes_of(const CachedShard& shard) const {
    const std::size_t size = io::bytes_of(spec_.type);
    return {copy_ + shard.begin * size, static_cast<std::size_t>(shard.end - shard.begin) * size};
  }
  template <class E>
  [[nodiscard]] std::span<const E> elements_of(const CachedShard& shard) const {
    return {reinterpret_cast<const E*>(copy_) + shard.begin, static_cast<std::size_t>(shard.end - shard.begin)};
  }
  /// How often gradients of it were begun to be computed (ServerStore::renew).
  [[nodiscard]] std::uint64_t gradients() const noexcept { return gradients_; }
  void renew() noexcept { ++gradients_; }
  /// For an optimizer that keeps `count` slots beside each shard: the number of the first.
  [[nodiscard]] std::uint32_t take_slots(std::size_t count) noexcept {
    return std::exchange(next_slot_, next_slot_ + static_cast<std::uint32_t>(count));
  }

 private:
  template <class>
  friend class VariableCache;

  const CachedVariableSpec spec_;
  const CacheKind kind_;
  std::byte* const copy_;
  PushCopy* const push_copy_;
  const std::shared_ptr<void> kept_;
  std::vector<IndexRange> tensors_;
  std::vector<IndexRange> buckets_;
  std::uint32_t next_slot_ = 0;
  std::uint64_t gradients_ = 0;
  // What follows changes under the lock of the cache.
  std::vector<std::uint64_t> versions_;  ///< of the shards, as the copy has them
  std::uint64_t step_ = 0;               ///< the latest step that has asked for it
  bool has_changed_ = false;             ///< in this step
};

/// The variables of a strategy that have a copy in this process, and the step that works with the copies. A step sees each variable
/// as it was when the step first needed it, pulls what has changed since the step before, and pushes what it writes when it ends: one
/// message to each server, or several where buckets leave earlier. What has not left when the step throws is dropped.
///
/// Outside steps a read pulls and a write pushes at once. One thread at a time: others wait for the end of a step.
template <class T>
class VariableCache {
 public:
  using Variable = CachedVariable<T>;

  /// A shard refuses updates of a step that are more stale than `max_staleness` (PushOptions).
  VariableCache(std::shared_ptr<Clients<T>> clients, std::uint64_t max_staleness)
      : clients_(std::move(clients)), max_staleness_(max_staleness), pushes_(*clients_) {}
  VariableCache(const VariableCache&) = delete;
  VariableCache& operator=(const VariableCache&) = delete;

  // ---- the variables, in the order in which they were made ----

  void add(const std::shared_ptr<Variable>& variable) {
    const std::lock_guard lock{mutex_};
    if (variables_.size() == forget_at_) {
      std::erase_if(variables_, [](const Numbered& each) { return each.variable.expired(); });
      forget_at_ = 2 * variables_.size() + least_forgotten;
    }
    variables_.push_back({count_++, variable});
  }
  /// How many there were, which is the number of the next one.
  [[nodiscard]] std::uint64_t count() const {
    const std::lock_guard lock{mutex_};
    return count_;
  }
  /// Those that are left from number `first` on.
  [[nodiscard]] std::vector<std::shared_ptr<Variable>> since(std::uint64_t first) const {
    const std::lock_guard lock{mutex_};
    std::vector<std::shared_ptr<Variable>> left;
    for (const Numbered& each : variables_)
      if (each.number >= first)
        if (auto variable = each.variable.lock()) left.push_back(std::move(variable));
    return left;
  }

  // ---- steps ----

  /// Calls `fn()` as a step, or as a part of the step that goes on, and returns what it returns. `wanted` are pulled from the
  /// beginning. Throws ServerUnavailable, StoreError or RpcError.
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
  /// Ends the step that goes on as if its function had returned, and begins another one. Throws InvalidArgument outside a step.
  void next_step(std::span<const std::shared_ptr<Variable>> wanted) {
    const std::lock_guard lock{mutex_};
    require_step("the next step was to begin");
    push();
    forget();
    begin(wanted);
  }

  /// While it lives, variables are those of this process: each is pulled once, sums begin at zero, and nothing is pushed.
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
  /// Whether a step goes on, which this thread makes.
  [[nodiscard]] bool is_in_step() const {
    const std::lock_guard lock{mutex_};
    return phase_ != Phase::none;
  }

  /// Whether that is one of LocalSteps.
  [[nodiscard]] bool is_local() const {
    const std::lock_guard lock{mutex_};
    return phase_ == Phase::local;
  }

  // ---- what steps and others do with a variable ----

  /// Waits until these elements of the copy are there.
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
  /// Says that the step may change the copy, whose elements are there.
  void change(Variable& variable) {
    const std::lock_guard lock{mutex_};
    if (phase_ == Phase::none || variable.has_changed_) return;
    variable.has_changed_ = true;
    changed_.push_back(&variable);
  }
  /// Lets the servers update the elements of `range` with `given[0]`, `given[1]`, …: at once, or when the step ends. The range
  /// begins and ends with shards. Returns whether the caller updates the copy, too.
  template <class E, class Values, class Update>
  bool write(Variable& variable, IndexRange range, const Values& given, const Update& update) {
    const std::lock_guard lock{mutex_};
    if (phase_ == Phase::local) return true;
    const bool at_once = phase_ == Phase::none;
    const Batch<T> batch = at_once ? Batch<T>{*clients_} : pushes_;
    Pushes pushed_alone;
    Pushes& pushed = at_once ? pushed_alone : pushed_;
    const PushOptions options{.first_slot = variable.spec_.array == 0 ? 0 : variable.spec_.array - 1};
    for (const CachedShard& shard : variable.spec_.shards) {
      if (shard.end <= range.begin || shard.begin >= range.end || shard.begin == shard.end) continue;
      DIST_EXPECT(range.begin <= shard.begin && shard.end <= range.end);
      if constexpr (std::is_same_v<Values, dist::detail::Uniform<E>>) {
        pushed.push_back(batch.push_uniform(shard.place, update, given.number, options));
      } else {
        const auto values = std::make_shared<Tensor<E>>(Shape{static_cast<std::size_t>(shard.end - shard.begin)});
        for (std::size_t i = shard.begin; i < shard.end; ++i) (*values)[i - shard.begin] = given[i - range.begin];
        pushed.push_back(batch.push(shard.place, update, values->elements(), options));
        pushed.back().keep(values);
      }
    }
    if (at_once) {
      batch.send();
      wait_for(std::move(pushed));
    }
    return !at_once;
  }
  /// Adds updates of the tensors of some buckets to what leaves, with the `gradients` of the variable, which are lent until
  /// `wait_for_pushes` or the end of the step: `functor_of(tensor)` is the functor for each, whose slots begin at `first_slot`.
  /// Throws InvalidArgument outside a step.
  template <class E, class FunctorOf>
  void push_updates(Variable& variable, IndexRange buckets, std::span<const E> gradients, const FunctorOf& functor_of,
                    std::uint32_t first_slot) {
    const std::lock_guard lock{mutex_};
    require_step("gradients were to be applied");
    for (std::size_t bucket = buckets.begin; bucket < buckets.end; ++bucket)
      for (std::size_t tensor = variable.buckets_[bucket].begin; tensor < variable.buckets_[bucket].end; ++tensor) {
        const auto functor = functor_of(tensor);
        for (std::size_t i = variable.tensors_[tensor].begin; i < variable.tensors_[tensor].end; ++i) {
          const CachedShard& shard = variable.spec_.shards[i];
          pushed_.push_back(pushes_.push(shard.place, functor,
                                         gradients.subspan(static_cast<std::size_t>(shard.begin),
                                                           static_cast<std::size_t>(shard.end - shard.begin)),
                                         {variable.versions_[i], first_slot, max_staleness_}));
        }
      }
  }
  /// Adds updates of the rows of a ServerVariable, which has no copy here.
  template <class Table, class E, class Functor>
  void push_rows(const Table& table, IndexedSlicesView<E> gradient, const Functor& functor, std::uint32_t first_slot) {
    const std::lock_guard lock{mutex_};
    require_step("gradients were to be applied");
    table.add_to(pushes_, pushed_, functor, gradient, {.first_slot = first_slot});
  }
  /// Sends what was added, and does not wait.
  void send_pushes() {
    const std::lock_guard lock{mutex_};
    pushes_.send();
  }
  /// Sends what was added, and waits until the servers have all that was sent.
  void wait_for_pushes() {
    const std::lock_guard lock{mutex_};
    if (pushed_.empty()) return;
    pushes_.send();
    wait_for(std::exchange(pushed_, {}));
  }

  /// How stale the updates were that the shards of a variable have taken, and how many they have refused.
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
  using Pushes = typename Variable::Pushes;
  enum class Phase : std::uint8_t { none, step, local };
  struct Numbered {
    std::uint64_t number;
    std::weak_ptr<Variable> variable;
  };
  static constexpr std::size_t least_forgotten = 64;

  /// Shards on their way, in one message of each server.
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
      // The version is that of the values, also where slots change.
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
    /// Throws ServerUnavailable, StoreError or RpcError, once no message is on its way.
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

  void begin(std::span<const std::shared_ptr<Variable>> wanted) {
    phase_ = Phase::step;
    ++step_;
    start_pulls(wanted, false);
  }
  /// Asks for what has changed, in the order in which layers need it: variables of one bucket and the first tensors of the others
  /// come first.
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
  /// Pushes what the step has changed, and waits for all that it has pushed.
  void push() {
    for (Variable* const variable : changed_)
      if (variable->kind_ == CacheKind::sum || variable->kind_ == CacheKind::state)
        variable->push_copy_(*variable, pushes_, pushed_);
    wait_for_pushes();
  }
  static void wait_for(Pushes pushed) {
    dist::detail::wait_for_all(pushed, [](std::size_t, const auto&) {});
  }
  /// What was changed here is not what the servers have; what is on its way comes again.
  void forget() {
    pulls_.clear();
    for (Variable* const variable : std::exchange(changed_, {})) {
      variable->has_changed_ = false;
      std::fill(variable->versions_.begin(), variable->versions_.end(), unknown_version);
    }
  }
  /// Ends a step, and drops what has not left.
  void end() noexcept {
    if (!pushed_.empty()) pushes_ = Batch<T>{*clients_};
    try {
      wait_for(std::exchange(pushed_, {}));
    } catch (...) {  // not sent, or the step has thrown another error
    }
    forget();
    ++step_;  // a copy of local sums is that of no step
    phase_ = Phase::none;
  }
  void require_step(std::string_view what) const {
    if (phase_ != Phase::step)
      throw InvalidArgument(concat("On a ParameterServer ", what, " outside a step"),
                            phase_ == Phase::local ? "an evaluation or a prediction goes on" : "no function runs",
                            "Call it in a function that a ClusterCoordinator schedules, or in strategy.run");
  }

  const std::shared_ptr<Clients<T>> clients_;
  const std::uint64_t max_staleness_;
  mutable std::recursive_mutex mutex_;
  std::vector<Numbered> variables_;  ///< in the order of their numbers; some may be gone
  std::size_t forget_at_ = least_forgotten;
  std::uint64_t count_ = 0;
  Phase phase_ = Phase::none;
  std::uint64_t step_ = 0;
  std::vector<Pull> pulls_;  ///< on their way, in their order
  Batch<T> pushes_;
  Pushes pushed_;
  std::vector<Variable*> changed_;
};

}  // namespace dist::server
