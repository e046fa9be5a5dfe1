#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include <dist/comm/nccl/api.hpp>
#include <dist/comm/nccl/communicators.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/buffer.hpp>
#include <dist/device/cuda/selected_device.hpp>

namespace dist::nccl {

/// Memory of replicas that other ranks of a node can access through NCCL windows: a window is one allocation of each
/// rank, numbered in order of creation. NCCL allocates GPU memory in units of 2 MiB.
class SymmetricMemory : public cuda::MemorySource {
 public:
  /// Maximum number of ranks in a window.
  static constexpr std::size_t most_ranks = 8;

  /// The location of a replica's operand, as the ranks compare it.
  struct Location {
    std::uint64_t allocation_bytes;  ///< 0: not in memory of this kind
    std::uint64_t window;            ///< number of the allocation's window; 0: none
    std::uint64_t offset;            ///< from the first byte of the allocation
  };

  /// Memory of the replicas with ranks in `ranks`. Calls wait at most `timeout`.
  SymmetricMemory(Communicators& ranks, std::size_t replicas, std::chrono::nanoseconds timeout)
      : ranks_(&ranks), timeout_(timeout), replicas_(replicas) {}
  /// All memory must have been released.
  ~SymmetricMemory() override = default;

  /// Throws OutOfMemory, NcclError.
  [[nodiscard]] std::byte* allocate(std::size_t replica, int device, std::size_t bytes) override {
    const cuda::SelectedDevice selected{device};
    void* first = nullptr;
    if (const ncclResult_t answer = ncclMemAlloc(&first, bytes); answer != ncclSuccess) {
      const NcclError refused = error_of(answer, "ncclMemAlloc(&first, bytes)", concat("GPU ", device));
      std::size_t free = 0, total = 0;
      cuda::forget(cudaMemGetInfo(&free, &total));
      if (free >= bytes) throw refused;  // NCCL has one code for this and other failures of CUDA
      throw OutOfMemory(concat("An allocation on GPU ", device, " of ", bytes, " bytes failed"),
                        concat("NCCL refuses the allocation; ", free, " of ", total, " bytes are free"),
                        "Use smaller variables or batches, or Mirrored<NcclAllReduce>, whose memory is not rounded up");
    }
    const std::lock_guard lock{mutex_};
    replicas_[replica].allocations[static_cast<std::byte*>(first)].bytes = bytes;
    return static_cast<std::byte*>(first);
  }
  /// Removes the allocation from its window, which no other rank waits for, and frees it.
  void release(std::size_t replica, std::byte* first) noexcept override {
    const std::lock_guard lock{mutex_};
    auto allocation = replicas_[replica].allocations.extract(first);
    leave_window(replica, allocation.mapped());
    static_cast<void>(ncclMemFree(first));
  }

  /// Returns the location of an operand: all zero if it is outside this memory.
  [[nodiscard]] Location place_of(std::size_t replica, const void* operand) const {
    const std::lock_guard lock{mutex_};
    const auto found = find(replicas_[replica].allocations, operand);
    if (found == replicas_[replica].allocations.end()) return {0, 0, 0};
    const auto offset = static_cast<const std::byte*>(operand) - found->first;
    return {found->second.bytes, found->second.number, static_cast<std::uint64_t>(offset)};
  }

  /// Creates the window of the allocation of `operand`, if it has none. All ranks call this for allocations of equal
  /// size. `find_peers(window)` returns its address on each rank. Throws NcclError, DeadlineExceeded, and errors of
  /// `find_peers`.
  template <class FindPeers>
  void join_window(std::size_t replica, const void* operand, FindPeers&& find_peers) {
    Replica& mine = replicas_[replica];
    const auto found = [&] {
      const std::lock_guard lock{mutex_};
      return find(mine.allocations, operand);
    }();
    DIST_EXPECT(found != mine.allocations.end());
    Allocation& allocation = found->second;
    if (allocation.number != 0) return;
    ranks_->call(replica, "ncclCommWindowRegister", timeout_, [&](ncclComm_t comm) {
      return ncclCommWindowRegister(comm, found->first, allocation.bytes, &allocation.window, NCCL_WIN_COLL_SYMMETRIC);
    });
    allocation.peers = find_peers(allocation.window);
    allocation.number = ++mine.windows;
  }
  /// Returns the address of the window of `operand` on each rank.
  [[nodiscard]] std::array<std::byte*, most_ranks> peers_of(std::size_t replica, const void* operand) const {
    const std::lock_guard lock{mutex_};
    const auto found = find(replicas_[replica].allocations, operand);
    DIST_EXPECT(found != replicas_[replica].allocations.end());
    return found->second.peers;
  }

  /// Detaches from the ranks. Allocations leave their windows, and stay until they are released.
  void leave_ranks() noexcept {
    const std::lock_guard lock{mutex_};
    for (std::size_t replica = 0; replica < replicas_.size(); ++replica)
      for (auto& [first, allocation] : replicas_[replica].allocations) leave_window(replica, allocation);
    ranks_ = nullptr;
  }

 private:
  struct Allocation {
    std::size_t bytes = 0;
    ncclWindow_t window = nullptr;
    std::uint64_t number = 0;
    std::array<std::byte*, most_ranks> peers{};
  };
  using Allocations = std::map<std::byte*, Allocation, std::less<>>;
  struct Replica {
    Allocations allocations;
    std::uint64_t windows = 0;
  };

  /// For a const map or a mutable one.
  template <class Map>
  [[nodiscard]] static auto find(Map& allocations, const void* operand) -> decltype(allocations.begin()) {
    const auto* const at = static_cast<const std::byte*>(operand);
    auto after = allocations.upper_bound(at);
    if (after == allocations.begin()) return allocations.end();
    --after;
    return at < after->first + after->second.bytes ? after : allocations.end();
  }

  /// The caller holds the lock. A failure ends the ranks' work, and their next call throws it. Windows that exist when
  /// the ranks are aborted hold their memory until the process ends: NCCL 2.28 forgets them.
  void leave_window(std::size_t replica, Allocation& allocation) noexcept {
    if (ranks_ == nullptr || allocation.window == nullptr) return;
    try {
      ranks_->call_in_turn(replica, "ncclCommWindowDeregister", timeout_,
                           [&](ncclComm_t comm) { return ncclCommWindowDeregister(comm, allocation.window); });
    } catch (...) {  // their next call throws it
    }
    allocation.window = nullptr;
    allocation.number = 0;
  }

  Communicators* ranks_;
  std::chrono::nanoseconds timeout_;
  std::vector<Replica> replicas_;
  mutable std::mutex mutex_;
};

}  // namespace dist::nccl
