#include <dist/comm/background.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/comm/node/node_all_reduce.hpp>
#include <dist/comm/self.hpp>
#include <dist/comm/thread/communicator.hpp>
#include <dist/core/float16.hpp>
#include <dist/device/replica_threads.hpp>

#include <doctest/doctest.h>
#include "support/allocations.hpp"
#include "support/node_processes.hpp"
#include "support/what_throws.hpp"

namespace {

using namespace std::chrono_literals;
using dist::BackgroundCollectives;
using dist::BackgroundProgress;
using support::NodeMember;
using support::what_throws;
using Alone = BackgroundCollectives<dist::SelfCollectives>;
static_assert(dist::Future<Alone::Started>);

/// The state shared by a test and its `Gated` collectives.
struct Gate {
  std::atomic<int> opened{0};  // number of collectives that may complete
  std::atomic<int> entered{0};
  std::atomic<int> fails{-1};  // number of the collective that throws
  std::atomic<int> abandoned{0};
  std::vector<std::thread::id> threads{};  // the performing threads

  static void await(const std::atomic<int>& count, int wanted) {
    while (count.load() < wanted) std::this_thread::yield();
  }
};

/// Collectives of a group of `members` that add 1 to each value, a float, once the gate is open.
struct Gated : dist::ReducesByRecords {
  struct Communicator {
    std::size_t members;
    [[nodiscard]] std::size_t size() const noexcept { return members; }
    void begin_run(std::uint64_t) const noexcept {}
  };
  Gate* gate;
  std::size_t members;
  explicit Gated(Gate* its_gate, std::size_t of_members = 1) : gate(its_gate), members(of_members) {}

  [[nodiscard]] Communicator communicator() const noexcept { return {members}; }
  void all_reduce_bytes(const Record&, std::span<std::byte> values) const {
    const int number = gate->entered++;
    gate->threads.push_back(std::this_thread::get_id());
    Gate::await(gate->opened, number + 1);
    if (gate->fails == number) throw std::runtime_error("the wire is cut");
    for (std::size_t at = 0; at < values.size(); at += sizeof(float)) {
      float value = 0;
      std::memcpy(&value, values.data() + at, sizeof(value));
      ++value;
      std::memcpy(values.data() + at, &value, sizeof(value));
    }
  }
  void cancel(const dist::FailureNotice&) const noexcept { ++gate->abandoned; }
  void cancel(const std::exception_ptr&) const noexcept {}
  void begin_attempt() const noexcept {}
  [[nodiscard]] bool is_broken() const noexcept { return false; }
  [[nodiscard]] Gated with_timeout(std::chrono::nanoseconds) const { return *this; }
};

std::span<float> of(float& value) { return {&value, 1}; }

}  // namespace

TEST_CASE("copies of one process are reduced in order, and all get the result") {
  Alone background{dist::SelfCollectives{}};
  std::vector<std::vector<float>> copies(3, std::vector<float>(2000, 100.0f));
  for (std::size_t i = 0; i < 2000; ++i) {
    copies[0][i] = 1e8f;  // lost in any other order
    copies[1][i] = 1;
    copies[2][i] = -1e8f;
  }
  float* const places[] = {copies[0].data(), copies[1].data(), copies[2].data()};
  background.start_all_reduce(dist::sum, std::span<float* const>{places}, dist::IndexRange{10, 1990}).wait();
  int wrong = 0;
  for (const auto& copy : copies)
    for (std::size_t i = 10; i < 1990; ++i) wrong += copy[i] != 0;
  CHECK(wrong == 0);
  CHECK(copies[0][9] == 1e8f);
  CHECK(copies[1][9] == 1);
  CHECK(copies[2][1990] == -1e8f);
}

TEST_CASE("the mean divides by the number of copies, and 16-bit values are rounded once") {
  Alone background{dist::SelfCollectives{}};
  float one[] = {1, 10}, two[] = {3, 30};
  float* const floats[] = {one, two};
  background.start_all_reduce(dist::mean, std::span<float* const>{floats}, dist::IndexRange{0, 2});
  using B = dist::BFloat16;
  B first[] = {B{256.0f}}, second[] = {B{1.0f}}, third[] = {B{1.0f}};  // bfloat16 can represent 258, but not 257
  B* const shorts[] = {first, second, third};
  background.start_all_reduce(dist::sum, std::span<B* const>{shorts}, dist::IndexRange{0, 1}).wait();
  for (const float* copy : {one, two}) {
    CHECK(copy[0] == 2);
    CHECK(copy[1] == 20);
  }
  for (const B* copy : {first, second, third}) CHECK(static_cast<float>(copy[0]) == 258.0f);
}

