// The fake NCCL itself: its results, and the calls that it rejects.
#include "../fake_cuda/gpu.hpp"

#include <nccl.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <thread>

#include <support/fake_nccl/nccl_device.h>
#include <support/fake_nccl/machine.hpp>
#include <support/stderr_of.hpp>

using testing::refuses;

namespace {

/// Two ranks on two GPUs, with four numbers each: 1 2 3 4 and 10 20 30 40.
struct Setting {
  explicit Setting(int polls = 0, fake_cuda::Schedule schedule = fake_cuda::Schedule::lazy, bool joins = true) {
    fake_cuda::Options gpus;
    gpus.devices = 2;
    gpus.schedule = schedule;
    gpus.patience_ms = 50;
    fake_cuda::restart(gpus);
    fake_nccl::restart({.polls = polls});
    REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
    for (int rank = 0; rank < 2; ++rank) {
      streams[rank] = gpu::stream(rank);
      values[rank] = gpu::memory<float>(4, rank);
      float* const host = gpu::pinned<float>(4);
      for (int i = 0; i < 4; ++i) host[i] = static_cast<float>((i + 1) * (rank == 0 ? 1 : 10));
      gpu::copy(values[rank], host, 4, streams[rank]);
    }
    if (!joins) return;
    REQUIRE(ncclGroupStart() == ncclSuccess);
    for (int rank = 0; rank < 2; ++rank) static_cast<void>(join(rank, rank));
    REQUIRE(ncclGroupEnd() == ncclInProgress);
    for (ncclComm_t comm : comms) settle(comm);
  }

  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  ~Setting() {
    fake_nccl::restart();
    fake_cuda::restart({});
  }

  ncclResult_t join(int rank, int device) {
    static_cast<void>(cudaSetDevice(device));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    return ncclCommInitRankConfig(&comms[rank], 2, id, rank, &config);
  }
  static ncclResult_t state(ncclComm_t comm) {
    ncclResult_t now = ncclSuccess;
    REQUIRE(ncclCommGetAsyncError(comm, &now) == ncclSuccess);
    return now;
  }
  static void settle(ncclComm_t comm) {
    while (state(comm) == ncclInProgress) {
    }
  }
  ncclResult_t sum(int rank, std::size_t count = 4) const {
    return ncclAllReduce(values[rank], values[rank], count, ncclFloat32, ncclSum, comms[rank], streams[rank]);
  }
  ncclResult_t sum_of_both() const {
    static_cast<void>(ncclGroupStart());
    static_cast<void>(sum(0));
    static_cast<void>(sum(1));
    return ncclGroupEnd();
  }

  /// Returns NCCL memory on the GPU of `rank`.
  static void* memory(int rank, std::size_t bytes = 400) {
    static_cast<void>(cudaSetDevice(rank));
    void* first = nullptr;
    REQUIRE(ncclMemAlloc(&first, bytes) == ncclSuccess);
    return first;
  }
  ncclResult_t begin_window(int rank, void* memory, ncclWindow_t* window, std::size_t bytes = 400) const {
    return ncclCommWindowRegister(comms[rank], memory, bytes, window, NCCL_WIN_COLL_SYMMETRIC);
  }
  void settle_both() const {
    bool are_settled = false;
    while (!are_settled) {
      const bool is_first = state(comms[0]) != ncclInProgress;  // polls both, because each waits for the other
      are_settled = state(comms[1]) != ncclInProgress && is_first;
    }
  }

  ncclUniqueId id{};
  ncclComm_t comms[2]{};
  cudaStream_t streams[2]{};
  float* values[2]{};
};

}  // namespace

