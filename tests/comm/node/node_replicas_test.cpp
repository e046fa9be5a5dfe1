#include <dist/comm/node/node_replicas.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <dist/comm/node/node_all_reduce.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/device/replica_threads.hpp>

#include <doctest/doctest.h>

#include <support/node_processes.hpp>

namespace {

using namespace std::chrono_literals;
using Ops = dist::NodeAllReduce::On<dist::NodeReplicaCommunicator>;

static_assert(dist::SharesWindow<dist::NodeReplicaCommunicator> &&
              dist::ReportsFailures<dist::NodeReplicaCommunicator> &&
              dist::ComparesCalls<dist::NodeReplicaCommunicator> && dist::HasLocalGroup<dist::NodeReplicaCommunicator>);

/// Starts `processes` processes of `replicas` threads each and calls `body(ops, member)` on each thread, which returns
/// its number of errors. Returns true if there are none.
template <class Body>
bool all_right(std::size_t processes, std::size_t replicas, Body&& body) {
  support::Processes started = support::node_processes(processes, 20s, [&](support::NodeMember& member) {
    dist::NodeReplicas group{member.comm, member.window, replicas};
    dist::ReplicaThreads threads(replicas);
    dist::ThreadGroup here(threads.status(), dist::detail::SpinBudget::shared_core(), 20s);
    std::atomic<std::size_t> wrong{0};
    threads.run([&](std::size_t replica) {
      const Ops ops{dist::NodeReplicaCommunicator{group, dist::ThreadCommunicator{here, replica}, 20s}};
      wrong += body(ops, member);
    });
    return wrong == 0 ? 0 : 1;
  });
  return started.wait() == std::vector<int>(processes, 0);
}

template <class T>
std::span<T> in_window(support::NodeMember& member, std::size_t elements) {
  return {reinterpret_cast<T*>(member.window.at(0, member.window.allocate(elements * sizeof(T)))), elements};
}

/// Returns element i of member `rank`: sums are exact in any order.
float value(std::size_t rank, std::size_t i) { return static_cast<float>((rank + 1) * (i % 7 + 1)); }

struct Members {
  std::size_t processes;
  std::size_t replicas;
};
constexpr std::array<Members, 5> shapes{{{1, 3}, {2, 1}, {2, 2}, {3, 2}, {2, 17}}};

}  // namespace

TEST_CASE("replicas of several processes form one group ordered by process") {
  for (const Members& shape : shapes) {
    const std::size_t processes = shape.processes;
    const std::size_t replicas = shape.replicas;
    CAPTURE(processes);
    CAPTURE(replicas);
    CHECK(all_right(processes, replicas, [&](const Ops& ops, support::NodeMember& member) -> std::size_t {
      const auto& comm = ops.communicator();
      std::size_t wrong = comm.size() != processes * replicas;
      wrong += comm.rank() != member.comm.rank() * replicas + comm.local().rank();
      wrong += comm.local().size() != replicas;
      std::vector<std::size_t> all(comm.size());
      ops.all_gather_values("ranks", comm.rank(), std::span{all});
      for (std::size_t rank = 0; rank < all.size(); ++rank) wrong += all[rank] != rank;
      struct Large {
        std::array<std::size_t, 64> values;
      } mine{};
      mine.values.fill(comm.rank());
      std::vector<Large> large(comm.size());
      for (int again = 0; again < 3; ++again) ops.all_gather_values("large", mine, std::span{large});
      for (std::size_t rank = 0; rank < large.size(); ++rank) wrong += large[rank].values[63] != rank;
      std::size_t root = comm.rank();
      ops.broadcast(comm.size() - 1, std::span{&root, 1});
      wrong += root != comm.size() - 1;
      return wrong;
    }));
  }
}

TEST_CASE("all_reduce sums few and many elements of all replicas inside and outside the window") {
  for (const Members& shape : shapes) {
    const std::size_t processes = shape.processes;
    const std::size_t replicas = shape.replicas;
    CAPTURE(processes);
    CAPTURE(replicas);
    CHECK(all_right(processes, replicas, [&](const Ops& ops, support::NodeMember& member) -> std::size_t {
      const auto& comm = ops.communicator();
      std::size_t wrong = 0;
      for (const std::size_t elements : {1U, 64U, 65U, 1000U, 40000U}) {
        std::vector<float> plain(elements);
        const std::span<float> window = in_window<float>(member, elements);
        const bool is_first = member.comm.rank() == 0;
        for (const std::span<float> values : {std::span{plain}, window, is_first ? window : std::span{plain}}) {
          for (std::size_t i = 0; i < elements; ++i) values[i] = value(comm.rank(), i);
          ops.all_reduce(dist::sum, values);
          const std::size_t members = comm.size();
          const auto all = static_cast<float>(members * (members + 1) / 2);
          for (std::size_t i = 0; i < elements; ++i) wrong += values[i] != all * value(0, i);
        }
      }
      return wrong;
    }));
  }
}

