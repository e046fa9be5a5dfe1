#pragma once

#include <unistd.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/checkpoint/background_save.hpp>
#include <dist/checkpoint/checkpoint_reader.hpp>
#include <dist/checkpoint/folder.hpp>
#include <dist/checkpoint/leaf.hpp>
#include <dist/checkpoint/snapshot.hpp>
#include <dist/comm/communication_options.hpp>
#include <dist/context/contexts.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/track.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/io/writable_file.hpp>
#include <dist/net/secret.hpp>

namespace dist {

struct CheckpointOptions {
  /// The longest that a save waits for the files of other processes; 0 waits as long as it takes.
  std::chrono::nanoseconds timeout = std::chrono::minutes{10};
};

namespace detail {

/// A part by itself, under its name: what a walk begins with.
template <class Part>
struct NamedPart {
  std::string_view name;
  Part& part;
  void track(auto& visit) { visit(name, part); }
};

}  // namespace detail

/// All that is to outlive a run, by names, and the verbs that keep it in files (spec N):
///
///     dist::Checkpoint checkpoint{strategy};
///     checkpoint.add("model", model).add("epoch", epoch);
///     checkpoint.save("checkpoints/first");
///     …
///     checkpoint.restore("checkpoints/first");  // under any strategy, with any number of replicas and processes
///
/// Parts are Trackable, variables, generators, or numbers of the program, which are the same in all processes. A
/// checkpoint is a folder with a safetensors file from each process, which share the tensors out, and a manifest; all
/// processes reach the folder. It is complete or not there at all: the manifest comes last, and a save in the place of an
/// older checkpoint leaves that one until then. Every byte is under a checksum.
///
/// Refers to the strategy and the parts. `save`, `start_save`, `restore` and `add` are collective calls of the processes,
/// outside replica functions.
template <class S>
class Checkpoint {
  using Scope = decltype(std::declval<S&>().scope());

 public:
  /// A save that goes on in the background: a Future, which may be waited for twice. A handle that goes ends nothing.
  class Saving {
   public:
    /// Waits until the checkpoint is complete; a collective call of the processes. Throws what kept it from being so in
    /// this process, and PeerError for what did in another one.
    void wait() const {
      work_->set_awaited();  // in all processes, whatever becomes of it
      const CommunicationOptions waiting{.timeout = timeout_};
      detail::run_collectively(*strategy_, waiting, [&](const auto& workers) {
        try {
          // All know that all have written their files, or which process is gone, before the first one looks for them.
          work_->wait_for_file();
          if (work_->is_failed()) work_->wait();
          workers.communicator().barrier();
          work_->wait();
          workers.communicator().barrier();
        } catch (...) {
          work_->cancel();
          throw;
        }
      });
    }
    /// Whether this process's part is written; in the first process, whether the checkpoint is complete.
    [[nodiscard]] bool is_done() const noexcept { return work_->is_done(); }
    [[nodiscard]] const std::string& path() const noexcept { return work_->folder(); }

   private:
    friend Checkpoint;
    Saving(S& strategy, std::shared_ptr<detail::BackgroundSave> work, std::chrono::nanoseconds timeout)
        : strategy_(&strategy), work_(std::move(work)), timeout_(timeout) {}

    S* strategy_;
    std::shared_ptr<detail::BackgroundSave> work_;
    std::chrono::nanoseconds timeout_;
  };

  explicit Checkpoint(S& strategy, const CheckpointOptions& options = {}) : strategy_(strategy), options_(options) {}
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  [[nodiscard]] S& strategy() const noexcept { return strategy_; }

  /// Keeps `part`, which must outlive this, under `name` from here on. Where a checkpoint was restored that has something
  /// of that name, `part` is restored from it now: what is made later than the rest gets its values when it is there (spec
  /// N10). Throws InvalidArgument for a name that is taken or empty, and as `restore` does.
  template <class Part>
  Checkpoint& add(std::string name, Part& part) {
    for (const Named& each : parts_)
      if (each.name == name)
        throw InvalidArgument(concat("Two parts of a checkpoint are named ", quoted(name)),
                              "one would take the place of the other", "Give one of them another name");
    if (name.empty() || name.find('/') != std::string::npos)
      throw InvalidArgument(
          "A part of a checkpoint has a name that none can have",
          concat(name.empty() ? "it is empty" : "a '/' stands between the names of parts in parts", ": ", quoted(name)),
          "Give it one without '/', such as \"model\"");
    parts_.push_back({std::move(name), &part, &save_part<Part>, &check_part<Part>, &restore_part<Part>});
    if (pending_ && pending_->has(parts_.back().name)) restore_parts({&parts_.back(), 1});
    return *this;
  }

