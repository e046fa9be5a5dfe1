#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/comm/direct/reduce_directly.hpp>
#include <dist/comm/element_update.hpp>
#include <dist/comm/even_shards.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/comm/nccl/api.hpp>
#include <dist/comm/nccl/lsa.cuh>
#include <dist/comm/nccl/nccl_all_reduce.cuh>
#include <dist/comm/nccl/reduction.hpp>
#include <dist/comm/nccl/symmetric_memory.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/device/cuda/buffer.hpp>
#include <dist/device/cuda/device.cuh>
#include <dist/device/cuda/selected_device.hpp>
#include <dist/device/cuda/wait.hpp>

namespace dist {

namespace nccl {

/// Windows through which a strategy's GPUs access the memory of all replicas, and each replica's state for them.
class Windows {
 public:
  /// Maximum number of ranks with windows.
  static constexpr std::size_t most_ranks = SymmetricMemory::most_ranks;
  static_assert(most_ranks == ::dist::detail::most_direct_replicas);

  /// Windows of this process's `replicas` replicas. `state` and `queues` must outlive them.
  Windows(const State& state, const Cuda::Queues& queues, std::size_t replicas)
      : state_(state), memory_(std::make_shared<SymmetricMemory>(state.ranks(), replicas, queues[0].timeout())) {
    for (std::size_t replica = 0; replica < replicas; ++replica)
      members_.push_back(std::make_unique<Member>(queues[replica]));
    const auto stop = [](ncclComm_t rank) { return ncclCommRevoke(rank, NCCL_REVOKE_DEFAULT); };
    const auto await = [](void* self) noexcept { return static_cast<Windows*>(self)->are_queues_done(); };
    state.ranks().set_users({this, stop, await});
  }
  Windows(const Windows&) = delete;
  Windows& operator=(const Windows&) = delete;
  /// Waits for the GPUs before the windows end. Other ranks finish their work in this memory within each collective.
  ~Windows() {
    for (const auto& member : members_)
      if (!is_over(member->queue)) {
        member->queue.set_watch({});  // which would throw the failure of the ranks again
        if (!is_over(member->queue)) cuda::leave_behind(std::move(member->room));  // the GPU is lost
      }
    memory_->leave_ranks();
    state_.ranks().set_users({});
  }

  /// The memory that windows consist of.
  [[nodiscard]] const std::shared_ptr<SymmetricMemory>& memory() const noexcept { return memory_; }

  /// True if windows are impossible. All replicas know this without querying NCCL, which would look for GPU-initiated
  /// networking between nodes.
  [[nodiscard]] bool are_excluded() const noexcept { return state_.size() > most_ranks || !state_.is_one_host(); }
  /// True if the GPUs access each other's memory, as NCCL reports to this replica. All replicas call it once.
  [[nodiscard]] bool are_possible(std::size_t replica) const {
    ncclDevComm& device = members_[replica]->device;
    const auto timeout = members_[replica]->queue.timeout();
    bool is_refused = false;
    state_.ranks().call(replica, "ncclDevCommCreate", timeout, [&](ncclComm_t comm) {
      const ncclDevCommRequirements requirements = no_requirements();
      const ncclResult_t answer = ncclDevCommCreate(comm, &requirements, &device);
      is_refused = answer == ncclInvalidUsage;
      return is_refused ? ncclSuccess : answer;
    });
    if (is_refused) return false;
    state_.ranks().call(replica, "ncclDevCommDestroy", timeout,
                        [&](ncclComm_t comm) { return ncclDevCommDestroy(comm, &device); });
    return static_cast<std::size_t>(device.lsaSize) == state_.size();
  }
  /// Stores the common answer of all replicas.
  void note(std::size_t replica, bool are_possible) const { members_[replica]->are_possible = are_possible; }
  /// Returns the common answer; empty: unknown yet.
  [[nodiscard]] std::optional<bool> noted(std::size_t replica) const { return members_[replica]->are_possible; }