TEST_CASE("grouped collectives give correct results in every schedule") {
  for (const auto schedule : {fake_cuda::Schedule::eager, fake_cuda::Schedule::lazy, fake_cuda::Schedule::random}) {
    const Setting set{0, schedule};
    REQUIRE(set.sum_of_both() == ncclSuccess);
    for (int rank = 0; rank < 2; ++rank)
      for (int i = 0; i < 4; ++i) CHECK(gpu::value(set.values[rank] + i, set.streams[rank]) == 11 * (i + 1));
    // Each rank gets two of four elements: rank 1 gets the second halves, 33 and 44, doubled.
    REQUIRE(ncclGroupStart() == ncclSuccess);
    for (int rank = 0; rank < 2; ++rank)
      REQUIRE(ncclReduceScatter(set.values[rank], set.values[rank], 2, ncclFloat32, ncclSum, set.comms[rank],
                                set.streams[rank]) == ncclSuccess);
    REQUIRE(ncclGroupEnd() == ncclSuccess);
    CHECK(gpu::value(set.values[0] + 1, set.streams[0]) == 44);
    CHECK(gpu::value(set.values[1], set.streams[1]) == 66);
    REQUIRE(ncclGroupStart() == ncclSuccess);
    for (int rank = 0; rank < 2; ++rank)
      REQUIRE(ncclAllGather(set.values[rank] + rank, set.values[rank] + 2, 1, ncclFloat32, set.comms[rank],
                            set.streams[rank]) == ncclSuccess);
    REQUIRE(ncclGroupEnd() == ncclSuccess);
    CHECK(gpu::value(set.values[0] + 3, set.streams[0]) == 88);
    CHECK(gpu::value(set.values[1] + 2, set.streams[1]) == 22);
    REQUIRE(ncclGroupStart() == ncclSuccess);
    for (int rank = 0; rank < 2; ++rank)
      REQUIRE(ncclReduce(set.values[rank] + 3, set.values[rank], 1, ncclFloat32, ncclMax, 1, set.comms[rank],
                         set.streams[rank]) == ncclSuccess);
    REQUIRE(ncclGroupEnd() == ncclSuccess);
    CHECK(gpu::value(set.values[0], set.streams[0]) == 22);
    CHECK(gpu::value(set.values[1], set.streams[1]) == 88);
    for (const ncclComm_t comm : set.comms) {
      REQUIRE(ncclCommFinalize(comm) == ncclInProgress);
      Setting::settle(comm);
    }
    for (const ncclComm_t comm : set.comms) REQUIRE(ncclCommDestroy(comm) == ncclSuccess);
    CHECK(fake_nccl::live_communicators() == 0);
  }
}

TEST_CASE("grouped messages arrive in order in every schedule") {
  for (const auto schedule : {fake_cuda::Schedule::eager, fake_cuda::Schedule::lazy, fake_cuda::Schedule::random})
    for (const int polls : {0, 2}) {
      const Setting set{polls, schedule};
      // 1 and 2 are sent to rank 1 in two messages, 10 and 20 to rank 0.
      REQUIRE(ncclGroupStart() == ncclSuccess);
      for (int rank = 0; rank < 2; ++rank)
        for (int i = 0; i < 2; ++i) {
          float* const mine = set.values[rank];
          REQUIRE(ncclSend(mine + i, 1, ncclFloat32, 1 - rank, set.comms[rank], set.streams[rank]) == ncclSuccess);
          REQUIRE(ncclRecv(mine + 2 + i, 1, ncclFloat32, 1 - rank, set.comms[rank], set.streams[rank]) == ncclSuccess);
        }
      REQUIRE(ncclGroupEnd() == (polls == 0 ? ncclSuccess : ncclInProgress));
      for (const ncclComm_t comm : set.comms) Setting::settle(comm);
      for (int rank = 0; rank < 2; ++rank)
        for (int i = 0; i < 2; ++i)
          CHECK(gpu::value(set.values[rank] + 2 + i, set.streams[rank]) == (rank == 0 ? 10 : 1) * (i + 1));
    }
  const Setting set;
  CHECK(ncclSend(set.values[0], 1, ncclFloat32, 2, set.comms[0], set.streams[0]) == ncclInvalidArgument);
  REQUIRE(ncclRecv(set.values[0], 1, ncclFloat32, 1, set.comms[0], set.streams[0]) == ncclSuccess);
  for (const ncclComm_t comm : set.comms) REQUIRE(ncclCommAbort(comm) == ncclSuccess);
  gpu::synchronize(set.streams[0]);
}

TEST_CASE("work of a call in progress reaches its stream after enough polls") {
  const Setting set{2, fake_cuda::Schedule::eager};
  CHECK(set.sum_of_both() == ncclInProgress);
  CHECK(gpu::value(set.values[0], set.streams[0]) == 1);
  for (const ncclComm_t comm : set.comms) {
    CHECK(Setting::state(comm) == ncclInProgress);
    CHECK(Setting::state(comm) == ncclSuccess);
  }
  CHECK(gpu::value(set.values[0], set.streams[0]) == 11);
}

TEST_CASE("an abort ends waiting collectives without a result") {
  const Setting set;
  REQUIRE(set.sum(0) == ncclSuccess);
  for (const ncclComm_t comm : set.comms) REQUIRE(ncclCommAbort(comm) == ncclSuccess);
  gpu::synchronize(set.streams[0]);
  CHECK(gpu::value(set.values[0], set.streams[0]) != 11);
}