  /// Saves all parts in the folder `path`, which is made where it is missing, and returns when they are on the disk. Throws
  /// FileError, which leaves an older checkpoint in that place as it was, and as the reads of variables do; ShapeMismatch,
  /// before any file is made, if a number of the program differs between processes.
  void save(const std::string& path) { start_save(path).wait(); }

  /// Takes all parts as they are now, and writes them in the background, while the program goes on and changes them. One
  /// save at a time: a next one waits for this one first (`wait`). `then` is called in the first process, when the
  /// checkpoint is complete, by the thread that wrote it.
  [[nodiscard]] Saving start_save(const std::string& path, detail::UniqueFunction<void> then = {}) {
    wait();
    auto work = detail::run_collectively(strategy_, [&] {
      detail::Snapshot snapshot{strategy_.worker_rank(), strategy_.num_workers()};
      auto scope = strategy_.scope();
      for (const Named& part : parts_) part.save(part, scope, snapshot);
      detail::require_equal_numbers(strategy_.workers(), snapshot.numbers());
      return std::make_shared<detail::BackgroundSave>(next_place(detail::without_slashes(path)), std::move(snapshot),
                                                      std::move(then));
    });
    saving_.emplace(Saving{strategy_, std::move(work), options_.timeout});
    return *saving_;
  }

  /// Waits until nothing is written any more. Throws what kept the last save from being written, unless the program has
  /// waited for it.
  void wait() {
    const std::optional<Saving> last = std::exchange(saving_, std::nullopt);
    if (last && !last->work_->is_awaited()) last->wait();
  }

  /// Gives all parts what they had when the checkpoint in the folder `path` was saved, under whatever strategy, number of
  /// replicas and number of processes: N02 to N07 of the spec say how, the variable's `restore` does it. Numbers are
  /// converted where the type of an element has changed. What the checkpoint has besides is kept for parts that are added
  /// later: see `unrestored`.
  ///
  /// Throws FileError where the checkpoint is not whole, and for a part that is not in it and not MayBeAbsent, and ShapeMismatch for one of
  /// another shape: before it changes any part.
  void restore(const std::string& path) {
    restore_from([&] { return std::make_unique<detail::CheckpointReader>(path); });
  }
  /// The same, of a checkpoint that was opened already.
  void restore(std::unique_ptr<detail::CheckpointReader> reader) {
    restore_from([&] { return std::move(reader); });
  }

  /// What the checkpoint that was restored last has, and no part has taken.
  [[nodiscard]] std::vector<std::string> unrestored() const {
    return pending_ ? pending_->left : std::vector<std::string>{};
  }

 private:
  /// A part, whatever its type.
  struct Named {
    std::string name;
    void* object;
    void (*save)(const Named&, Scope&, detail::Snapshot&);
    void (*check)(const Named&, const detail::CheckpointReader&);
    void (*restore)(const Named&, Scope&, const detail::CheckpointReader&, std::vector<std::string>& taken);
  };
  /// A checkpoint that was restored, for parts to come.
  struct Pending {
    explicit Pending(std::unique_ptr<detail::CheckpointReader> opened)
        : reader(std::move(opened)), left(reader->keys()) {}
    [[nodiscard]] bool has(const std::string& part) const {
      return std::any_of(left.begin(), left.end(), [&](const std::string& key) {
        return key == part || (key.starts_with(part) && key[part.size()] == '/');
      });
    }
    std::unique_ptr<detail::CheckpointReader> reader;
    std::vector<std::string> left;  // the keys that no part has taken
  };

