#include <dist/comm/messages/transfers.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <vector>

#include <support/simulated_network.hpp>

TEST_CASE("values are cut into segments of at most 1 MiB, of whole elements") {
  std::vector<double> values(300'000);
  const dist::detail::Elements elements{std::span{values}};
  CHECK(elements.count() == 300'000);
  CHECK(elements.size() == sizeof(double));
  constexpr std::size_t most = (std::size_t{1} << 20) / sizeof(double);
  CHECK(elements.segments(0) == 0);
  CHECK(elements.segments(most) == 1);
  CHECK(elements.segments(most + 1) == 2);
  CHECK(elements.segment({10, 20}, 0) == dist::IndexRange{10, 20});
  CHECK(elements.segment({10, 20}, 1).size() == 0);
  CHECK(elements.segment({5, 5 + most + 3}, 1) == dist::IndexRange{5 + most, 5 + most + 3});
  CHECK(elements.bytes({1, 3}).data() == reinterpret_cast<std::byte*>(values.data() + 1));
  CHECK(elements.bytes({1, 3}).size() == 2 * sizeof(double));
}

TEST_CASE("members send and receive at the same time, any number of segments") {
  support::SimulatedNetwork network{3, {.latency = 1}};
  std::size_t wrong = 0;
  const double seconds = network.run([&](const support::SimulatedNetwork::Communicator& comm) {
    // Rank r sends r segments and a part of one to the next rank; rank 0 sends nothing.
    const auto bytes = [](std::size_t rank) { return rank == 0 ? 0 : rank * dist::detail::segment_bytes + 1; };
    const std::size_t left = (comm.rank() + 2) % 3;
    const std::vector<std::byte> out(bytes(comm.rank()), std::byte{static_cast<unsigned char>(comm.rank())});
    std::vector<std::byte> in(bytes(left));
    dist::detail::send_and_receive(comm, out, (comm.rank() + 1) % 3, in, left);
    for (const std::byte byte : in) wrong += byte != std::byte{static_cast<unsigned char>(left)};
  });
  CHECK(wrong == 0);
  CHECK(seconds == 3);
  CHECK(network.messages() == 5);
}
