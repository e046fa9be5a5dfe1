// The real algorithms between up to 1,024 virtual ranks: their results must be right, and their virtual time must match
// the model.
// optimised
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/messages/algorithm_thresholds.hpp>
#include <dist/comm/messages/call_agreement.hpp>
#include <dist/comm/messages/halving_doubling_all_reduce.hpp>
#include <dist/comm/messages/polls.hpp>
#include <dist/comm/messages/tree_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/core/error.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/data/batch_size.hpp>
#include <dist/data/replica_batches.hpp>

#include <support/sanitizers.hpp>
#include <support/simulated_meeting.hpp>
#include <support/simulated_network.hpp>
#include <support/simulated_workers.hpp>

namespace {

using support::SimulatedNetwork;

/// A cluster with 10 Gbit/s: 10 us, 1.25 GB/s, and 10 GB/s for combined bytes.
constexpr dist::MessageCosts ethernet{.latency = 10e-6, .per_byte = 0.8e-9, .per_reduced_byte = 0.1e-9};

#ifdef DIST_TEST_SANITIZER
constexpr std::size_t some_ranks[] = {2, 3, 5, 8, 16};  // a fiber takes a millisecond with the thread sanitizer
#else
constexpr std::size_t some_ranks[] = {2, 3, 5, 8, 16, 64, 100, 1024};
#endif

using Byte = std::uint8_t;
constexpr support::Metered<dist::Sum> metered_sum;

/// Equal within 5 %, also for small numbers of seconds.
[[nodiscard]] doctest::Approx about(double seconds) { return doctest::Approx(seconds).scale(0).epsilon(0.05); }

[[nodiscard]] Byte value_of(std::size_t rank, std::size_t i) { return static_cast<Byte>(7 * rank + i % 13); }
[[nodiscard]] Byte sum_of(std::size_t ranks, std::size_t i) {
  return static_cast<Byte>(7 * (ranks * (ranks - 1) / 2) + ranks * (i % 13));
}

/// Returns the virtual time of an all-reduce of `bytes` bytes, and checks the results.
template <class Policy>
double all_reduce_seconds(std::size_t ranks, std::size_t bytes) {
  SimulatedNetwork network{ranks, ethernet};
  std::size_t wrong = 0;
  const double seconds = network.run([&](const SimulatedNetwork::Communicator& comm) {
    std::vector<Byte> values(bytes);
    for (std::size_t i = 0; i < bytes; ++i) values[i] = value_of(comm.rank(), i);
    typename Policy::template On<SimulatedNetwork::Communicator>{comm}.all_reduce(metered_sum, std::span{values});
    for (std::size_t i = 0; i < bytes; ++i) wrong += values[i] != sum_of(ranks, i);
  });
  CHECK(wrong == 0);
  return seconds;
}

/// A number of bytes that divides evenly between the ranks, and exceeds the limit below which members combine
/// everything.
[[nodiscard]] std::size_t even_bytes(std::size_t ranks, std::size_t shares_of_64) { return ranks * 64 * shares_of_64; }

}  // namespace

TEST_CASE("a message takes alpha + n beta, and each member sends and receives one at a time") {
  constexpr dist::MessageCosts costs{.latency = 2, .per_byte = 1};
  SimulatedNetwork network{3, costs};
  std::vector<double> of_rank(3);
  std::vector<std::byte> memory(4);
  // Rank 0 sends two messages, one after the other; the messages of ranks 0 and 1 to rank 2 arrive one after the other.
  const double seconds = network.run([&](const SimulatedNetwork::Communicator& comm) {
    const std::span<std::byte> four{memory};
    if (comm.rank() == 0) {
      auto first = comm.start_send(four, 1);
      auto second = comm.start_send(four, 2);
      comm.wait(first);
      comm.wait(second);
    } else if (comm.rank() == 1) {
      auto first = comm.start_receive(four, 0);
      comm.wait(first);
      auto second = comm.start_send(four, 2);
      comm.wait(second);
    } else {
      auto first = comm.start_receive(four, 0);
      auto second = comm.start_receive(four, 1);
      comm.wait(first);
      comm.wait(second);
    }
  });
  CHECK(seconds == doctest::Approx(18));
  CHECK(network.messages() == 3);
  CHECK(network.most_messages() == 2);
}

TEST_CASE("combined bytes take gamma each, on the clock of the rank that combines them") {
  SimulatedNetwork network{2, {.latency = 0, .per_byte = 0, .per_reduced_byte = 1}};
  const double seconds = network.run([&](const SimulatedNetwork::Communicator& comm) {
    float sum = 0;
    for (std::size_t i = 0; i < 10 * (comm.rank() + 1); ++i) sum = metered_sum(sum, 1.0f);
    comm.barrier();
    for (std::size_t i = 0; i < 100 * (2 - comm.rank()); ++i) sum = metered_sum(sum, 1.0f);
  });
  CHECK(seconds == doctest::Approx(4 * (20 + 200)));
}

