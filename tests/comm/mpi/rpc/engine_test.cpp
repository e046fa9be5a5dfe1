// ranks: 2
// thread levels: funneled multiple
#include <dist/comm/mpi/rpc/engine.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/mpi/rpc/quiet_call.hpp"
#include "support/what_throws.hpp"

namespace {

using dist::mpi::detail::CallEngine;
using dist::mpi::detail::Listener;
using dist::mpi::detail::Packet;
using dist::mpi::detail::PacketKind;
using Visit = CallEngine::Visit;

bool many_threads_may_call() { return dist::mpi::ThreadPermit{}.level() == dist::mpi::ThreadLevel::multiple; }

struct Probe final : dist_test::QuietCall {
  explicit Probe(std::size_t to) : QuietCall(to, std::chrono::seconds{30}) {}
  void take(Packet packet) override { answer = packet.kind; }
  void look(std::chrono::steady_clock::time_point) override { ++looks; }

  PacketKind answer = PacketKind::ping;
  int looks = 0;
};

/// Waits until `done()` holds, at most ten seconds.
template <class Done>
bool wait_for(CallEngine& engine, Done&& done) {
  Visit visit{engine};
  dist::detail::ConditionVariable nobody_notifies;
  engine.wait(visit, nobody_notifies, CallEngine::Clock::now() + std::chrono::seconds{10}, done);
  return done();
}

/// What a process answers to a request to a port where nobody listens.
PacketKind answer_of(CallEngine& engine, std::size_t peer) {
  const auto probe = std::make_shared<Probe>(peer);
  std::uint64_t number = 0;
  {
    const Visit visit{engine};
    number = engine.add_client_call(probe);
    engine.send(peer, {.kind = PacketKind::request, .call = number, .port = 9});
  }
  CHECK(wait_for(engine, [&] { return probe->answer != PacketKind::ping; }));
  const Visit visit{engine};
  engine.remove_client_call(number);
  return probe->answer;
}

}  // namespace

TEST_CASE("an MPI that only one thread may call is refused with what helps") {
  if (many_threads_may_call()) return;
  CHECK(support::what_throws<dist::InvalidArgument>([] { static_cast<void>(CallEngine::of_process()); }) ==
        "Calls by MPI need threads that may all call it (MPI was initialised with MPI_THREAD_FUNNELED). Initialise it "
        "with "
        "MPI_Init_thread and MPI_THREAD_MULTIPLE, or leave that to this library.");
}

TEST_CASE("a request to a port where nobody listens is answered so, by every process") {
  if (!many_threads_may_call()) return;
  CallEngine& engine = CallEngine::of_process();
  CHECK(&engine == &CallEngine::of_process());
  CHECK(engine.peers().size() == 2);
  for (std::size_t peer = 0; peer < 2; ++peer) CHECK(answer_of(engine, peer) == PacketKind::absent);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("bytes that are no packets harm nobody") {
  if (!many_threads_may_call()) return;
  CallEngine& engine = CallEngine::of_process();
  const int other = 1 - static_cast<int>(engine.peers().rank());
  std::uint32_t state = 1;
  std::vector<std::vector<std::byte>> messages;
  for (std::size_t size = 0; size < 200; ++size) {
    // Half of them begin as packets do.
    std::vector<std::byte> bytes = Packet{.kind = PacketKind::request, .port = 9}.bytes();
    bytes.resize(size % 2 == 0 ? size : std::max(size, bytes.size()));
    for (std::size_t i = size % 2 == 0 ? 0 : 4; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::byte>((state = state * 1664525u + 1013904223u) >> 24);
    messages.push_back(std::move(bytes));
  }
  messages.emplace_back(1 << 20);  // longer than any packet
  for (const auto& message : messages)
    MPI_Send(message.data(), static_cast<int>(message.size()), MPI_BYTE, other, 1, engine.native());
  for (std::size_t peer = 0; peer < 2; ++peer) CHECK(answer_of(engine, peer) == PacketKind::absent);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("open calls are looked at while nobody waits for them, and what has to wait for the lock runs without it") {
  if (!many_threads_may_call()) return;
  CallEngine& engine = CallEngine::of_process();
  const auto probe = std::make_shared<Probe>(engine.peers().rank());
  std::uint64_t number = 0;
  std::atomic<bool> ran{false};
  {
    const Visit visit{engine};
    number = engine.add_client_call(probe);
    engine.after_visit([&] {
      const Visit again{engine};
      ran = true;
    });
  }
  CHECK(ran);
  std::this_thread::sleep_for(std::chrono::milliseconds{100});
  const Visit visit{engine};
  CHECK(probe->looks > 5);
  engine.remove_client_call(number);
}

TEST_CASE("a port has one listener at a time") {
  if (!many_threads_may_call()) return;
  struct Nobody final : Listener {
    void accept(std::size_t, Packet) override {}
  };
  CallEngine& engine = CallEngine::of_process();
  Nobody first, second;
  const Visit visit{engine};
  CHECK(engine.listen(77, first));
  CHECK_FALSE(engine.listen(77, second));
  engine.stop_listening(77);
  CHECK(engine.listen(77, second));
  engine.stop_listening(77);
}
