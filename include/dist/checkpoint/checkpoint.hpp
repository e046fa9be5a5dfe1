#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/checkpoint/folder.hpp>
#include <dist/checkpoint/leaf.hpp>
#include <dist/context/any_strategy.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>

namespace dist {

/// Options of a Checkpoint.
struct CheckpointOptions {
  /// Timeout for the files of other processes during a save (0: no limit).
  std::chrono::nanoseconds timeout = std::chrono::minutes{10};
};

namespace detail {

class BackgroundSave;
class CheckpointReader;
struct SaveTarget;

/// A type-erased part of a checkpoint.
struct CheckpointPart {
  std::string name;
  void* object;
  void (*walk)(const CheckpointPart&, SeeLeaf);

  /// `Scope` is the scope type of the strategy.
  template <class Scope, class Part>
  [[nodiscard]] static CheckpointPart of(std::string name, Part& part) {
    return {std::move(name), &part, [](const CheckpointPart& any, SeeLeaf see) {
              walk_leaves<Scope>(Named<Part>{any.name, *static_cast<Part*>(any.object)}, see);
            }};
  }

 private:
  template <class Part>
  struct Named {
    std::string_view name;
    Part& part;
    void track(auto& visit) { visit(name, part); }
  };
};

/// The part of Checkpoint that does not depend on the strategy type.
class AnyCheckpoint {
 public:
  /// A save in the background: a Future. Waiting twice is allowed. Destroying the handle does not cancel the save.
  class Saving {
   public:
    /// Waits until the checkpoint is complete; a collective call of the processes. Throws the error of this process's
    /// part, or PeerError for another process.
    void wait() const;
    /// True if this process's part is written; in the first process, true if the checkpoint is complete.
    [[nodiscard]] bool is_done() const noexcept;
    [[nodiscard]] const std::string& path() const noexcept;

   private:
    friend AnyCheckpoint;
    Saving(std::shared_ptr<const AnyStrategy> strategy, std::shared_ptr<BackgroundSave> work,
           std::chrono::nanoseconds timeout)
        : strategy_(std::move(strategy)), work_(std::move(work)), timeout_(timeout) {}

    std::shared_ptr<const AnyStrategy> strategy_;
    std::shared_ptr<BackgroundSave> work_;
    std::chrono::nanoseconds timeout_;
  };

  explicit AnyCheckpoint(std::shared_ptr<const AnyStrategy> strategy, const CheckpointOptions& options = {});
  AnyCheckpoint(const AnyCheckpoint&) = delete;
  AnyCheckpoint& operator=(const AnyCheckpoint&) = delete;
  ~AnyCheckpoint();

  [[nodiscard]] const AnyStrategy& any_strategy() const noexcept { return *strategy_; }
  void add_part(CheckpointPart part);

  /// Saves all parts in the folder `path`, which is created if necessary, and returns when they are on disk. Throws
  /// FileError, without affecting an older checkpoint in the folder; the errors of variable reads; and ShapeMismatch,
  /// before creating files, if a number of the program differs between processes.
  void save(const std::string& path) { start_save(path).wait(); }

  /// Copies all parts, and writes them in the background while the program changes them. A save first waits for the
  /// previous one (`wait`). `then` is called in the first process when the checkpoint is complete, in the writing
  /// thread.
  [[nodiscard]] Saving start_save(const std::string& path, UniqueFunction<void> then = {});

  /// Waits until the last save is done. Throws its error, unless `Saving::wait` has already thrown it.
  void wait();

  /// Restores all parts from the checkpoint in the folder `path`, under any strategy, number of replicas and number of
  /// processes (spec N02 to N07), by the variables' `restore`. Converts numbers if the element type has changed. Keeps
  /// additional tensors for parts that are added later: see `unrestored`.
  ///
  /// Throws FileError if the checkpoint is incomplete or lacks a part that is not MayBeAbsent, and ShapeMismatch if a
  /// part has another shape. All errors are thrown before any part changes.
  void restore(const std::string& path);
  void restore(std::unique_ptr<CheckpointReader> reader);

  /// Returns the keys of the last restored checkpoint that do not belong to any part.
  [[nodiscard]] std::vector<std::string> unrestored() const;

 private:
  struct Pending {
    explicit Pending(std::unique_ptr<CheckpointReader> opened);
    [[nodiscard]] bool has(const std::string& part) const;

    std::unique_ptr<CheckpointReader> reader;
    std::vector<std::string> left;  // keys without a part
  };

  /// Restores the result of `open()`, in all processes or none.
  void restore_from(FunctionRef<std::unique_ptr<CheckpointReader>()> open);
  /// Verifies all bytes before the first part changes.
  void restore_parts(std::span<const CheckpointPart> parts);
  /// Returns the target of a save: an id drawn by the first process, and the folder's next serial number.
  [[nodiscard]] SaveTarget next_place(const std::string& path) const;
  /// Throws WrongStrategy unless all processes have opened the same checkpoint.
  void require_same(std::uint64_t id) const;

  std::shared_ptr<const AnyStrategy> strategy_;
  CheckpointOptions options_;
  std::vector<CheckpointPart> parts_;
  std::optional<Saving> saving_;
  std::optional<Pending> pending_;
};

}  // namespace detail

/// The persistent state of a program, as named parts, and functions to store it in files (spec N):
///
///     dist::Checkpoint checkpoint{strategy};
///     checkpoint.add("model", model).add("epoch", epoch);
///     checkpoint.save("checkpoints/first");
///     …
///     checkpoint.restore("checkpoints/first");  // under any strategy, with any number of replicas and processes
///
/// Parts are Trackable objects, variables, generators, or numbers that are equal in all processes. A checkpoint is a
/// folder that all processes can access, with a safetensors file per process, which divide the tensors among them, and
/// a manifest. Saves are atomic: the manifest is written last, and an older checkpoint in the folder stays valid until
/// then. All bytes have checksums.
///
/// The strategy and the parts must outlive it. `save`, `start_save`, `restore` and `add` are collective calls of the
/// processes, outside replica functions.
template <class S>
class Checkpoint : public detail::AnyCheckpoint {
 public:
  /// A checkpoint of the processes of `strategy`, without parts.
  explicit Checkpoint(S& strategy, const CheckpointOptions& options = {})
      : AnyCheckpoint(std::make_shared<const detail::AnyStrategyOf<S>>(strategy), options), strategy_(strategy) {}

  /// The strategy whose processes call this object.
  [[nodiscard]] S& strategy() const noexcept { return strategy_; }

  /// Adds `part`, which must outlive this object, as `name`. If a restored checkpoint contains that name, `part` is
  /// restored at once (spec N10). Throws InvalidArgument if the name is empty or taken, and the errors of `restore`.
  template <class Part>
  Checkpoint& add(std::string name, Part& part) {
    this->add_part(detail::CheckpointPart::of<decltype(strategy_.scope())>(std::move(name), part));
    return *this;
  }

 private:
  S& strategy_;
};

/// Deduces the strategy.
template <Strategy S>
Checkpoint(S&) -> Checkpoint<S>;
/// Deduces the strategy.
template <Strategy S>
Checkpoint(S&, const CheckpointOptions&) -> Checkpoint<S>;

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/checkpoint/checkpoint.ipp>
#endif