  /// Creates the window of `operand` if it does not exist (see SymmetricMemory). The host waits for the replica's GPU.
  void join(std::size_t replica, const void* operand) const {
    const Member& member = *members_[replica];
    memory_->join_window(replica, operand, [&](ncclWindow_t window) {
      auto* const first = reinterpret_cast<std::byte**>(room_of(replica) + room_for_flag);
      state_.ranks().use(replica, [&] { member.queue.for_each({0, state_.size()}, FindWindow{window, first}); });
      std::array<std::byte*, most_ranks> found{};
      member.queue.copy(Cuda::Span<std::byte* const>{first, state_.size()}, std::span{found}.first(state_.size()));
      member.queue.wait();
      return found;
    });
  }
  /// Calls `put()`, which launches a kernel on the replica's GPU that uses windows.
  template <class Put>
  void use(std::size_t replica, Put&& put) const {
    state_.ranks().use(replica, put);
  }
  /// Returns a zero in the memory of the replica's GPU, which an all-reduce keeps zero.
  [[nodiscard]] std::int32_t* flag(std::size_t replica) const {
    return reinterpret_cast<std::int32_t*>(room_of(replica));
  }

 private:
  static constexpr std::size_t room_for_flag = 256;

  struct Member {
    explicit Member(const Cuda::Queue& of) : queue(of) {}
    Cuda::Queue queue;
    std::optional<bool> are_possible;  // common answer of all replicas
    ncclDevComm device{};              // NCCL may write it while the rank exists
    cuda::DeviceBuffer room;
  };

  [[nodiscard]] static bool is_over(const Cuda::Queue& queue) noexcept {
    try {
      queue.wait();
      return true;
    } catch (const Error&) {
      return false;
    }
  }
  /// Thread-safe. Waits at most the timeout of a queue for each GPU.
  [[nodiscard]] bool are_queues_done() const noexcept {
    try {
      for (const auto& member : members_)
        cuda::await([&] { return member->queue.stream().is_done(); }, [] { return "a GPU"; }, member->queue.timeout());
      return true;
    } catch (const Error&) {
      return false;
    }
  }
  /// Allocated by the replica's thread, at its first call.
  [[nodiscard]] std::byte* room_of(std::size_t replica) const {
    Member& member = *members_[replica];
    if (member.room.data() == nullptr) {
      member.room = cuda::DeviceBuffer{member.queue.stream().device(), room_for_flag + most_ranks * sizeof(std::byte*)};
      member.queue.fill(Cuda::Span<std::int32_t>{reinterpret_cast<std::int32_t*>(member.room.data()), 1}, 0);
    }
    return member.room.data();
  }

  const State& state_;
  std::shared_ptr<SymmetricMemory> memory_;
  std::vector<std::unique_ptr<Member>> members_;
};

/// `Base`, the strategy state of NcclAllReduce, with windows.
template <class Base>
class WithWindows : public Base {
 public:
  /// The state of a strategy within one process.
  WithWindows(const Cuda::Queues& queues, std::size_t replicas)
      : Base(queues, replicas), windows_(*this, queues, replicas) {}
  /// The state of a strategy of several workers.
  template <class Workers, class Replicas>
  WithWindows(const Workers& workers, const Replicas& replicas)
      : Base(workers, replicas), windows_(*this, replicas.queues(), replicas.size()) {}

  /// The windows of all replicas.
  [[nodiscard]] const Windows& windows() const noexcept { return windows_; }
  /// The memory source of the replicas.
  [[nodiscard]] std::shared_ptr<cuda::MemorySource> memory_source() const noexcept { return windows_.memory(); }

 private:
  Windows windows_;
};

/// NCCL collectives with fused updates by one kernel per GPU, which reads all gradients and writes all mirrors, if
/// windows reach them.
template <class Host>
class SymmetricCollectives : public Collectives<Host> {
  using Base = Collectives<Host>;
  template <class T>
  using Span = Cuda::Span<T>;

