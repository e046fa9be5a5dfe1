#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/nccl/api.hpp>
#include <dist/comm/nccl/communicators.hpp>
#include <dist/comm/nccl/gpus_of_workers.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cuda/buffer.hpp>
#include <dist/device/cuda/device.cuh>
#include <dist/device/cuda/processors.hpp>
#include <dist/device/cuda/selected_device.hpp>

namespace dist::nccl {

/// Strategy state of NcclAllReduce: for each replica a rank in one NCCL communicator, and scratch memory of its GPU.
/// Waits for the replicas' queues also check the ranks for failures.
class State {
 public:
  /// State of a strategy in one process. Throws InvalidArgument if replicas share a GPU, NcclError, DeadlineExceeded.
  State(const Cuda::Queues& queues, std::size_t replicas) : State(queues, alone(queues, replicas)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  /// Waits for the queues before releasing memory that they use.
  ~State() {
    ranks_.reset();
    for (const auto& member : members_) {
      member->queue.set_watch({});
      try {
        member->queue.wait();
      } catch (const Error&) {  // the GPU is lost with its memory
        cuda::leave_behind(std::move(member->scratch));
      }
    }
  }

  /// The ranks of this process's replicas.
  [[nodiscard]] Communicators& ranks() const noexcept { return *ranks_; }
  /// The number of ranks in all processes, and whether NCCL considers their machines one host.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// True if all ranks are on one host, in NCCL's view.
  [[nodiscard]] bool is_one_host() const noexcept { return is_one_host_; }
  /// Returns uninitialized memory of the replica's GPU for its next collective. Throws OutOfMemory.
  [[nodiscard]] std::byte* scratch(std::size_t replica, std::size_t bytes) const {
    Member& member = *members_[replica];
    if (bytes > member.scratch_bytes) {
      member.queue.wait();  // for work that uses the old memory
      member.scratch_bytes = 0;
      member.scratch = cuda::DeviceBuffer{};
      member.scratch = cuda::DeviceBuffer{devices_[replica], bytes};
      member.scratch_bytes = bytes;
    }
    return member.scratch.data();
  }

 protected:
  /// The ranks of this process's replicas, and their communicator.
  struct Ranks {
    std::vector<int> devices;  ///< GPU of each replica
    ncclUniqueId id;           ///< of the communicator, from worker 0
    std::size_t first;         ///< rank of replica 0
    std::size_t ranks;         ///< in all processes
    bool is_one_host;          ///< true if all ranks are on one host, in NCCL's view
    PeerHealth* health;        ///< checked while waiting; null: within one process
  };

  /// Creates the ranks of `place`, all of them together. Throws NcclError, DeadlineExceeded.
  State(const Cuda::Queues& queues, const Ranks& place)
      : devices_(place.devices), size_(place.ranks), is_one_host_(place.is_one_host) {
    ranks_ = std::make_unique<Communicators>(devices_, place.id, place.first, place.ranks, queues[0].timeout(),
                                             place.health);
    for (std::size_t replica = 0; replica < devices_.size(); ++replica)
      members_.push_back(std::unique_ptr<Member>(new Member{*ranks_, replica, queues[replica], {}, 0}));
    for (const auto& member : members_) member->queue.set_watch({member.get(), &look, &cancel});
  }

  /// Returns the GPU of each replica.
  [[nodiscard]] static std::vector<int> devices_of(const Cuda::Queues& queues, std::size_t replicas) {
    std::vector<int> devices;
    for (std::size_t replica = 0; replica < replicas; ++replica) devices.push_back(queues[replica].stream().device());
    return devices;
  }
  /// Returns a new id for a communicator. Throws NcclError.
  [[nodiscard]] static ncclUniqueId unique_id() {
    ncclUniqueId id{};
    if (const ncclResult_t answer = ncclGetUniqueId(&id); answer != ncclSuccess)
      throw error_of(answer, "ncclGetUniqueId(&id)", "this process");
    return id;
  }

 private:
  struct Member {
    Communicators& ranks;
    std::size_t replica;
    Cuda::Queue queue;
    cuda::DeviceBuffer scratch;
    std::size_t scratch_bytes;
  };

  [[nodiscard]] static Ranks alone(const Cuda::Queues& queues, std::size_t replicas) {
    const std::vector<int> devices = devices_of(queues, replicas);
    for (std::size_t replica = 0; replica < replicas; ++replica)
      for (std::size_t other = 0; other < replica; ++other)
        if (devices[other] == devices[replica])
          throw InvalidArgument(
              concat("Replicas ", other, " and ", replica, " share ",
                     Cuda::device_name(static_cast<std::size_t>(devices[replica]))),
              "NCCL takes one replica on each GPU",
              "Use Mirrored<DirectAllReduce, Cuda>, whose replicas may share GPUs, or name one GPU for each replica");
    require_version();
    return {devices, unique_id(), 0, replicas, true, nullptr};
  }

  static void look(void* self) {
    const auto* const member = static_cast<Member*>(self);
    member->ranks.look(member->replica);
  }
  static void cancel(void* self) noexcept { static_cast<Member*>(self)->ranks.cancel(std::current_exception()); }

  std::vector<int> devices_;
  std::size_t size_;
  bool is_one_host_;
  std::unique_ptr<Communicators> ranks_;
  std::vector<std::unique_ptr<Member>> members_;
};

/// Strategy state of NcclAllReduce in several processes: all their replicas are ranks of one communicator, in rank
/// order. Worker 0 sends its id, with which any process can join, by the workers' own collectives.
class StateOfWorkers : public State {
 public:
  /// A collective call of the workers. Throws InvalidArgument if replicas share a GPU, or NcclError if libraries
  /// differ, on all of them. Throws PeerError if another worker fails to start, NcclError, DeadlineExceeded,
  /// Unavailable.
  template <class Workers, class Replicas>
  StateOfWorkers(const Workers& workers, const Replicas& replicas)
      : State(replicas.queues(), place_among(workers, replicas)) {}

 private:
  template <class Workers, class Replicas>
  [[nodiscard]] static Ranks place_among(const Workers& workers, const Replicas& replicas) {
    const auto& between = workers.between();
    const std::vector<int> devices = devices_of(replicas.queues(), replicas.size());
    std::vector<int> versions(workers.size());
    between.all_gather_values("version of NCCL", library_version(), std::span{versions});
    require_one_version(versions);
    require_version();

    const std::string host = host_key();
    std::vector<GpuOfReplica> gpus(workers.size() * devices.size());
    std::vector<GpuOfReplica> of_workers(workers.size());
    for (std::size_t replica = 0; replica < devices.size(); ++replica) {
      between.all_gather_values("GPUs of the replicas", GpuOfReplica{host, cuda::pci_address(devices[replica])},
                                std::span{of_workers});
      for (std::size_t worker = 0; worker < workers.size(); ++worker)
        gpus[worker * devices.size() + replica] = of_workers[worker];
    }
    require_gpus_of_their_own(gpus, devices.size());

    ncclUniqueId id{};
    if (workers.rank() == 0) id = unique_id();
    between.broadcast(0, std::span{reinterpret_cast<std::uint8_t*>(id.internal), sizeof(id.internal)});
    const bool is_one_host =
        std::all_of(gpus.begin(), gpus.end(), [&](const GpuOfReplica& each) { return each.host == gpus[0].host; });
    return {devices, id, workers.rank() * devices.size(), gpus.size(), is_one_host, &workers.health()};
  }
};

}  // namespace dist::nccl
