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

/// The windows through which the GPUs of a strategy reach the memory of all its replicas, and what each replica needs for
/// them.
class Windows {
 public:
  static constexpr std::size_t most_ranks = SymmetricMemory::most_ranks;
  static_assert(most_ranks == ::dist::detail::most_direct_replicas);

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
  /// Windows go when the GPUs have done what was put there, and so have the others what they do in this memory, which is
  /// before the end of a collective.
  ~Windows() {
    for (const auto& member : members_)
      if (!is_over(member->queue)) {
        member->queue.set_watch({});  // which says again and again what ended the ranks' work
        if (!is_over(member->queue)) cuda::leave_behind(std::move(member->room));  // it is lost
      }
    memory_->leave_ranks();
    state_.ranks().set_users({});
  }

  [[nodiscard]] const std::shared_ptr<SymmetricMemory>& memory() const noexcept { return memory_; }

  /// Whether there are none, which all replicas know. NCCL must not be asked where there are several nodes: it would look
  /// for a network that GPUs use by themselves.
  [[nodiscard]] bool are_excluded() const noexcept { return state_.size() > most_ranks || !state_.is_one_host(); }
  /// Whether the GPUs reach each other's memory, as far as this replica knows: asked once, of all. NCCL refuses at once,
  /// and goes on.
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
  /// All replicas have said whether they are.
  void note(std::size_t replica, bool are_possible) const { members_[replica]->are_possible = are_possible; }
  [[nodiscard]] std::optional<bool> noted(std::size_t replica) const { return members_[replica]->are_possible; }

  /// The window of `operand`, made where it is not there: see SymmetricMemory. The host waits for the replica's GPU.
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
  /// `put()` puts a kernel on the replica's GPU that uses windows.
  template <class Put>
  void use(std::size_t replica, Put&& put) const {
    state_.ranks().use(replica, put);
  }
  /// A zero in the memory of the replica's GPU, which stays zero when all replicas' are added.
  [[nodiscard]] std::int32_t* flag(std::size_t replica) const {
    return reinterpret_cast<std::int32_t*>(room_of(replica));
  }

 private:
  static constexpr std::size_t room_for_flag = 256;

  struct Member {
    explicit Member(const Cuda::Queue& of) : queue(of) {}
    Cuda::Queue queue;
    std::optional<bool> are_possible;  // for all
    ncclDevComm device{};              // NCCL may write it as long as the rank lives
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
  /// Looks from whatever thread, as long as a replica waits for its GPU.
  [[nodiscard]] bool are_queues_done() const noexcept {
    try {
      for (const auto& member : members_)
        cuda::await([&] { return member->queue.stream().is_done(); }, [] { return "a GPU"; }, member->queue.timeout());
      return true;
    } catch (const Error&) {
      return false;
    }
  }
  /// Made when it is first asked for, by the replica's thread.
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

/// `Base`, what a strategy keeps for NcclAllReduce, and windows.
template <class Base>
class WithWindows : public Base {
 public:
  WithWindows(const Cuda::Queues& queues, std::size_t replicas)
      : Base(queues, replicas), windows_(*this, queues, replicas) {}
  template <class Workers, class Replicas>
  WithWindows(const Workers& workers, const Replicas& replicas)
      : Base(workers, replicas), windows_(*this, replicas.queues(), replicas.size()) {}

  [[nodiscard]] const Windows& windows() const noexcept { return windows_; }
  /// Of the replicas' memory.
  [[nodiscard]] std::shared_ptr<cuda::MemorySource> memory_source() const noexcept { return windows_.memory(); }

 private:
  Windows windows_;
};

/// Collectives as NCCL makes them, but that a fused update is one kernel on each GPU, which reads the gradients of all
/// replicas and writes all mirrors, where windows reach them.
template <class Host>
class SymmetricCollectives : public Collectives<Host> {
  using Base = Collectives<Host>;
  template <class T>
  using Span = Cuda::Span<T>;

 public:
  template <class S>
  SymmetricCollectives(Host host, const Cuda::Queue& queue, const WithWindows<S>& state,
                       std::chrono::nanoseconds timeout)
      : SymmetricCollectives(Base{std::move(host), queue, state, timeout}, state.windows()) {}
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

  /// Where a replica's operands lie, as all replicas tell each other.
  struct Places {
    SymmetricMemory::Location gradient;
    SymmetricMemory::Location mirror;
    std::uint64_t are_in_one;  ///< allocation

    [[nodiscard]] bool are_in_windows_with(const Places& other) const {
      return gradient.allocation_bytes != 0 && mirror.allocation_bytes != 0 && are_in_one == other.are_in_one &&
             gradient.allocation_bytes == other.gradient.allocation_bytes && gradient.window == other.gradient.window &&
             mirror.allocation_bytes == other.mirror.allocation_bytes && mirror.window == other.mirror.window;
    }
  };
  /// Those of all replicas, as this one's GPU reaches them.
  struct Operands {
    std::array<std::byte*, most_ranks> gradients;
    std::array<std::byte*, most_ranks> mirrors;
  };

  SymmetricCollectives(Base base, const Windows& windows) : Base(std::move(base)), windows_(&windows) {}

  /// None where the replicas' operands are not in windows with each other, and cannot be: all replicas decide alike, by
  /// what all have said. They may give parts of any allocation, but each the one of the same window, or of none yet.
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
  /// What the replicas put into their queues before this is done before what they put there next: before a kernel all
  /// gradients are written and nobody reads mirrors, after it all mirrors are written and nobody reads gradients. A sum of
  /// one number of each does it, because kernels are done, and what they wrote is there for all GPUs, before NCCL's begins.
  /// A barrier of the GPUs within the kernel (ncclLsaBarrierSession) would save two launches, and needs all blocks of the
  /// grid on the GPU at the same time.
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

/// NcclAllReduce whose fused updates are one kernel on each GPU, where up to eight replicas, of one process or several, are
/// on one machine whose GPUs reach each other's memory: it reads the gradients of all replicas in rank order, updates, and
/// writes all mirrors. That needs operands in memory of the strategy, which takes memory of GPUs in units of 2 MiB for each
/// variable and buffer. The first update of each makes its window, and waits for the GPU. Other operands, machines and
/// collectives go the way of NcclAllReduce, where NCCL itself may use the windows.
struct NcclSymmetricAllReduce {
  static constexpr std::string_view name = "NcclSymmetricAllReduce";
  /// Fused updates through windows do, but not where they go NCCL's way.
  static constexpr bool sums_in_rank_order = false;
  using DefaultDevice = Cuda;

  /// Whether it works between members like these.
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
