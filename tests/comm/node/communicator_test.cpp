#include <dist/comm/node/communicator.hpp>

#include <dist/comm/node/node_all_reduce.hpp>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include "support/node_processes.hpp"
#include "support/what_throws.hpp"

namespace {

using support::NodeMember;
using support::what_throws;
using namespace std::chrono_literals;
using Ops = dist::NodeAllReduce::On<dist::NodeCommunicator>;

static_assert(dist::SharesWindow<dist::NodeCommunicator> && dist::ReportsFailures<dist::NodeCommunicator> &&
              dist::ComparesCalls<dist::NodeCommunicator> && dist::HasLocalGroup<dist::NodeCommunicator>);

std::vector<int> fine(std::size_t count) { return std::vector<int>(count, 0); }

bool has(std::string_view text, std::string_view part) {
  const bool found = text.find(part) != std::string_view::npos;
  if (!found) std::printf("'%s' is not in: %s\n", std::string{part}.c_str(), std::string{text}.c_str());
  return found;
}

void watch_each_other(NodeMember& member) {
  const int pid = getpid();
  member.comm.exchange({.operation = "process numbers"}, std::span<const int>{&pid, 1});
  for (std::size_t rank = 0; rank < member.comm.size(); ++rank)
    if (rank != member.comm.rank()) member.health.watch_process(rank, "here", *member.comm.received<int>(rank));
}

TEST_CASE("processes of a node reduce operands in their windows in place and copy other operands") {
  for (std::size_t count = 1; count <= 4; ++count) {
    CAPTURE(count);
    auto processes = support::node_processes(count, 20s, [&](NodeMember& member) {
      const Ops ops{member.comm};
      int wrong = 0;
      for (const std::size_t elements :
           {std::size_t{0}, std::size_t{1}, std::size_t{64}, std::size_t{65}, std::size_t{100'003}})
        for (const bool inside : {false, true}) {
          std::vector<float> outside(elements);
          std::span<float> values{outside};
          if (inside)
            values = {reinterpret_cast<float*>(member.window.at(0, member.window.allocate(elements * sizeof(float)))),
                      elements};
          for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<float>(i % 7 + member.comm.rank());
          ops.all_reduce(dist::sum, values);
          for (std::size_t i = 0; i < elements; ++i)
            wrong += values[i] != static_cast<float>((i % 7) * count + count * (count - 1) / 2);
        }
      return wrong != 0 ? 1 : 0;
    });
    CHECK(processes.wait() == fine(count));
  }
}

TEST_CASE("mismatched calls are named on every process, and all processes can continue together") {
  auto processes = support::node_processes(3, 20s, [](NodeMember& member) {
    const Ops ops{member.comm};
    std::vector<float> values(member.comm.rank() == 1 ? 5 : 4);
    const std::string message = what_throws([&] { ops.all_reduce(dist::sum, std::span<float>{values}); });
    bool right = has(message, "of 4 f32") && has(message, "worker 1 (host here) called all_reduce(sum) of 5 f32");
    std::size_t ranks[3];
    ops.all_gather_values("ranks", member.comm.rank(), std::span<std::size_t>{ranks});
    for (std::size_t rank = 0; rank < 3; ++rank) right = right && ranks[rank] == rank;
    return right ? 0 : 1;
  });
  CHECK(processes.wait() == fine(3));
}

TEST_CASE("a failed process reports its error to waiting processes, and all processes can continue together") {
  auto processes = support::node_processes(2, 20s, [](NodeMember& member) {
    bool right = true;
    if (member.comm.rank() == 0)
      member.group.cancel("the label is 11");
    else
      right = has(what_throws([&] { member.comm.barrier(); }), "the label is 11");
    if (member.comm.rank() == 1) member.group.cancel("it knows");  // not reported again
    member.comm.barrier();
    return right ? 0 : 1;
  });
  CHECK(processes.wait() == fine(2));
}

TEST_CASE("repeated failures of a process are all reported, and it does not wait for its peers") {
  auto processes = support::node_processes(3, 20s, [](NodeMember& member) {
    bool right = true;
    for (int series = 0; series < 2; ++series) {
      const auto begin = std::chrono::steady_clock::now();
      if (member.comm.rank() == 2) std::this_thread::sleep_for(500ms);
      for (int attempt = 0; attempt < 20; ++attempt) {
        member.comm.begin_attempt();
        const std::string why = dist::concat("the label is ", attempt, " of ", series);
        if (member.comm.rank() == 0)
          member.group.cancel(std::string_view{why});
        else  // of many the later ones have the texts of earlier ones
          right = has(what_throws([&] { member.comm.barrier(); }), attempt < 8 ? why : "the label is ") && right;
      }
      if (member.comm.rank() == 0) right = std::chrono::steady_clock::now() - begin < 400ms && right;
      member.comm.barrier();
    }
    return right ? 0 : 1;
  });
  CHECK(processes.wait() == fine(3));
}

TEST_CASE("a process's failure notice takes precedence over its exit") {
  auto processes = support::node_processes(3, 20s, [](NodeMember& member) {
    watch_each_other(member);
    if (member.comm.rank() == 1) {
      std::this_thread::sleep_for(1s);
      _exit(0);
    }
    try {
      member.comm.with_timeout(member.comm.rank() == 0 ? 200ms : 20s).barrier();
    } catch (const std::exception& error) {
      member.group.cancel(error);
      const bool right = has(error.what(), "worker 1 (host here) did not");
      if (member.comm.rank() == 0) _exit(right ? 0 : 1);
      return right && has(error.what(), "worker 0 (host here) reports") ? 0 : 1;
    }
    return 2;
  });
  CHECK(processes.wait() == fine(3));
}

TEST_CASE("the death of a process is reported even after an earlier failure of another process") {
  auto processes = support::node_processes(3, 20s, [](NodeMember& member) {
    watch_each_other(member);
    member.comm.barrier();
    if (member.comm.rank() == 2) _exit(0);
    if (member.comm.rank() == 1) {
      member.group.cancel("the label is 11");
      std::this_thread::sleep_for(1s);
      _exit(0);
    }
    std::this_thread::sleep_for(100ms);
    std::string said;
    for (int attempt = 0; attempt < 2; ++attempt) {
      member.comm.begin_attempt();
      said += what_throws([&] { member.comm.barrier(); });
    }
    const bool all_said = has(said, "the label is 11") && has(said, "Worker 2 on host here is gone");
    return all_said && member.comm.is_broken() ? 0 : 1;
  });
  CHECK(processes.wait() == fine(3));
}

TEST_CASE("a missing process is named with its last call when the deadline expires") {
  auto processes = support::node_processes(2, 300ms, [](NodeMember& member) {
    member.comm.barrier();
    if (member.comm.rank() == 1) {
      std::this_thread::sleep_for(1s);
      // The other process has timed out and reports that.
      return has(what_throws([&] { member.comm.barrier(); }), "did not") ? 0 : 1;
    }
    const Ops ops{member.comm};
    std::vector<float> values(4);
    const std::string message = what_throws([&] { ops.all_reduce(dist::sum, std::span<float>{values}); });
    member.group.cancel(std::string_view{message});
    const bool all_said = has(message, "worker 1 (host here) did not") && has(message, "last collective: barrier");
    return all_said && member.comm.is_broken() ? 0 : 1;
  });
  CHECK(processes.wait() == fine(2));
}

TEST_CASE("a membership with another deadline waits for that time (spec H13)") {
  int given_up[2];
  REQUIRE(pipe(given_up) == 0);
  auto processes = support::node_processes(2, 60s, [&](NodeMember& member) {
    char word = 0;
    if (member.comm.rank() == 1) return read(given_up[0], &word, 1) == 1 ? 0 : 2;
    if (!has(what_throws([&] { static_cast<void>(member.comm.with_timeout(-1ns)); }), "is negative")) return 3;
    const dist::NodeCommunicator hasty = member.comm.with_timeout(200ms);
    const std::string message = what_throws<dist::DeadlineExceeded>([&] { hasty.barrier(); });
    return has(message, "worker 1 (host here) did not") && has(message, "waited 0.2 s") &&
                   write(given_up[1], &word, 1) == 1
               ? 0
               : 1;
  });
  CHECK(processes.wait(30s) == fine(2));
  close(given_up[0]);
  close(given_up[1]);
}

TEST_CASE("a process that arrives after another one timed out throws as well") {
  for (const std::size_t elements : {std::size_t{1}, std::size_t{100'000}}) {
    CAPTURE(elements);
    int given_up[2];
    REQUIRE(pipe(given_up) == 0);
    auto processes = support::node_processes(3, 60s, [&](NodeMember& member) {
      std::vector<float> values(elements, 1.0F);
      char word = 0;
      const bool is_late = member.comm.rank() == 1;
      if (is_late && (read(given_up[0], &word, 1) != 1 || read(given_up[0], &word, 1) != 1)) return 2;
      const Ops ops{member.comm.with_timeout(is_late ? 60s : 200ms)};
      const std::string message =
          what_throws<dist::DeadlineExceeded>([&] { ops.all_reduce(dist::sum, std::span{values}); });
      if (!is_late && write(given_up[1], &word, 1) != 1) return 3;
      if (is_late) return has(message, "worker 0 (host here) reports: ") ? 0 : 1;
      return has(message, "worker 1 (host here) did not") ? 0 : 1;
    });
    CHECK(processes.wait(30s) == fine(3));
    close(given_up[0]);
    close(given_up[1]);
  }
}

TEST_CASE("an operand that starts at the end of the window is outside") {
  auto processes = support::node_processes(1, 20s, [](NodeMember& member) {
    std::byte* end = member.comm.stage<std::byte>(0, 1).data();
    while (member.comm.holds(end, 4096)) end += 4096;
    while (member.comm.holds(end, 1)) ++end;
    const dist::OperandOffsets offsets = member.comm.offsets_of({.read = end - 1, .write = end});
    return offsets.read != 0 && offsets.write == 0 ? 0 : 1;
  });
  CHECK(processes.wait() == fine(1));
}

TEST_CASE("a stage that grows keeps its old memory until all members have entered another collective") {
  auto processes = support::node_processes(2, 20s, [](NodeMember& member) {
    const std::span<float> old = member.comm.stage<float>(0, 100'000);
    old.back() = 7;
    member.comm.publish({.operation = "read"}, {.read = old.data()});
    if (member.comm.stage<float>(0, 200'000).data() == old.data()) return 1;
    if (member.comm.peer<float>(1 - member.comm.rank())[old.size() - 1] != 7) return 2;
    if (old.back() != 7) return 3;
    member.comm.barrier();
    return old.back() == 0 ? 0 : 4;  // its pages were released
  });
  CHECK(processes.wait() == fine(2));
}

TEST_CASE("the death of a process is reported at once and not at the deadline (spec O01)") {
  auto processes = support::node_processes(2, 60s, [](NodeMember& member) {
    pid_t numbers[2];
    Ops{member.comm}.all_gather_values("process numbers", getpid(), std::span<pid_t>{numbers});
    if (member.comm.rank() == 0) member.health.watch_process(1, "here", numbers[1]);
    member.comm.barrier();
    if (member.comm.rank() == 1) raise(SIGKILL);
    const std::string message = what_throws<dist::Unavailable>([&] { member.comm.barrier(); });
    return has(message, dist::concat("its process ", numbers[1], " ended")) && member.comm.is_broken() ? 0 : 1;
  });
  CHECK(processes.wait(20s) == std::vector<int>{0, 128 + SIGKILL});
}

TEST_CASE("a process that leaves in order ends the wait of its peers") {
  auto processes = support::node_processes(2, 20s, [](NodeMember& member) {
    if (member.comm.rank() == 1) return 0;
    return has(what_throws([&] { member.comm.barrier(); }), "worker 1 (host here) has ended") ? 0 : 1;
  });
  CHECK(processes.wait(10s) == fine(2));
}

}  // namespace