TEST_CASE("messages between two ranks keep their order, for any order of sender and receiver") {
  for (const bool receiver_is_first : {false, true}) {
    SimulatedNetwork network{2, ethernet};
    std::vector<int> received;
    static_cast<void>(network.run([&](const SimulatedNetwork::Communicator& comm) {
      const bool sends = (comm.rank() == 0) != receiver_is_first;
      for (int round = 0; round < 3; ++round) {
        int value = sends ? round : -1;
        const std::span<int> one{&value, 1};
        auto transfer = sends ? comm.start_send(std::as_bytes(one), 1 - comm.rank())
                              : comm.start_receive(std::as_writable_bytes(one), 1 - comm.rank());
        comm.wait(transfer);
        if (!sends) received.push_back(value);
      }
    }));
    CHECK(received == std::vector<int>{0, 1, 2});
  }
}

TEST_CASE("deadlocks, mismatches and exceptions end the run with an error, and the network stays usable") {
  SimulatedNetwork network{4, ethernet};
  std::vector<std::byte> memory(8);
  CHECK_THROWS_WITH_AS(static_cast<void>(network.run([&](const SimulatedNetwork::Communicator& comm) {
                         const std::vector<int> unwound(100);
                         auto transfer = comm.start_receive(memory, (comm.rank() + 1) % 4);
                         comm.wait(transfer);
                       })),
                       "all wait for each other: rank 0 for a message of rank 1", std::runtime_error);
  CHECK_THROWS_AS(static_cast<void>(network.run([&](const SimulatedNetwork::Communicator& comm) {
                    comm.announce({.operation = "all_reduce", .elements = comm.rank() < 2 ? 1U : 2U});
                    comm.barrier();
                  })),
                  dist::CollectiveMismatch);
  CHECK_THROWS_WITH_AS(static_cast<void>(network.run([&](const SimulatedNetwork::Communicator& comm) {
                         if (comm.rank() == 3) throw std::runtime_error("rank 3 fails");
                         comm.barrier();
                       })),
                       "rank 3 fails", std::runtime_error);
  CHECK(network.run([](const SimulatedNetwork::Communicator& comm) { comm.barrier(); }) == 0);
}

TEST_CASE("a ring takes the time of the model, with the right sums") {
  for (const std::size_t ranks : some_ranks) {
    CAPTURE(ranks);
    const std::size_t bytes = even_bytes(ranks, ranks < 64 ? 256 : 4);
    const double seconds = all_reduce_seconds<dist::RingAllReduce>(ranks, bytes);
    CHECK(seconds == about(ring_seconds(ethernet, bytes, ranks)));
  }
}

TEST_CASE("halving and doubling take the time of the model with any number of members, with the right sums") {
  for (const std::size_t ranks : some_ranks) {
    CAPTURE(ranks);
    const std::size_t bytes = even_bytes(ranks, ranks < 64 ? 256 : 4);
    const double seconds = all_reduce_seconds<dist::HalvingDoublingAllReduce>(ranks, bytes);
    CHECK(seconds == about(halving_doubling_seconds(ethernet, bytes, ranks)));
  }
}

TEST_CASE("a tree takes the time of the model, with the right sums") {
  for (const std::size_t ranks : some_ranks) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{10'000}}) {
      CAPTURE(ranks);
      CAPTURE(bytes);
      const double seconds = all_reduce_seconds<dist::TreeAllReduce>(ranks, bytes);
      CHECK(seconds == about(tree_seconds(ethernet, bytes, ranks)));
    }
  }
}

TEST_CASE("small all-reduces of many members take one pass of doubling") {
  for (const std::size_t ranks : some_ranks) {
    CAPTURE(ranks);
    const double seconds = all_reduce_seconds<dist::HalvingDoublingAllReduce>(ranks, 16);
    const double bytes = static_cast<double>(16 * (ranks - 1));
    CHECK(seconds == about(static_cast<double>(dist::detail::doubling_rounds(ranks)) * ethernet.latency +
                           bytes * (ethernet.per_byte + ethernet.per_reduced_byte)));
  }
}

TEST_CASE("an agreement takes at most 2 log2(P) messages per member, one after another") {
  for (const std::size_t ranks : some_ranks) {
    CAPTURE(ranks);
    const support::AgreementCost cost = support::agreement_cost(ranks, ethernet);
    const std::size_t partners = dist::detail::Dissemination{0, ranks}.partners();
    CHECK(cost.messages == partners);
    CHECK(static_cast<double>(cost.messages) <= 2 * std::log2(ranks));
    const double of_one = ethernet.latency + ethernet.per_byte * sizeof(dist::detail::CallAgreement::Message);
    CHECK(cost.seconds == about(static_cast<double>(partners) * of_one));
  }
}