 public:
  /// The collectives of the replica with this queue. Waits of the host end after `timeout`.
  template <class S>
  SymmetricCollectives(Host host, const Cuda::Queue& queue, const WithWindows<S>& state,
                       std::chrono::nanoseconds timeout)
      : SymmetricCollectives(Base{std::move(host), queue, state, timeout}, state.windows()) {}
  /// The collectives of member `comm`, with the timeout of the queue.
  template <class C, class S>
  SymmetricCollectives(C comm, const Cuda::Queue& queue, const WithWindows<S>& state)
      : SymmetricCollectives(Base{comm, queue, state}, state.windows()) {}

  [[nodiscard]] SymmetricCollectives with_timeout(std::chrono::nanoseconds timeout) const {
    return {Base::with_timeout(timeout), *windows_};
  }

  using Base::reduce_and_apply;
  template <class T, ReduceOp<T> Op, ElementUpdate<T> Update>
  void reduce_and_apply(Op, Span<const T> gradient, Span<T> mirror, const Update& update) const {
    if constexpr (require_reduction<T, Op>())
      this->together(this->template call_of<T, Op>("reduce_and_apply", mirror.size()), [&] {
        const std::optional<Operands> all = find_operands(gradient.data(), mirror.data(), mirror.size());
        if (all)
          put_directly<Op, T>(*all, mirror.size(), update);
        else
          this->template put_in_steps<Op>(gradient, mirror, update);
      });
  }

 private:
  static constexpr std::size_t most_ranks = Windows::most_ranks;

  /// Locations of a replica's operands, as the replicas exchange them.
  struct Places {
    SymmetricMemory::Location gradient;
    SymmetricMemory::Location mirror;
    std::uint64_t are_in_one;  ///< true if both are in one allocation

    [[nodiscard]] bool are_in_windows_with(const Places& other) const {
      return gradient.allocation_bytes != 0 && mirror.allocation_bytes != 0 && are_in_one == other.are_in_one &&
             gradient.allocation_bytes == other.gradient.allocation_bytes && gradient.window == other.gradient.window &&
             mirror.allocation_bytes == other.mirror.allocation_bytes && mirror.window == other.mirror.window;
    }
  };
  /// Addresses of all replicas' operands for this replica's GPU.
  struct Operands {
    std::array<std::byte*, most_ranks> gradients;
    std::array<std::byte*, most_ranks> mirrors;
  };

  SymmetricCollectives(Base base, const Windows& windows) : Base(std::move(base)), windows_(&windows) {}

  /// Returns std::nullopt if the replicas' operands cannot be in common windows. All replicas decide alike, from
  /// exchanged locations: operands are parts of allocations in the same window, or all in none yet.
  [[nodiscard]] std::optional<Operands> find_operands(const void* gradient, const void* mirror,
                                                      std::size_t elements) const {
    const std::size_t here = this->here();
    if (elements == 0 || windows_->are_excluded() || !are_windows_possible()) return std::nullopt;
    SymmetricMemory& memory = *windows_->memory();
    const SymmetricMemory::Location of_gradient = memory.place_of(here, gradient),
                                    of_mirror = memory.place_of(here, mirror);
    const bool are_in_one = static_cast<const std::byte*>(gradient) - of_gradient.offset ==
                            static_cast<const std::byte*>(mirror) - of_mirror.offset;
    const Places mine{of_gradient, of_mirror, are_in_one};
    std::array<Places, most_ranks> all;
    this->all_gather_values("operands in windows", mine, std::span{all}.first(this->size()));
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(this->size());
    if (!std::all_of(all.begin(), end, [&](const Places& each) { return each.are_in_windows_with(all[0]); }))
      return std::nullopt;
    windows_->join(here, gradient);
    windows_->join(here, mirror);
    Operands operands{memory.peers_of(here, gradient), memory.peers_of(here, mirror)};
    for (std::size_t rank = 0; rank < this->size(); ++rank) {
      operands.gradients[rank] += all[rank].gradient.offset;
      operands.mirrors[rank] += all[rank].mirror.offset;
    }
    return operands;
  }
  [[nodiscard]] bool are_windows_possible() const {
    const std::size_t here = this->here();
    if (const std::optional<bool> noted = windows_->noted(here)) return *noted;
    std::array<std::uint8_t, most_ranks> all{};
    this->all_gather_values("windows of NCCL", static_cast<std::uint8_t>(windows_->are_possible(here)),
                            std::span{all}.first(this->size()));
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(this->size());
    const bool are_possible = std::find(all.begin(), end, std::uint8_t{0}) == end;
    windows_->note(here, are_possible);
    return are_possible;
  }

