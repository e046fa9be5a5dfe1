#pragma once

#include <dist/comm/health/peer_health.hpp>  // process_state
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/server/error.hpp>
#include <dist/server/shard.hpp>

namespace dist::server {

[[gnu::cold]] DIST_INLINE Shard::Shard(std::shared_ptr<StoreMemory> memory, ShardSpec spec, io::ElementType type)
    : memory_(std::move(memory)), found_{std::move(spec), type}, is_own_(true), elements_(elements_of(found_.spec)) {
  const std::uint64_t weights = zeros();
  try {
    found_.state = memory_->take_state();
  } catch (...) {
    release({&weights, 1});
    throw;
  }
  found_.serial = memory_->next_serial();
  state().version = 0;
  state().slots = 0;
  state().staleness = {};
  state().arrays[0] = weights;
  state().serial.store(found_.serial, std::memory_order_release);
  end_change(state());
}
[[gnu::cold]] DIST_INLINE Shard::Shard(std::shared_ptr<StoreMemory> memory, SharedShard found)
    : memory_(std::move(memory)), found_(std::move(found)), is_own_(false), elements_(elements_of(found_.spec)) {}
[[gnu::cold]] DIST_INLINE Shard::~Shard() {
  if (!is_own_) return;
  if (!lock_mutex(longest_wait)) return;  // leaks memory that another process still uses
  begin_change(state());
  state().serial = 0;
  state().changer = 0;
  release(std::span{state().arrays}.first(1 + slots()));
  state().mutex.unlock();
  memory_->give_back_state(found_.state);
}

[[gnu::cold]] DIST_INLINE std::size_t Shard::elements_of(const ShardSpec& spec) {
  std::size_t elements = 0;
  if (__builtin_mul_overflow(spec.rows, spec.row_size, &elements))
    throw StoreError(Problem::no_memory, concat(to_string(spec), " is too large"),
                     concat(spec.rows, " rows of ", spec.row_size, " elements"), "Give a smaller shape");
  return elements;
}

[[gnu::cold]] DIST_INLINE std::uint64_t Shard::zeros() const {
  std::size_t wanted = 0;
  try {
    if (!__builtin_mul_overflow(elements_, io::bytes_of(type()), &wanted)) return memory_->allocate(wanted);
  } catch (const OutOfMemory&) {
  }
  throw StoreError(
      Problem::no_memory, concat(to_string(spec()), " cannot get memory"),
      concat(elements_, " elements of ", io::to_string(type()), " are more than the server's system can provide"),
      "Divide the variable among more parameter servers");
}
[[gnu::cold]] DIST_INLINE void Shard::release(std::span<const std::uint64_t> arrays) const noexcept {
  for (const std::uint64_t array : arrays) memory_->release(array, bytes());
}

DIST_INLINE bool Shard::lock_mutex(std::chrono::nanoseconds longest) const noexcept {
  for (auto left = longest; left.count() > 0; left -= longest_wait_for_stopped) {
    if (state().mutex.lock_for(std::min(left, longest_wait_for_stopped))) return true;
    if (dist::detail::process_state(state().holder) == 'T') return false;
  }
  return false;
}

DIST_INLINE Shard::Locked::Locked(Shard& shard, std::chrono::nanoseconds longest) : shard_(shard) {
  const auto refuse = [&](Problem problem, std::string_view what, std::string_view why, std::string_view suggestion) {
    throw StoreError(problem, concat(to_string(shard.spec()), what), why, suggestion);
  };
  if (!shard.lock_mutex(longest)) {
    const std::int32_t holder = state().holder;
    const bool is_stopped = dist::detail::process_state(holder) == 'T';
    refuse(Problem::in_use, " is in use",
           concat("process ", holder,
                  is_stopped ? " has locked it, and a signal has stopped that process"
                             : concat(" has locked it for ", longest / std::chrono::milliseconds{1}, " ms")),
           is_stopped ? "Let that process continue, or restart the job from its last checkpoint"
                      : "Check what that process does: a debugger may have stopped it");
  }
  const bool is_gone = shard.is_gone();
  const std::int32_t changer = state().changer;
  if (is_gone || changer != 0) {
    state().mutex.unlock();
    if (is_gone) shard.refuse_gone();
    refuse(Problem::half_changed, " is partly updated", concat("process ", changer, " ended during an update"),
           "Restart the job from its last checkpoint");
  }
  state().holder = shard.memory_->process();
}
[[gnu::cold]] DIST_INLINE void Shard::refuse_gone() const {
  throw StoreError(Problem::unknown_shard, concat(to_string(spec()), " no longer exists"), "it was dropped",
                   "Do not use a variable after its destruction");
}
DIST_INLINE ShardMemory Shard::Locked::memory(std::size_t first, std::size_t count) const {
  ShardMemory memory{shard_.type(), shard_.elements_, static_cast<std::size_t>(shard_.spec().row_size),
                     array(0).data()};
  for (std::size_t slot = first; slot < first + count; ++slot) memory.slots.push_back(array(1 + slot).data());
  return memory;
}
DIST_INLINE std::span<std::byte> Shard::Locked::array(std::size_t number) const {
  return shard_.array_at(state().arrays[number]);
}
DIST_INLINE void Shard::Locked::count_push(std::uint64_t behind, bool known) noexcept {
  if (known) state().staleness.count(behind);
  state().version.fetch_add(1, std::memory_order_acq_rel);
}
[[gnu::cold]] DIST_INLINE void Shard::Locked::ensure_slots(
    std::size_t first, std::size_t count,
    dist::detail::FunctionRef<void(std::size_t, std::span<std::byte>)> fill) const {
  if (first > shard_.slots())
    throw StoreError(Problem::wrong_slot, concat(to_string(shard_.spec()), " cannot get slot ", first),
                     concat("it has ", shard_.slots()), "Number slots from 0, without gaps");
  if (count > ShardState::most_slots - std::min(first, ShardState::most_slots))
    throw StoreError(
        Problem::wrong_slot, concat(to_string(shard_.spec()), " cannot get ", count, " slots from number ", first),
        concat("a shard has at most ", ShardState::most_slots), "Store the optimizer's state in fewer slots");
  std::vector<std::uint64_t> made;
  try {
    for (std::size_t slot = shard_.slots(); slot < first + count; ++slot) {
      made.push_back(shard_.zeros());
      fill(slot - first, shard_.array_at(made.back()));
    }
  } catch (...) {
    shard_.release(made);
    throw;
  }
  std::size_t next = 1 + shard_.slots();
  for (const std::uint64_t slot : made) state().arrays[next++] = slot;
  state().slots.store(next - 1, std::memory_order_release);
}

DIST_INLINE std::shared_ptr<Shard> ShardTable::find(ShardId id) const {
  const std::lock_guard lock{mutex_};
  const auto found = shards_.find(id);
  return found == shards_.end() || found->second->is_gone() ? nullptr : found->second;
}
DIST_INLINE std::shared_ptr<Shard> ShardTable::require(ShardId id) {
  std::shared_ptr<Shard> shard = find(id);
  if (shard) return shard;
  if (!find_)
    throw StoreError(Problem::unknown_shard, concat("This server has no shard ", id),
                     "it was not created, or it was dropped",
                     "Use a variable only between its creation and its destruction");
  shard = std::make_shared<Shard>(memory_, find_(id));
  const std::lock_guard lock{mutex_};
  std::erase_if(shards_, [](const auto& entry) { return entry.second->is_gone(); });
  shards_[id] = shard;
  return shard;
}
[[gnu::cold]] DIST_INLINE void ShardTable::add(std::shared_ptr<Shard> shard) {
  const ShardSpec& spec = shard->spec();
  const std::lock_guard lock{mutex_};
  if (!shards_.emplace(spec.id, shard).second) refuse_second(spec);
}
[[gnu::cold]] DIST_INLINE void ShardTable::erase(const std::vector<ShardId>& ids) {
  std::vector<std::shared_ptr<Shard>> erased;  // destroyed without the lock
  const std::lock_guard lock{mutex_};
  for (const ShardId id : ids)
    if (auto node = shards_.extract(id)) erased.push_back(std::move(node.mapped()));
}
[[gnu::cold]] DIST_INLINE std::vector<ShardInfo> ShardTable::list() const {
  std::vector<ShardInfo> all;
  const std::lock_guard lock{mutex_};
  for (const auto& [id, shard] : shards_)
    all.push_back({shard->spec(), shard->type(), shard->slots(), shard->version()});
  return all;
}
DIST_INLINE ShardTable::Published& ShardTable::published() {
  static Published published;
  return published;
}
DIST_INLINE void ShardTable::publish(std::uint64_t store, const std::shared_ptr<ShardTable>& shards) {
  const std::lock_guard lock{published().mutex};
  std::erase_if(published().tables, [](const auto& entry) { return entry.second.expired(); });
  published().tables[store] = shards;
}
[[gnu::cold]] DIST_INLINE std::shared_ptr<ShardTable> ShardTable::of_store(std::uint64_t store) {
  const std::lock_guard lock{published().mutex};
  const auto found = published().tables.find(store);
  return found == published().tables.end() ? nullptr : found->second.lock();
}
[[gnu::cold]] DIST_INLINE void ShardTable::refuse_second(const ShardSpec& spec) {
  throw StoreError(Problem::shard_exists, concat(to_string(spec), " cannot be created"),
                   "the server already has a shard with this number", "Drop that shard first, or take it over");
}

}  // namespace dist::server
