#pragma once

#include <unistd.h>

#include <dist/checkpoint/background_save.hpp>
#include <dist/checkpoint/checkpoint.hpp>
#include <dist/checkpoint/checkpoint_reader.hpp>
#include <dist/checkpoint/folder.hpp>
#include <dist/checkpoint/snapshot.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/io/writable_file.hpp>
#include <dist/net/secret.hpp>

namespace dist::detail {

DIST_INLINE void AnyCheckpoint::Saving::wait() const {
  work_->set_awaited();  // in all processes, even on failure
  strategy_->run_collectively({.timeout = timeout_}, [&](AnyStrategy::Barrier barrier) {
    try {
      // First ensures that all processes have written their files, or detects a lost one, before the first process
      // polls.
      work_->wait_for_file();
      if (work_->is_failed()) work_->wait();
      barrier();
      work_->wait();
      barrier();
    } catch (...) {
      work_->cancel();
      throw;
    }
  });
}

DIST_INLINE bool AnyCheckpoint::Saving::is_done() const noexcept { return work_->is_done(); }
DIST_INLINE const std::string& AnyCheckpoint::Saving::path() const noexcept { return work_->folder(); }

DIST_INLINE AnyCheckpoint::AnyCheckpoint(std::shared_ptr<const AnyStrategy> strategy, const CheckpointOptions& options)
    : strategy_(std::move(strategy)), options_(options) {}

DIST_INLINE_DEFAULT AnyCheckpoint::~AnyCheckpoint() = default;

DIST_INLINE void AnyCheckpoint::add_part(CheckpointPart part) {
  const std::string& name = part.name;
  for (const CheckpointPart& each : parts_)
    if (each.name == name)
      throw InvalidArgument(concat("Two parts of a checkpoint are named ", quoted(name)), "one would replace the other",
                            "Rename one of them");
  if (name.empty() || name.find('/') != std::string::npos)
    throw InvalidArgument(
        "The name of a part of a checkpoint is not valid",
        concat(name.empty() ? "it is empty" : "a '/' separates the names of nested parts", ": ", quoted(name)),
        "Use a name without '/', such as \"model\"");
  parts_.push_back(std::move(part));
  if (pending_ && pending_->has(parts_.back().name)) restore_parts({&parts_.back(), 1});
}

DIST_INLINE auto AnyCheckpoint::start_save(const std::string& path, UniqueFunction<void> then) -> Saving {
  wait();
  std::shared_ptr<BackgroundSave> work;
  strategy_->run_collectively([&] {
    Snapshot snapshot{strategy_->worker_rank(), strategy_->num_workers()};
    strategy_->in_scope([&](const void* scope) {
      for (const CheckpointPart& part : parts_)
        part.walk(part, [&](std::string_view key, AnyLeaf& leaf, bool) { save_leaf(key, leaf, scope, snapshot); });
    });
    require_equal_numbers(*strategy_, snapshot.numbers());
    work = std::make_shared<BackgroundSave>(next_place(without_slashes(path)), std::move(snapshot), std::move(then));
  });
  saving_.emplace(Saving{strategy_, std::move(work), options_.timeout});
  return *saving_;
}

DIST_INLINE void AnyCheckpoint::wait() {
  const std::optional<Saving> last = std::exchange(saving_, std::nullopt);
  if (last && !last->work_->is_awaited()) last->wait();
}

DIST_INLINE void AnyCheckpoint::restore(const std::string& path) {
  restore_from([&] { return std::make_unique<CheckpointReader>(path); });
}

DIST_INLINE void AnyCheckpoint::restore(std::unique_ptr<CheckpointReader> reader) {
  restore_from([&] { return std::move(reader); });
}

DIST_INLINE std::vector<std::string> AnyCheckpoint::unrestored() const {
  return pending_ ? pending_->left : std::vector<std::string>{};
}

DIST_INLINE AnyCheckpoint::Pending::Pending(std::unique_ptr<CheckpointReader> opened)
    : reader(std::move(opened)), left(reader->keys()) {}

DIST_INLINE bool AnyCheckpoint::Pending::has(const std::string& part) const {
  return std::any_of(left.begin(), left.end(), [&](const std::string& key) {
    return key == part || (key.starts_with(part) && key[part.size()] == '/');
  });
}

DIST_INLINE void AnyCheckpoint::restore_from(FunctionRef<std::unique_ptr<CheckpointReader>()> open) {
  strategy_->run_collectively([&] {
    auto reader = open();
    require_same(reader->manifest().id);
    pending_.emplace(std::move(reader));
  });
  restore_parts(parts_);
}

DIST_INLINE void AnyCheckpoint::restore_parts(std::span<const CheckpointPart> parts) {
  CheckpointReader& reader = *pending_->reader;
  strategy_->run_collectively({.timeout = options_.timeout}, [&](AnyStrategy::Barrier barrier) {
    for (const CheckpointPart& part : parts)
      part.walk(part,
                [&](std::string_view key, AnyLeaf& leaf, bool is_optional) { reader.check(key, leaf, is_optional); });
    reader.verify();
    barrier();  // no process begins before all have checked
  });
  std::vector<std::string> taken;
  strategy_->run_collectively([&] {
    strategy_->in_scope([&](const void* scope) {
      for (const CheckpointPart& part : parts)
        part.walk(part, [&](std::string_view key, AnyLeaf& leaf, bool) {
          if (reader.restore(key, leaf, scope)) taken.emplace_back(key);
        });
    });
  });
  std::erase_if(pending_->left,
                [&](const std::string& key) { return std::find(taken.begin(), taken.end(), key) != taken.end(); });
}

DIST_INLINE SaveTarget AnyCheckpoint::next_place(const std::string& path) const {
  std::uint64_t numbers[2] = {};
  SaveTarget place{.folder = path, .timeout = options_.timeout};
  if (strategy_->is_chief()) {
    io::make_folders(path);
    numbers[0] = net::random_number() >> 1;  // non-negative as a signed number
    const auto others = checkpoints_in(folder_of(path));
    numbers[1] = others.empty() ? 1 : others.back().serial + 1;
    place.id = numbers[0];
    if (strategy_->num_workers() > 1) io::WritableFile{place.begun_path()}.close();
  }
  strategy_->broadcast(numbers);
  place.id = numbers[0];
  place.serial = numbers[1];
  if (strategy_->num_workers() > 1 && ::access(place.begun_path().c_str(), F_OK) != 0)
    throw FileError(path, "is not the folder that the first process uses",
                    concat("process ", strategy_->worker_rank(),
                           " does not see the file that the first process has just created there"),
                    "Use a folder that all processes share");
  strategy_->barrier();  // no process continues unless all can
  return place;
}

DIST_INLINE void AnyCheckpoint::require_same(std::uint64_t id) const {
  std::uint64_t largest[2] = {id, ~id};
  strategy_->all_reduce_max(largest);
  if (largest[0] != ~largest[1])
    throw WrongStrategy("Processes restore different checkpoints",
                        concat("process ", strategy_->worker_rank(), " has the checkpoint of save ", id,
                               ", but other processes have a different one"),
                        "Restore the same path in all processes, in a folder that they share");
}

}  // namespace dist::detail