  template <class Op, class T, class Update>
  void put_directly(const Operands& all, std::size_t elements, const Update& update) const {
    std::array<const T*, most_ranks> gradients{};
    std::array<T*, most_ranks> mirrors{};
    for (std::size_t rank = 0; rank < this->size(); ++rank) {
      gradients[rank] = reinterpret_cast<const T*>(all.gradients[rank]);
      mirrors[rank] = reinterpret_cast<T*>(all.mirrors[rank]);
    }
    order_queues();
    windows_->use(this->here(), [&] {
      ::dist::detail::put_direct_reduction<Op, T>(this->queue(), this->template shard_of<T>(elements, this->rank()),
                                                  std::span{gradients}.first(this->size()),
                                                  std::span{mirrors}.first(this->size()), this->rank(), update);
    });
    order_queues();
  }
  /// Orders the queues: work of all replicas before this call is done before their work after it. Before the update's
  /// kernel all gradients are written and no kernel reads mirrors; after it all mirrors are written and no kernel reads
  /// gradients. An all-reduce of one number suffices: it starts after earlier kernels are done and visible to all GPUs.
  /// A barrier within the kernel (ncclLsaBarrierSession) would save two launches, but needs all blocks on the GPU at
  /// once.
  void order_queues() const {
    std::int32_t* const flag = windows_->flag(this->here());
    this->put("ncclAllReduce",
              [&](ncclComm_t comm) { return ncclAllReduce(flag, flag, 1, ncclInt32, ncclSum, comm, this->stream()); });
  }

  const Windows* windows_;
};

}  // namespace nccl

namespace detail {
template <class Host>
struct NeighborExchange<nccl::SymmetricCollectives<Host>> : NeighborExchange<nccl::Collectives<Host>> {};
}  // namespace detail

/// NcclAllReduce with fused updates by one kernel per GPU, for up to eight replicas, of one process or several, on a
/// machine whose GPUs access each other's memory. The kernel reads all gradients in rank order, updates, and writes all
/// mirrors. Operands must be in the strategy's memory, which uses units of 2 MiB for each variable and buffer. The
/// first update of each creates its window and waits for the GPU. Other operands, machines and collectives use
/// NcclAllReduce, where NCCL itself may use the windows.
struct NcclSymmetricAllReduce {
  static constexpr std::string_view name = "NcclSymmetricAllReduce";
  /// Fused updates through windows sum in rank order, but NCCL does not.
  static constexpr bool sums_in_rank_order = false;
  using DefaultDevice = Cuda;

  /// True if the policy supports communicator `C`.
  template <class C>
  static constexpr bool fits = ThreadAllReduce::fits<C>;

  template <class D>
  using State = nccl::WithWindows<nccl::State>;
  template <class C>
  using On = nccl::SymmetricCollectives<ThreadAllReduce::On<C>>;

  using StateOfWorkers = nccl::WithWindows<nccl::StateOfWorkers>;
  template <class Host>
  using OfWorkers = nccl::SymmetricCollectives<EvenShards<Host>>;
};

}  // namespace dist