TEST_CASE("an empty range may be null on one member and reserved on another") {
  dist::ReplicaThreads threads{2};
  dist::ThreadGroup group{threads.status(), threads.spin_budget(), 5s};
  std::vector<std::string> failures(2);
  threads.run([&](std::size_t rank) {
    using Ops = dist::ThreadAllReduce::On<dist::ThreadCommunicator>;
    std::vector<dist::Float16> none;
    if (rank == 1) none.reserve(4);
    BackgroundCollectives<Ops> background{Ops{dist::ThreadCommunicator{group, rank}}};
    failures[rank] = what_throws([&] { background.start_all_reduce(dist::mean, std::span{none}).wait(); });
  });
  CHECK(failures[0] == "nothing was thrown");
  CHECK(failures[1] == "nothing was thrown");
}

TEST_CASE("a collective runs while the caller computes, and completes before wait returns") {
  Gate gate;
  BackgroundCollectives<Gated> background{Gated{&gate}};
  CHECK(background.overlaps());
  float first = 1, second = 10;
  const auto one = background.start_all_reduce(dist::sum, of(first));
  const auto two = background.start_all_reduce(dist::sum, of(second));
  Gate::await(gate.entered, 1);
  CHECK(!one.is_done());
  gate.opened = 1;
  one.wait();
  CHECK(first == 2);
  CHECK(!two.is_done());
  gate.opened = 2;
  two.wait();
  CHECK(two.is_done());
  CHECK(background.done() == 2);
  two.wait();  // again, and for an earlier collective
  one.wait();
  CHECK(second == 11);
  CHECK(gate.threads[0] == gate.threads[1]);
  CHECK(gate.threads[0] != std::this_thread::get_id());
}

