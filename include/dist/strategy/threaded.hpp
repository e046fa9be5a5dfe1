#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/cluster/lone_process.hpp>
#include <dist/comm/background.hpp>
#include <dist/comm/communication_options.hpp>
#include <dist/comm/make_collectives.hpp>
#include <dist/comm/self.hpp>
#include <dist/comm/thread/communicator.hpp>
#include <dist/context/input_context.hpp>
#include <dist/context/lasting.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/replica_function.hpp>
#include <dist/context/run_here.hpp>
#include <dist/context/select_replica.hpp>
#include <dist/context/structure.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/pointers.hpp>
#include <dist/core/text.hpp>
#include <dist/core/trace_file.hpp>
#include <dist/core/type_name.hpp>
#include <dist/core/warning.hpp>
#include <dist/data/agreement.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/device/device_name.hpp>
#include <dist/device/replica_threads.hpp>
#include <dist/strategy/interface.hpp>

namespace dist {

/// Where the replicas of a strategy run, and how long they wait for each other. Without devices and replicas: one
/// replica on each device that this process may use.
struct ThreadedOptions {
  /// One replica on each of these, in this order (spec A02): {"/cpu:1", "/cpu:0"}. None: `replicas` says how many.
  std::vector<std::string> devices = {};
  /// So many replicas, on the devices that their type places them on (Cpu::placement); more than there are share them.
  std::optional<std::size_t> replicas = std::nullopt;
  /// Whether each replica's thread stays on its device's processor, where there are enough of them.
  bool pinned = true;
  /// How collectives are done. The timeout is also the longest that a thread waits for another's run to end; 10 minutes
  /// where none is chosen.
  CommunicationOptions communication = {};
};

namespace detail {

inline constinit Warning shared_devices{};

/// The devices of the replicas, by number; fewer than replicas when these share them all.
struct ReplicaPlaces {
  std::size_t replicas;
  std::vector<std::size_t> devices;
};

template <class Device>
[[nodiscard]] ReplicaPlaces replica_places(const ThreadedOptions& options) {
  const std::size_t count = Device::count();
  if (!options.devices.empty()) {
    std::vector<std::size_t> devices = devices_named(options.devices, Device::type, count);
    if (options.replicas && *options.replicas != devices.size())
      throw InvalidArgument("A strategy was given devices and another number of replicas",
                            text(devices.size(), " devices, ", *options.replicas, " replicas"),
                            "Give one of the two: each device takes one replica");
    return {devices.size(), std::move(devices)};
  }
  std::vector<std::size_t> devices = Device::placement(options.replicas.value_or(count));
  const std::size_t replicas = options.replicas.value_or(devices.size());
  if (replicas > devices.size() && !shared_devices.was_given())
    shared_devices.give(text(replicas, " replicas share ", devices.size(), devices.size() == 1 ? " device" : " devices",
                             " (", Device::type,
                             "), which makes each of them slower. Leave the number out for one replica on ",
                             "each device. DIST_WARNINGS=0 silences this."));
  return {replicas, std::move(devices)};
}

}  // namespace detail

/// What the strategies with several replicas in a process have in common: a thread per replica, which meet in a
/// ThreadGroup. `Ops` says how they reduce. `CollectivesOfAll` are those of all replicas of the strategy; where there
/// are several processes, `Derived` makes them from those of the process, `collectives_from(of_process)`, and `Workers`
/// are those between the processes.
template <class Derived, class Ops, class DeviceType,
          class CollectivesOfAll = typename Ops::template On<ThreadCommunicator>, class Workers = SelfCollectives>
class Threaded : public StrategyInterface<Derived, DeviceType> {
 public:
  using Device = DeviceType;
  using Collectives = CollectivesOfAll;
  using Context = ReplicaContext<Derived>;
  using Background = BackgroundCollectives<Workers>;
  /// Whether `run` and others return a PerReplica, even of one value (spec C02).
  static constexpr bool wraps_values = true;

  /// While it lives, replica 0's thread is outside replica functions although a run is going on: it merges a call.
  class Merging {
   public:
    explicit Merging(const Derived& strategy) noexcept : guard_({.strategy = &strategy, .is_merging = true}) {}