TEST_CASE("the agreement on the end of the data takes at most 2 log2(P) messages per member and step") {
  for (const std::size_t ranks : some_ranks) {
    CAPTURE(ranks);
    SimulatedNetwork network{ranks, ethernet};
    std::size_t wrong = 0;
    static_cast<void>(network.run([&](const SimulatedNetwork::Communicator& comm) {
      const support::SimulatedMembership all{comm};
      dist::data::AgreedEnd end{support::SimulatedAgreement{all, {}}, dist::data::Cardinality::unknown(),
                                dist::data::Remainder::keep};
      std::size_t steps = 0;
      while (end.runs(steps < comm.rank() % 3)) ++steps;
      wrong += steps != std::min<std::size_t>(ranks - 1, 2);
    }));
    CHECK(wrong == 0);
    const std::size_t partners = dist::detail::Dissemination{0, ranks}.partners();
    const std::size_t questions = 2 + std::min<std::size_t>(ranks - 1, 2);
    // The time to create a group of simulated ranks counts once.
    SimulatedNetwork alone{ranks, ethernet};
    static_cast<void>(alone.run([](const SimulatedNetwork::Communicator& comm) {
      const support::SimulatedMembership all{comm};
      static_cast<void>(support::SimulatedAgreement{all, {}});
    }));
    CHECK(network.messages() - alone.messages() == ranks * partners * questions);
    CHECK(static_cast<double>(partners) <= 2 * std::log2(ranks));
  }
}

TEST_CASE("if one member differs, all detect it in the same meeting, and meet in the next one") {
  for (const std::size_t ranks : some_ranks) {
    CAPTURE(ranks);
    SimulatedNetwork network{ranks, ethernet};
    std::size_t refused = 0;
    static_cast<void>(network.run([&](const SimulatedNetwork::Communicator& comm) {
      support::SimulatedMeeting meeting{comm};
      for (const std::size_t other : {std::size_t{0}, ranks / 2}) {
        meeting.meet({.operation = "barrier"});
        try {
          meeting.meet({.operation = "all_reduce", .elements = comm.rank() == other ? 2U : 1U});
        } catch (const dist::CollectiveMismatch&) {
          ++refused;
        }
      }
      meeting.meet({.operation = "barrier"});
    }));
    CHECK(refused == 2 * ranks);
    CHECK(network.most_messages() == 5 * dist::detail::Dissemination{0, ranks}.partners());
  }
}

namespace {

/// Checks all operations on all ranks, with counts that divide evenly and others.
template <class Policy>
void check_all_operations(std::size_t ranks) {
  CAPTURE(Policy::name);
  CAPTURE(ranks);
  SimulatedNetwork network{ranks, ethernet};
  std::size_t wrong = 0;
  std::size_t reduced = 0;  // in shards of all ranks
  static_cast<void>(network.run([&](const SimulatedNetwork::Communicator& comm) {
    const typename Policy::template On<SimulatedNetwork::Communicator> ops{comm};
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{700}, std::size_t{40'003}}) {
      std::vector<Byte> values(count);
      const auto start = [&] {
        for (std::size_t i = 0; i < count; ++i) values[i] = value_of(comm.rank(), i);
      };
      start();
      ops.all_reduce(dist::sum, std::span{values});
      for (std::size_t i = 0; i < count; ++i) wrong += values[i] != sum_of(ranks, i);
      for (const std::size_t root : {std::size_t{0}, ranks / 2, ranks - 1}) {
        start();
        ops.broadcast(root, std::span{values});
        for (std::size_t i = 0; i < count; ++i) wrong += values[i] != value_of(root, i);
      }
      start();
      ops.reduce_scatter(dist::sum, std::span<const Byte>{values}, [&](std::size_t first, std::span<const Byte> sums) {
        for (std::size_t i = 0; i < sums.size(); ++i) wrong += sums[i] != sum_of(ranks, first + i);
        reduced += sums.size();
      });
      for (std::size_t i = 0; i < count; ++i) wrong += values[i] != value_of(comm.rank(), i);
    }
    // Parts of different sizes, some of them empty.
    std::vector<std::size_t> counts(ranks);
    std::size_t total = 0;
    std::size_t first = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (rank == comm.rank()) first = total;
      total += counts[rank] = rank % 3 * 100;
    }
    std::vector<std::size_t> all(total);
    for (std::size_t i = 0; i < counts[comm.rank()]; ++i) all[first + i] = first + i + 1;
    ops.all_gather(std::span<const std::size_t>{all}.subspan(first, counts[comm.rank()]),
                   std::span<const std::size_t>{counts}, std::span{all});
    for (std::size_t i = 0; i < total; ++i) wrong += all[i] != i + 1;
    std::vector<std::size_t> all_values(ranks);
    ops.all_gather_values("ranks", comm.rank(), std::span{all_values});
    for (std::size_t rank = 0; rank < ranks; ++rank) wrong += all_values[rank] != rank;
  }));
  CHECK(wrong == 0);
  CHECK(reduced == 1 + 700 + 40'003);
}

}  // namespace

TEST_CASE("all operations give the right results with any number of members") {
  for (std::size_t ranks = 1; ranks <= 17; ++ranks) {
    check_all_operations<dist::RingAllReduce>(ranks);
    check_all_operations<dist::TreeAllReduce>(ranks);
    check_all_operations<dist::HalvingDoublingAllReduce>(ranks);
  }
}

TEST_CASE("the virtual time is the same in every run") {
  const double first = all_reduce_seconds<dist::RingAllReduce>(12, 100'003);
  CHECK(first == all_reduce_seconds<dist::RingAllReduce>(12, 100'003));
}