TEST_CASE("collectives may be started before earlier ones complete, and several threads may wait") {
  Gate gate;
  BackgroundCollectives<Gated> background{Gated{&gate}};
  std::vector<float> values(100);
  std::vector<BackgroundCollectives<Gated>::Started> works;
  for (float& value : values) works.push_back(background.start_all_reduce(dist::sum, of(value)));
  std::vector<std::thread> waiting;
  std::atomic<int> wrong{0};
  for (std::size_t which : {std::size_t{99}, std::size_t{50}, std::size_t{0}})
    waiting.emplace_back([&, which] {
      works[which].wait();
      for (std::size_t i = 0; i <= which; ++i) wrong += values[i] != 1;
    });
  gate.opened = 100;
  for (std::thread& thread : waiting) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("collectives complete without a wait, and a default-constructed handle is done") {
  Gate gate;
  gate.opened = 10;
  float values[] = {0, 0};
  {
    BackgroundCollectives<Gated> background{Gated{&gate}};
    static_cast<void>(background.start_all_reduce(dist::sum, of(values[0])));
    static_cast<void>(background.start_all_reduce(dist::sum, of(values[1])));
    const BackgroundCollectives<Gated>::Started nothing;
    CHECK(nothing.is_done());
    nothing.wait();
  }
  CHECK(values[0] == 1);
  CHECK(values[1] == 1);
}

TEST_CASE("waits for a failed or later collective throw its exception, and no further collective runs") {
  Gate gate;
  gate.fails = 1;
  gate.opened = 10;
  BackgroundCollectives<Gated> background{Gated{&gate}};
  float values[] = {0, 0, 0};
  const auto before = background.start_all_reduce(dist::sum, of(values[0]));
  const auto failing = background.start_all_reduce(dist::sum, of(values[1]));
  const auto after = background.start_all_reduce(dist::sum, of(values[2]));
  CHECK(what_throws<std::exception>([&] { after.wait(); }) == "the wire is cut");
  for (int again = 0; again < 2; ++again)
    CHECK(what_throws<std::exception>([&] { failing.wait(); }) == "the wire is cut");
  before.wait();
  CHECK(values[0] == 1);
  CHECK(values[2] == 0);
  CHECK(background.is_broken());
  CHECK(what_throws<std::exception>([&] { background.require_whole(); }) == "the wire is cut");
  CHECK(what_throws<std::exception>([&] { background.start_all_reduce(dist::sum, of(values[2])).wait(); }) ==
        "the wire is cut");
  CHECK(gate.entered == 2);
}

TEST_CASE("a run of this process alone rejects collectives, and its failure does not break the group") {
  Gate gate;
  gate.opened = 10;
  BackgroundCollectives<Gated> background{Gated{&gate, 2}};
  float value = 0;
  background.begin_run(true);
  CHECK(what_throws<dist::WrongStrategy>([&] { background.require_whole(); }).starts_with("a background collective"));
  CHECK(what_throws<dist::WrongStrategy>([&] {
          background.start_all_reduce(dist::sum, of(value));
        }).starts_with("a background collective was called in run_here"));
  background.cancel(std::runtime_error("no data"));
  background.end_run();
  background.begin_run(false);
  background.require_whole();
  background.start_all_reduce(dist::sum, of(value)).wait();
  background.end_run();
  CHECK(value == 1);
  CHECK(gate.abandoned == 0);
}

TEST_CASE("cancel waits for the running collectives and drops the others") {
  Gate gate;
  BackgroundCollectives<Gated> background{Gated{&gate}};
  float values[] = {0, 0, 0};
  const auto begun = background.start_all_reduce(dist::sum, of(values[0]));
  const auto dropped = background.start_all_reduce(dist::sum, of(values[1]));
  const auto last = background.start_all_reduce(dist::sum, of(values[2]));
  Gate::await(gate.entered, 1);
  std::thread settling{[&] { background.cancel(); }};
  std::this_thread::sleep_for(20ms);
  gate.opened = 10;
  settling.join();
  begun.wait();
  CHECK(values[0] == 1);
  for (const auto& work : {dropped, last})
    CHECK(what_throws<dist::InvalidArgument>([&] { work.wait(); }).find("was dropped") != std::string::npos);
  CHECK(values[2] == 0);
  background.start_all_reduce(dist::sum, of(values[2])).wait();
  CHECK(values[2] == 1);
}

TEST_CASE("after cancel a group of one continues, and a larger group is broken") {
  for (const std::size_t members : {std::size_t{1}, std::size_t{2}}) {
    CAPTURE(members);
    Gate gate;
    gate.opened = 10;
    BackgroundCollectives<Gated> background{Gated{&gate, members}};
    float value = 0;
    background.start_all_reduce(dist::sum, of(value)).wait();
    background.cancel(std::runtime_error{"the disk is full"});
    CHECK(gate.abandoned == 1);
    CHECK(background.failures() == 1);
    CHECK(background.is_broken() == (members > 1));
    const std::string message =
        what_throws<std::exception>([&] { background.start_all_reduce(dist::sum, of(value)).wait(); });
    if (members == 1) {
      CHECK(message == "nothing was thrown");
      CHECK(value == 2);
    } else {
      CAPTURE(message);
      CHECK(message.find("the disk is full") != std::string::npos);
      CHECK(value == 1);
    }
  }
}

TEST_CASE("while_waiting: the waiting thread performs the collectives, and other threads wait for it") {
  Gate gate;
  gate.opened = 10;
  BackgroundCollectives<Gated> background{Gated{&gate}, BackgroundProgress::while_waiting};
  CHECK(!background.overlaps());
  float first = 0, second = 0;
  background.start_all_reduce(dist::sum, of(first));
  const auto last = background.start_all_reduce(dist::sum, of(second));
  std::this_thread::sleep_for(10ms);
  CHECK(gate.entered == 0);
  std::thread other{[&] { last.wait(false); }};
  last.wait();
  other.join();
  CHECK(first == 1);
  CHECK(second == 1);
  for (const std::thread::id thread : gate.threads) CHECK(thread == std::this_thread::get_id());

  gate.fails = 2;
  CHECK(what_throws<std::exception>([&] { background.start_all_reduce(dist::sum, of(first)).wait(); }) ==
        "the wire is cut");
  background.start_all_reduce(dist::sum, of(first));
  background.cancel();
  CHECK(first == 1);
}

TEST_CASE("no allocations occur after warm-up") {
  Alone background{dist::SelfCollectives{}};
  std::vector<float> one(5000), two(5000);
  float* const copies[] = {one.data(), two.data()};
  const auto round = [&] {
    Alone::Started last;
    for (int i = 0; i < 40; ++i)
      last = background.start_all_reduce(dist::sum, std::span<float* const>{copies}, dist::IndexRange{0, 5000});
    last.wait();
  };
  round();
  const std::size_t before = allocations;
  for (int i = 0; i < 10; ++i) round();
  CHECK(allocations == before);
}

TEST_CASE("collectives appear in a trace") {
  Alone background{dist::SelfCollectives{}};
  dist::Trace trace;
  float one[] = {1}, two[] = {2};
  float* const copies[] = {one, two};
  background.start_all_reduce(dist::sum, std::span<float* const>{copies}, dist::IndexRange{0, 1}, {&trace, "sum", 8})
      .wait();
  REQUIRE(trace.events().size() == 1);
  CHECK(trace.events()[0].name() == "sum");
  CHECK(trace.events()[0].number == 8);
  CHECK(trace.events()[0].thread != gettid());
}

namespace {

using InWindow = dist::NodeAllReduce::On<dist::NodeCommunicator>;

/// True if the wait for a reduction throws an `Expected` within five seconds.
template <class Expected>
bool wait_ends_by(NodeMember& member, std::size_t elements = 1000) {
  BackgroundCollectives<InWindow> background{InWindow{member.comm}};
  std::vector<float> values(elements, 1.0f);
  const auto start = std::chrono::steady_clock::now();
  try {
    background.start_all_reduce(dist::sum, std::span{values}).wait();
  } catch (const Expected& error) {
    return background.is_broken() && std::chrono::steady_clock::now() - start < 5s;
  }
  return false;
}

}  // namespace

TEST_CASE("processes reduce copies of all their replicas in the background") {
  for (std::size_t count = 1; count <= 3; ++count) {
    CAPTURE(count);
    auto processes = support::node_processes(count, 20s, [&](NodeMember& member) {
      BackgroundCollectives<InWindow> background{InWindow{member.comm}};
      const auto rank = static_cast<float>(member.comm.rank());
      std::vector<float> one(3000), two(3000);
      int wrong = 0;
      for (int step = 0; step < 20; ++step) {
        for (std::size_t i = 0; i < 3000; ++i) one[i] = rank, two[i] = 10;
        float* const copies[] = {one.data(), two.data()};
        BackgroundCollectives<InWindow>::Started last;
        for (const dist::IndexRange bucket : {dist::IndexRange{2000, 3000}, dist::IndexRange{0, 2000}})
          last = background.start_all_reduce(dist::sum, std::span<float* const>{copies}, bucket);
        last.wait();
        const auto sum = static_cast<float>(count * (count - 1) / 2 + 10 * count);
        for (std::size_t i = 0; i < 3000; ++i) wrong += one[i] != sum || two[i] != sum;
      }
      return wrong == 0 ? 0 : 1;
    });
    CHECK(processes.wait() == std::vector<int>(count, 0));
  }
}

TEST_CASE("failures between processes end the wait") {
  SUBCASE("a peer fails") {
    auto processes = support::node_processes(2, 20s, [](NodeMember& member) {
      if (member.comm.rank() == 0) return wait_ends_by<dist::PeerError>(member) ? 0 : 1;
      BackgroundCollectives<InWindow> background{InWindow{member.comm}};
      background.cancel(std::runtime_error{"no more paper"});
      return 0;
    });
    CHECK(processes.wait() == std::vector<int>{0, 0});
  }
  SUBCASE("a peer dies") {
    // Only siblings can be monitored: the second process gets the number of the first one through the window.
    auto processes = support::node_processes(2, 20s, [](NodeMember& member) {
      const InWindow ops{member.comm};
      int numbers[2];
      ops.all_gather_values("process numbers", static_cast<int>(getpid()), std::span<int>{numbers});
      if (member.comm.rank() == 1) kill(getpid(), SIGKILL);
      member.health.watch_process(1, "here", numbers[1]);
      return wait_ends_by<dist::Unavailable>(member) ? 0 : 1;
    });
    CHECK(processes.wait() == std::vector<int>{0, 128 + SIGKILL});
  }
  SUBCASE("a peer is late") {
    auto processes = support::node_processes(2, 200ms, [](NodeMember& member) {
      if (member.comm.rank() == 0) return wait_ends_by<dist::DeadlineExceeded>(member) ? 0 : 1;
      std::this_thread::sleep_for(1s);
      return 0;
    });
    CHECK(processes.wait() == std::vector<int>{0, 0});
  }
  SUBCASE("a peer makes a different call") {
    auto processes = support::node_processes(2, 20s, [](NodeMember& member) {
      return wait_ends_by<dist::CollectiveMismatch>(member, 1000 + member.comm.rank()) ? 0 : 1;
    });
    CHECK(processes.wait() == std::vector<int>{0, 0});
  }
}