   private:
    detail::RunGuard guard_;
  };

  [[nodiscard]] std::size_t num_replicas_in_sync() const noexcept { return threads_.size(); }
  [[nodiscard]] std::size_t num_local_replicas() const noexcept { return threads_.size(); }
  [[nodiscard]] static constexpr std::size_t first_local_replica() noexcept { return 0; }
  /// The collectives between its processes, of which there is one.
  [[nodiscard]] static constexpr SelfCollectives workers() noexcept { return {}; }

  /// The streams of work of its replicas in this process.
  [[nodiscard]] const typename Device::Queues& queues() const noexcept { return queues_; }

  /// The options as they were given.
  [[nodiscard]] const CommunicationOptions& communication() const noexcept { return communication_; }

  /// The devices of the replicas, in replica order; replicas that share devices take them in turn (spec D11).
  [[nodiscard]] std::vector<std::string> worker_devices() const {
    std::vector<std::string> names;
    for (const std::size_t device : devices()) names.push_back(Device::device_name(device));
    return names;
  }

  /// Calls `fn(context, args...)` once on every replica's thread (spec C01): a PerReplica argument is sliced, also
  /// inside tuples, pairs, arrays and optionals; anything else is handed to all replicas, which must not change it
  /// without care. What `fn` captures is one object for the replicas of a process, and another one in every other process
  /// of the strategy: what all are to see is a variable, or goes through a collective. Returns the replicas' results as a PerReplica, a tuple of results as a tuple of PerReplicas and so
  /// on (spec C03), or nothing when `fn` returns nothing. A view is returned as `lasting`.
  ///
  /// An exception in a replica stops the others at their next collective and surfaces here as one ReplicaError; that of
  /// another process as a PeerError, and the loss of one as Unavailable. Processes that caught it go on together: a
  /// failure concerns the run in which it happened, and no other. One after the last collective of a run, which others
  /// may have completed, is that process's own affair.
  ///
  /// Processes call `run` equally often where the replica function makes collectives: a collective in a run never meets
  /// one outside, or in another run, and throws CollectiveMismatch where it would. Runs without collectives are each
  /// process's own affair, except between a failure that was caught and the next collective.
  template <class Fn, class... Args>
  auto run(Fn&& fn, Args&&... args) {
    if constexpr (detail::require_replica_function<Fn, Context, Args...>()) {
      const auto call = [&](std::size_t replica) -> decltype(auto) {
        const TraceSpan span{detail::traced("run", derived().first_local_replica() + replica)};
        const detail::RunGuard in_run{{.strategy = &derived()}};
        const typename Device::Queue queue = queues_[replica];
        queue.enter();
        Context context{static_cast<Derived&>(*this),
                        static_cast<Derived&>(*this).collectives_from(
                            detail::make_collectives<Ops, Device>(ThreadCommunicator{group_, replica}, queue, state_)),
                        queue};
        return fn(context, select_replica(replica, args)...);
      };
      using Returned = std::decay_t<decltype(call(0))>;
      using Result = typename decltype(detail::require_lasting_result<Returned>())::type;
      (require_value_per_replica(num_local_replicas(), args), ...);
      this->require_outside_others("run");
      if constexpr (std::is_void_v<Result>) {
        run_all<Fn>(call);
      } else if constexpr (detail::require_place_of_result<Result>()) {
        PerReplica<Result> results(num_local_replicas());
        run_all<Fn>([&](std::size_t replica) { results[replica] = call(replica); });
        return regroup(std::move(results));
      }
    }
  }

  /// Divides every global batch of `dataset` among the replicas and makes the next one ready in the background (spec
  /// C17, I01, I15): a range whose elements `run` slices. `options` say how batches are cut and how many are made
  /// ahead.
  ///
  /// Called once, outside the loop over epochs: each loop over the result is a new epoch, which is shuffled anew (spec
  /// I31). Needs <dist/data.hpp>.
  template <class Dataset, class Options = data::InputOptions>
  [[nodiscard]] auto distribute_dataset(Dataset dataset, const Options& options = {}) const {
    return data::distribute_dataset(std::move(dataset), num_local_replicas(), derived().input_context(), options,
                                    derived().agreement());
  }