  template <class Part, class See>
  static void walk_part(const Named& named, const See& see) {
    walk(detail::NamedPart<Part>{named.name, *static_cast<Part*>(named.object)}, see);
  }
  template <class Part>
  static void save_part(const Named& named, Scope& scope, detail::Snapshot& snapshot) {
    walk_part<Part>(named, [&](std::string_view key, auto& leaf) { detail::save_leaf(key, leaf, scope, snapshot); });
  }
  template <class Part>
  static void check_part(const Named& named, const detail::CheckpointReader& reader) {
    walk_part<Part>(named, [&]<class Leaf>(std::string_view key, Leaf& leaf, bool is_optional) {
      const io::SafetensorsEntry* const saved = reader.find(key);
      if (saved == nullptr && is_optional) return;
      if (saved == nullptr)
        throw FileError(reader.folder(), concat("is a checkpoint without ", quoted(key)),
                        io::listed_names(reader.keys()), "Restore it into what it was saved from");
      const auto require_shape = [&](const Shape& shape) {
        if (saved->shape != shape)
          throw ShapeMismatch(concat(quoted(key), " has another shape than in the checkpoint ", reader.folder()),
                              concat("it is ", to_string(shape), ", and ", to_string(saved->shape), " was saved"),
                              "Restore it into what it was saved from");
      };
      if constexpr (detail::WholeLeaf<Leaf, Scope>) {
        if constexpr (detail::ChecksShape<Leaf>)
          leaf.require_restorable(saved->shape);
        else
          require_shape(leaf.shape());
        using T = detail::LeafElement<Leaf, Scope>;
        if (saved->type != io::element_type<T>) static_cast<void>(reader.read<T>(key));  // every number fits
      } else if constexpr (detail::require_number<Leaf>()) {
        require_shape(Shape{});
        static_cast<void>(reader.read<Leaf>(key));
      }
    });
  }
  template <class Part>
  static void restore_part(const Named& named, Scope& scope, const detail::CheckpointReader& reader,
                           std::vector<std::string>& taken) {
    walk_part<Part>(named, [&]<class Leaf>(std::string_view key, Leaf& leaf, bool) {
      if (reader.find(key) == nullptr) return;  // of a part that may be absent
      detail::restore_leaf(leaf, scope, reader.read<detail::LeafElement<Leaf, Scope>>(key));
      taken.emplace_back(key);
    });
  }

  /// Restores what `open()` returns, in all processes or in none.
  template <class Open>
  void restore_from(const Open& open) {
    detail::run_collectively(strategy_, [&] {
      auto reader = open();
      require_same(reader->manifest().id);
      pending_.emplace(std::move(reader));
    });
    restore_parts(parts_);
  }
  /// All bytes are looked at before the first part changes.
  void restore_parts(std::span<const Named> parts) {
    const CommunicationOptions waiting{.timeout = options_.timeout};
    detail::run_collectively(strategy_, waiting, [&](const auto& workers) {
      detail::CheckpointReader& reader = *pending_->reader;
      for (const Named& part : parts) part.check(part, reader);
      reader.verify();
      workers.communicator().barrier();  // nobody begins before all have looked
    });
    std::vector<std::string> taken;
    detail::run_collectively(strategy_, [&] {
      auto scope = strategy_.scope();
      for (const Named& part : parts) part.restore(part, scope, *pending_->reader, taken);
    });
    std::erase_if(pending_->left,
                  [&](const std::string& key) { return std::find(taken.begin(), taken.end(), key) != taken.end(); });
  }

  /// The number of a save, which the first process draws, and the next serial number in the folder.
  [[nodiscard]] detail::SaveTarget next_place(const std::string& path) const {
    std::uint64_t numbers[2] = {};
    detail::SaveTarget place{.folder = path, .timeout = options_.timeout};
    if (strategy_.is_chief()) {
      io::make_folders(path);
      numbers[0] = net::random_number() >> 1;  // positive as a signed number, too
      const auto others = detail::checkpoints_in(detail::folder_of(path));
      numbers[1] = others.empty() ? 1 : others.back().serial + 1;
      place.id = numbers[0];
      if (strategy_.num_workers() > 1) io::WritableFile{place.begun_path()}.close();
    }
    strategy_.workers().broadcast(0, std::span<std::uint64_t>{numbers});
    place.id = numbers[0];
    place.serial = numbers[1];
    if (strategy_.num_workers() > 1 && ::access(place.begun_path().c_str(), F_OK) != 0)
      throw FileError(
          path, "is another folder than that of the first process",
          concat("process ", strategy_.worker_rank(), " does not see there what the first process has just made"),
          "Give a folder that all processes share");
    strategy_.workers().communicator().barrier();  // none goes on where another one cannot
    return place;
  }
  /// All processes have opened the same checkpoint.
  void require_same(std::uint64_t id) const {
    std::uint64_t largest[2] = {id, ~id};
    strategy_.workers().all_reduce(max, std::span<std::uint64_t>{largest});
    if (largest[0] != ~largest[1])
      throw WrongStrategy(
          "Processes restore different checkpoints",
          concat("process ", strategy_.worker_rank(), " has the one of save ", id, ", and others have another one"),
          "Let all of them restore the same path, in a folder that they share");
  }

  S& strategy_;
  CheckpointOptions options_;
  std::vector<Named> parts_;
  std::optional<Saving> saving_;
  std::optional<Pending> pending_;
};

template <Strategy S>
Checkpoint(S&) -> Checkpoint<S>;
template <Strategy S>
Checkpoint(S&, const CheckpointOptions&) -> Checkpoint<S>;

}  // namespace dist