TEST_CASE("two ranks on one GPU fail with NCCL's error, and injected failures occur at the requested call") {
  Setting set{0, fake_cuda::Schedule::lazy, false};
  CHECK(set.join(0, 1) == ncclInProgress);
  CHECK(Setting::state(set.comms[0]) == ncclInProgress);
  CHECK(set.join(1, 1) == ncclInProgress);
  CHECK(Setting::state(set.comms[0]) == ncclInvalidUsage);
  CHECK(std::string(ncclGetLastError(set.comms[0])) == "Duplicate GPU detected");
  const Setting other;
  fake_nccl::fail_call("ncclAllReduce", ncclSystemError, 2);
  CHECK(other.sum(0) == ncclSuccess);
  CHECK(other.sum(0) == ncclSystemError);
  CHECK(fake_nccl::calls("ncclAllReduce") == 2);
  CHECK(ncclGroupEnd() == ncclInvalidUsage);
}

TEST_CASE("calls that would hang, are wrong, or come too late are rejected") {
  const Setting set;
  refuses([&] { return set.sum(0), set.sum(1); }, "one thread calls for several ranks outside a group");
  refuses([&] { return set.sum(0), cudaStreamSynchronize(set.streams[0]); }, "deadlock");
  refuses(
      [&] {
        static_cast<void>(ncclGroupStart());
        static_cast<void>(set.sum(0, 4));
        static_cast<void>(set.sum(1, 3));
        return ncclGroupEnd();
      },
      "ranks 0 and 1 make different calls: ncclAllReduce of 4, ncclAllReduce of 3");
  const auto exchange = [&](int rank, std::size_t sent, std::size_t received) {
    static_cast<void>(ncclSend(set.values[rank], sent, ncclFloat32, 1 - rank, set.comms[rank], set.streams[rank]));
    return ncclRecv(set.values[rank], received, ncclFloat32, 1 - rank, set.comms[rank], set.streams[rank]);
  };
  refuses(
      [&] {
        static_cast<void>(ncclGroupStart());
        static_cast<void>(exchange(0, 2, 2));
        static_cast<void>(exchange(1, 2, 1));
        return ncclGroupEnd();
      },
      "rank 0 sends 2 elements to rank 1, which receives 1");
  refuses(
      [&] {  // each sends first, and no rank receives
        std::thread other{[&] { static_cast<void>(exchange(1, 1, 1)); }};
        other.join();
        return exchange(0, 1, 1), cudaStreamSynchronize(set.streams[0]);
      },
      "deadlock");
  refuses([&] { return ncclSend(set.values[0], 1, ncclFloat32, 0, set.comms[0], set.streams[0]); },
          "of rank 0 and itself");
  refuses([&] { return set.sum(0, 5); }, "sends, 20 bytes, is not in one allocation of GPU 0");
  refuses(
      [&] {
        return ncclAllReduce(set.values[1], set.values[0], 4, ncclFloat32, ncclSum, set.comms[0], set.streams[0]);
      },
      "is not in one allocation of GPU 0");
  refuses(
      [&] {
        return ncclAllReduce(set.values[0], set.values[0], 4, ncclFloat32, ncclSum, set.comms[0], set.streams[1]);
      },
      "on a stream of another GPU");
  refuses(
      [&] {
        return ncclAllReduce(set.values[0], set.values[0], 4, ncclFloat32, ncclAvg, set.comms[0], set.streams[0]);
      },
      "which divides what it adds");
  refuses([&] { return ncclCommAbort(set.comms[0]), set.sum(0); }, "destroyed, or aborted");
  refuses([&] { return ncclCommAbort(set.comms[0]), ncclCommAbort(set.comms[0]); }, "destroyed, or aborted");
  refuses([&] { return ncclCommDestroy(set.comms[0]); }, "is not finalized");
  refuses([&] { return ncclCommFinalize(set.comms[0]), set.sum(0); }, "is in progress");
  refuses(
      [&] {
        fake_nccl::restart();
        ncclComm_t made = nullptr;
        return ncclCommInitRankConfig(&made, 1, {}, 0, nullptr);
      },
      "a communicator that blocks");
  refuses(
      [&] {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        ncclComm_t made = nullptr;
        return ncclCommInitRankConfig(&made, 1, {}, 0, &config);
      },
      "an id that ncclGetUniqueId did not make");
}

namespace {

__global__ void write_to_all(ncclWindow_t window, float value) {
  for (int rank = 0; rank < 2; ++rank) *static_cast<float*>(ncclGetLsaPointer(window, 8, rank)) = value;
}

}  // namespace