  /// A range over what `make(InputContext)` returns, a dataset batched by the per-replica batch, of which each step
  /// takes one batch per replica (spec C18, I17). Nothing is divided, sharded or made ahead. Under Mirrored
  /// `data::PipelinePerReplica{}` calls `make` once for each replica, which then has a dataset of its own (spec I18).
  template <class Make, class Options = data::PipelinePerWorker>
  [[nodiscard]] auto distribute_datasets_from_function(Make&& make, const Options& options = {}) const {
    constexpr bool one_for_all = std::same_as<Options, data::PipelinePerWorker>;
    static_assert(one_for_all || !Derived::Store::shared,
                  "CentralStorage has one input pipeline for all replicas: data::PipelinePerReplica is for Mirrored");
    return data::distribute_datasets_from_function(make, num_local_replicas(), derived().input_context(), options,
                                                   derived().agreement());
  }

  /// The context of the one pipeline that feeds all replicas.
  [[nodiscard]] InputContext input_context() const { return {1, 0, num_replicas_in_sync()}; }
  /// How the end of the data is agreed on: the one process decides.
  [[nodiscard]] static data::NoAgreement agreement() noexcept { return {}; }

  /// What reduces copies of all replicas of this process, and with the other processes, while the replicas compute.
  /// Made at the first call, and again at the first after a failure broke it: outside replica functions, and a
  /// collective call of the processes.
  [[nodiscard]] std::shared_ptr<Background> background() {
    if (is_in_replica_function())
      throw WrongStrategy("strategy.background was called inside a replica function",
                          "it makes something for all replicas and processes",
                          "Make what uses it, such as nn::OverlappedAllReduce, before run");
    if (!background_ || background_->is_broken()) background_ = static_cast<Derived&>(*this).make_background();
    return background_;
  }

 protected:
  [[nodiscard]] static std::shared_ptr<Background> make_background() {
    return std::make_shared<Background>(SelfCollectives{});
  }
  [[nodiscard]] static Collectives collectives_from(const typename Ops::template On<ThreadCommunicator>& of_process) {
    return of_process;
  }
  /// The options for one replica on each of `devices`. Throws InvalidArgument when there is none.
  static ThreadedOptions on_devices(std::vector<std::string> devices) {
    static_cast<void>(devices_named(devices, Device::type, Device::count()));
    ThreadedOptions options;
    options.devices = std::move(devices);
    return options;
  }
  static ThreadedOptions with_replicas(std::size_t replicas) {
    ThreadedOptions options;
    options.replicas = replicas;
    return options;
  }

  /// Throws InvalidArgument for devices or replicas that cannot be, OutOfMemory when the system gives no threads for
  /// them.
  explicit Threaded(const ThreadedOptions& options)
      : places_(detail::replica_places<Device>(options)),
        communication_(checked(options.communication)),
        threads_(places_.replicas, processors(options.pinned), timeout()),
        group_(threads_.status(), threads_.spin_budget(), timeout()),
        queues_(devices(), timeout()),
        state_(queues_, places_.replicas) {
    detail::warn_of_lone_process();
    detail::trace_as_the_environment_asks();
  }
  ~Threaded() = default;

  /// Called where other processes have replicas, too, so that errors number the replica among all.
  void set_replica_ids(std::size_t first, std::size_t in_sync) noexcept { threads_.set_ids(first, in_sync); }

  /// The device of each replica of this process, by number.
  [[nodiscard]] std::vector<std::size_t> devices() const {
    std::vector<std::size_t> devices;
    for (std::size_t replica = 0; replica < places_.replicas; ++replica)
      devices.push_back(places_.devices[replica % places_.devices.size()]);
    return devices;
  }