TEST_CASE("every replica of every process updates its share of all mirrors") {
  constexpr std::size_t elements = 5000;
  for (const Members& shape : shapes) {
    const std::size_t processes = shape.processes;
    const std::size_t replicas = shape.replicas;
    CAPTURE(processes);
    CAPTURE(replicas);
    CHECK(all_right(processes, replicas, [&](const Ops& ops, support::NodeMember& member) -> std::size_t {
      const auto& comm = ops.communicator();
      const std::span<float> gradient = in_window<float>(member, elements);
      const std::span<float> mirror = in_window<float>(member, elements);
      for (std::size_t i = 0; i < elements; ++i) gradient[i] = value(comm.rank(), i);
      const dist::IndexRange share =
          dist::shard_of(elements, comm.rank(), comm.size(), dist::cache_line / sizeof(float));
      std::atomic<std::size_t> updated{0};
      std::atomic<std::size_t> of_others{0};
      ops.reduce_and_apply(dist::sum, std::span<const float>{gradient}, mirror,
                           [&updated, &of_others, share](std::size_t i, float weight, float reduced) {
                             ++updated;
                             if (i < share.begin || i >= share.end) ++of_others;
                             return weight - reduced;
                           });
      std::size_t wrong = of_others;
      wrong += updated != share.size();
      const auto all = static_cast<float>(comm.size() * (comm.size() + 1) / 2);
      for (std::size_t i = 0; i < elements; ++i) {
        wrong += mirror[i] != -all * value(0, i);
        wrong += gradient[i] != value(comm.rank(), i);
      }
      return wrong;
    }));
  }
}

TEST_CASE("mismatched calls are found before operands change even between processes") {
  CHECK(all_right(2, 2, [&](const Ops& ops, support::NodeMember& member) -> std::size_t {
    const std::span<float> mirror = in_window<float>(member, 1000);
    const std::vector<float> gradients(1000, 1);
    const std::span<const float> slopes{gradients};
    const auto add = [](std::size_t, float weight, float slope) { return weight + slope; };
    std::string said;
    try {
      if (member.comm.rank() == 0)
        ops.update_shards(slopes, mirror, add);
      else
        ops.update_shards(slopes.first(999), mirror.first(999), add);
    } catch (const dist::CollectiveMismatch& error) {
      said = error.what();
      ops.cancel(std::current_exception());  // for the replicas that wait for replica 0
    }
    const bool names_both = said.find("999") != std::string::npos && said.find("1000") != std::string::npos;
    const bool updated = std::any_of(mirror.begin(), mirror.end(), [](float weight) { return weight != 0; });
    return updated || !names_both ? 1 : 0;
  }));
}

TEST_CASE("after an exception in an update new stages in the window are used") {
  CHECK(all_right(2, 2, [&](const Ops& ops, support::NodeMember&) -> std::size_t {
    const auto& comm = ops.communicator();
    const float* const before = comm.stage<float>(1, 100).data();
    comm.barrier();
    const bool kept = comm.stage<float>(1, 100).data() == before;
    comm.cancel_operands();
    const float* const after = comm.stage<float>(1, 100).data();
    comm.barrier();  // all have entered a later collective: the first stage is free
    return kept && after != before ? 0 : 1;
  }));
}

TEST_CASE("a stage that grows keeps its old memory until all replicas have entered another collective") {
  for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}}) {
    CAPTURE(replicas);
    CHECK(all_right(2, replicas, [&](const Ops& ops, support::NodeMember&) -> std::size_t {
      const auto& comm = ops.communicator();
      const std::span<float> old = comm.stage<float>(2, 100'000);
      old.back() = 7;
      comm.publish({.operation = "read"}, {.read = old.data()});
      std::size_t wrong = comm.stage<float>(2, 200'000).data() == old.data();
      for (std::size_t rank = 0; rank < comm.size(); ++rank) wrong += comm.peer<float>(rank)[old.size() - 1] != 7;
      wrong += old.back() != 7;
      comm.barrier();
      return wrong + std::size_t{old.back() != 0};  // its pages were released
    }));
  }
}

TEST_CASE("replicas still read received values while replica 0 of their process fails and peers continue") {
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{240}}) {  // and more than a mailbox holds
    CAPTURE(bytes);
    std::atomic<bool> failed{false};
    CHECK(all_right(2, 3, [&](const Ops& ops, support::NodeMember& member) -> std::size_t {
      const auto& comm = ops.communicator();
      for (std::size_t round = 0; round < 3; ++round) {
        const std::vector<std::size_t> mine(bytes / sizeof(std::size_t), 100 * round + comm.rank());
        comm.exchange({.operation = "numbers"}, std::span{mine});
      }
      if (comm.local().rank() == 0) {
        comm.cancel(dist::FailureNotice{"replica 0 fails"});
        const std::size_t later = 7;  // both processes fail and enter the next call
        member.comm.begin_attempt();
        member.comm.exchange({.operation = "later"}, std::span{&later, 1});
        member.comm.exchange({.operation = "later"}, std::span{&later, 1});
        failed = true;
        failed.notify_all();
      } else {
        failed.wait(false);
      }
      std::size_t wrong = 0;
      for (std::size_t rank = 0; rank < comm.size(); ++rank)
        wrong += comm.received<std::size_t>(rank)[bytes / sizeof(std::size_t) - 1] != 200 + rank;
      return wrong;
    }));
  }
}