TEST_CASE("all ranks create windows together, and kernels access every rank's memory") {
  for (const int polls : {0, 3}) {
    const Setting set{polls, fake_cuda::Schedule::eager};
    void* const memory[2] = {Setting::memory(0), Setting::memory(1)};
    ncclWindow_t windows[2]{};
    ncclDevComm devices[2]{};
    const ncclDevCommRequirements none{};
    for (int rank = 0; rank < 2; ++rank) {
      CHECK(ncclDevCommCreate(set.comms[rank], &none, &devices[rank]) == ncclSuccess);
      CHECK(Setting::state(set.comms[0]) == ncclInProgress);
    }
    set.settle_both();
    for (int rank = 0; rank < 2; ++rank) {
      CHECK(devices[rank].lsaSize == 2);
      CHECK(devices[rank].lsaRank == rank);
      CHECK(ncclDevCommDestroy(set.comms[rank], &devices[rank]) == ncclSuccess);
      CHECK(set.begin_window(rank, memory[rank], &windows[rank]) == ncclSuccess);
    }
    set.settle_both();
    CHECK(fake_nccl::live_windows() == 2);
    REQUIRE(cudaSetDevice(1) == cudaSuccess);
    gpu::launch(set.streams[1], 1, 1, &write_to_all, windows[1], 7.0F);
    gpu::synchronize(set.streams[1]);
    for (int rank = 0; rank < 2; ++rank)
      CHECK(gpu::value(static_cast<float*>(memory[rank]) + 2, set.streams[rank]) == 7);
    for (int rank = 0; rank < 2; ++rank) {
      CHECK(ncclCommWindowDeregister(set.comms[rank], windows[rank]) == ncclSuccess);
      CHECK(ncclMemFree(memory[rank]) == ncclSuccess);
    }
    CHECK(fake_nccl::live_windows() == 0);
  }
}

TEST_CASE("an allocation that exceeds a GPU's memory fails with a CUDA error") {
  const Setting set;
  void* first = nullptr;
  CHECK(ncclMemAlloc(&first, std::size_t{1} << 40) == ncclUnhandledCudaError);
  CHECK(std::string(ncclGetLastError(nullptr)).find("out of memory") != std::string::npos);
}

TEST_CASE("windows of other memory, of different sizes, or not deregistered are rejected") {
  struct WithMemory : Setting {
    void* memory[2] = {Setting::memory(0), Setting::memory(1)};
    ncclWindow_t windows[2]{};
    void make_windows(std::size_t bytes_of_second = 400) {
      static_cast<void>(begin_window(0, memory[0], &windows[0]));
      static_cast<void>(begin_window(1, memory[1], &windows[1], bytes_of_second));
      settle_both();
    }
  };
  const auto refuses = [](auto&& call, std::string_view sentence) {
    testing::refuses(
        [&] {
          WithMemory set;  // one per case: all processes share the state of the ranks
          call(set);
        },
        sentence);
  };
  refuses([](auto& set) { static_cast<void>(set.begin_window(0, set.values[0], &set.windows[0], 16)); },
          "which ncclMemAlloc did not give for GPU 0");
  refuses([](auto& set) { static_cast<void>(set.begin_window(0, set.memory[1], &set.windows[0])); },
          "which ncclMemAlloc did not give for GPU 0");
  refuses([](auto& set) { static_cast<void>(set.begin_window(0, set.memory[0], &set.windows[0], 401)); },
          "of 401 bytes of memory of GPU 0");
  refuses([](auto& set) { set.make_windows(200); }, "makes another call, or one for another number of bytes");
  refuses(
      [](auto& set) {
        static_cast<void>(set.begin_window(0, set.memory[0], &set.windows[0]));
        static_cast<void>(set.sum(0));
      },
      "is in progress");
  refuses([](auto& set) { set.make_windows(), static_cast<void>(ncclMemFree(set.memory[0])); },
          "in a window: deregister that before");
  refuses([](auto& set) { set.make_windows(), static_cast<void>(ncclCommFinalize(set.comms[0])); }, "has windows");
  refuses(
      [](auto& set) { set.make_windows(), static_cast<void>(ncclCommWindowDeregister(set.comms[1], set.windows[0])); },
      "does not have");
  refuses(
      [](auto& set) {
        set.make_windows();
        static_cast<void>(cudaMemsetAsync(set.memory[0], 0, 4, set.streams[0]));
        static_cast<void>(ncclCommWindowDeregister(set.comms[0], set.windows[0]));
      },
      "has not used the memory yet");
  refuses([](auto& set) { static_cast<void>(ncclMemFree(set.values[0])); }, "ncclMemAlloc did not give");
  refuses(
      [](auto& set) { static_cast<void>(ncclMemFree(set.memory[0])), static_cast<void>(ncclMemFree(set.memory[0])); },
      "ncclMemAlloc did not give");
}