  friend class StrategyInterface<Derived, DeviceType>;
  /// Whether the calling thread is in a run of this strategy, and in a replica function there.
  [[nodiscard]] bool is_in_run() const noexcept { return threads_.runs_here(); }
  [[nodiscard]] bool is_in_replica_function() const noexcept {
    return detail::run_here.is_replica_function() && detail::run_here.strategy == &derived();
  }

  /// "Mirrored<SharedMemoryAllReduce, Cpu>: 2 replicas on /cpu:0 /cpu:1"
  [[nodiscard]] std::string describe_as(std::string_view type) const {
    std::string line =
        text(type, ": ", num_replicas_in_sync(), num_replicas_in_sync() == 1 ? " replica on" : " replicas on");
    for (const std::size_t device : places_.devices) line += text(" ", Device::device_name(device));
    return line;
  }

 private:
  static constexpr bool has_peers = !CollectivesOfOne<Workers>;

  [[nodiscard]] const Derived& derived() const noexcept { return static_cast<const Derived&>(*this); }

  /// While it lives, the calls of this process are made in a run: the other processes compare that.
  class PlaceInRun {
   public:
    PlaceInRun(const Derived& strategy, std::uint64_t kind) : strategy_(strategy) {
      strategy_.workers().begin_attempt();
      strategy_.workers().communicator().begin_run(kind);
    }
    PlaceInRun(const PlaceInRun&) = delete;
    PlaceInRun& operator=(const PlaceInRun&) = delete;
    ~PlaceInRun() { strategy_.workers().communicator().end_run(); }

   private:
    const Derived& strategy_;
  };
  /// The same in every process that has this function; a hint, as two may share it.
  template <class Fn>
  [[nodiscard]] static constexpr std::uint64_t kind_of() {
    std::uint64_t hash = 0;
    for (const char letter : detail::type_name<Fn>()) hash = hash * 31 + static_cast<unsigned char>(letter);
    return hash;
  }

  template <class Fn, class Task>
  void run_all(Task&& task) {
    [[maybe_unused]] std::optional<std::conditional_t<has_peers, PlaceInRun, bool>> place;
    if constexpr (has_peers) {
      constexpr std::uint64_t kind = kind_of<Fn>();
      if (!is_in_run()) place.emplace(derived(), kind);
    }
    try {
      threads_.run(task, [this] { group_.reset(); });
    } catch (const std::exception& error) {
      const auto* const in_replica = dynamic_cast<const ReplicaError*>(&error);
      if (in_replica == nullptr) throw;
      if constexpr (has_peers) derived().workers().abandon(error);  // they would wait for this process
      // After that, because what has begun may need a peer that waits for this process.
      if (background_) background_->abandon(error);
      if constexpr (has_peers) rethrow_failure_of_peer(in_replica->cause());
      throw;
    }
  }
  /// If a replica only learnt about the failure of another process, that failure is the error.
  static void rethrow_failure_of_peer(const std::exception_ptr& cause) {
    try {
      std::rethrow_exception(cause);
    } catch (const Unavailable&) {
      throw;
    } catch (const PeerError&) {
      throw;
    } catch (...) {
    }
  }

  /// One for each replica, or none when the system is to place them.
  [[nodiscard]] std::vector<std::size_t> processors(bool pinned) const {
    if (!pinned || places_.replicas > ReplicaThreads::most_replicas) return {};  // too many are refused next
    return Device::processors(devices());
  }

  static const CommunicationOptions& checked(const CommunicationOptions& options) {
    if (options.implementation != Implementation::automatic)
      throw InvalidArgument("The options of a strategy ask for an implementation of collectives",
                            "its type says how they are done",
                            "Name the one you want in the type, as in Mirrored<RingAllReduce>");
    return options;
  }

  [[nodiscard]] std::chrono::nanoseconds timeout() const {
    return communication_.timeout.value_or(std::chrono::minutes{10});
  }

  detail::ReplicaPlaces places_;
  CommunicationOptions communication_;
  ReplicaThreads threads_;
  ThreadGroup group_;
  [[no_unique_address]] typename Device::Queues queues_;
  [[no_unique_address]] detail::PolicyState<Ops, Device> state_;
  std::shared_ptr<Background> background_;
};

}  // namespace dist
