// The suite of neighbour exchanges. A strategy joins with two lines, for host memory, and for its own memory on any
// device, which a replica's queue reads and writes:
//   TEST_CASE_TEMPLATE_INSTANTIATE(neighbor_exchanges, Make<TheStrategy, 2>);
//   TEST_CASE_TEMPLATE_INSTANTIATE(neighbor_exchanges_in_place, Make<TheStrategy, 2>);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/subgroup.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/shape.hpp>

#include <doctest/doctest.h>
#include <support/on_host.hpp>

namespace conformance {

namespace neighbors {

/// Returns element `i` from replica `from` to replica `to`: distinct whole numbers.
DIST_HD inline double value(std::size_t from, std::size_t to, std::size_t i) {
  return static_cast<double>((from * 64 + to) * 1'000'000 + i);
}
inline std::vector<double> values(std::size_t from, std::size_t to, std::size_t count) {
  std::vector<double> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = value(from, to, i);
  return all;
}

/// Returns how many elements replica `from` sends to replica `to` in an irregular graph: sometimes none, sometimes to
/// itself.
inline std::size_t count_between(std::size_t from, std::size_t to) {
  const std::size_t kind = (5 * from + 3 * to) % 7;
  return kind < 3 ? 0 : kind == 3 ? 1 : kind == 6 ? 40'000 + from : 100 * kind + to;
}

/// Writes `value(from, to, i)`.
struct Write {
  double* field;
  std::size_t from, to;
  DIST_HD void operator()(std::size_t i) const { field[i] = value(from, to, i); }
};
/// A step of an automaton on a ring: whole numbers below 1000, computed from both neighbours.
struct Step {
  const double* now;
  double* next;
  DIST_HD void operator()(std::size_t i) const {
    const auto sum = static_cast<std::size_t>(3 * now[i - 1] + 5 * now[i] + 7 * now[i + 1] + 1);
    next[i] = static_cast<double>(sum % 1000);
  }
};
/// Returns the cells of such a ring after `steps` steps; each cell starts with its index.
inline std::vector<double> ring_after(std::size_t cells, std::size_t steps) {
  std::vector<double> now(cells), next(cells);
  for (std::size_t i = 0; i < cells; ++i) now[i] = static_cast<double>(i);
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < cells; ++i) {
      const double around[3]{now[(i + cells - 1) % cells], now[i], now[(i + 1) % cells]};
      Step{around, next.data() + i - 1}(1);
    }
    now.swap(next);
  }
  return now;
}
struct Number {
  double* cells;
  std::size_t first;
  DIST_HD void operator()(std::size_t i) const { cells[i] = static_cast<double>(first + i); }
};

/// Returns the type and the text of the error of an exchange; the replica continues afterwards.
template <class Exchange>
std::string error_of(Exchange&& exchange) {
  try {
    exchange();
  } catch (const dist::ShapeMismatch& error) {
    return dist::concat("ShapeMismatch: ", error.what());
  } catch (const dist::CollectiveMismatch& error) {
    return dist::concat("CollectiveMismatch: ", error.what());
  }
  return "no error";
}

/// Checks that `body(replica)` returns 0 errors on the replicas of this process.
template <class S, class Body>
void require_right(S& strategy, Body&& body) {
  const auto wrong = strategy.run(body);
  for (const std::size_t mistakes : strategy.local_results(wrong)) CHECK(mistakes == 0);
}

/// Checks that all replicas of this process got an error that starts with `type` and contains each of `parts`.
template <class S, class Body>
void require_error(S& strategy, const std::string& type, std::initializer_list<std::string> parts, Body&& body) {
  const auto said = strategy.run([&](auto& replica) { return error_of([&] { body(replica); }); });
  for (const std::string& text : strategy.local_results(said)) {
    CAPTURE(text);
    CHECK(text.find(type + ": ") == 0);
    for (const std::string& part : parts) CHECK(text.find(part) != std::string::npos);
  }
}

}  // namespace neighbors

}  // namespace conformance

TEST_CASE_TEMPLATE_DEFINE("neighbours exchange elements in any graph", MakeStrategy, neighbor_exchanges) {
  namespace neighbors = conformance::neighbors;
  using neighbors::value;
  using neighbors::values;
  const auto owner = MakeStrategy::make();
  auto& strategy = *owner;
  const std::size_t size = strategy.num_replicas_in_sync();
  CAPTURE(size);

  SUBCASE("the halo of a ring, several times") {
    // Includes rings of one and two replicas, in which both neighbours are the same.
    neighbors::require_right(strategy, [&](auto& replica) {
      const std::size_t id = replica.replica_id().index();
      const std::size_t left = (id + size - 1) % size;
      const std::size_t right = (id + 1) % size;
      std::size_t wrong = 0;
      for (std::size_t step = 0; step < 20; ++step) {
        std::vector<double> row(6);  // a halo of one element on either side
        for (std::size_t i = 1; i < 5; ++i) row[i] = value(id, step, i);
        replica.neighbor_exchange({{left, std::span{row}.subspan(1, 1)}, {right, std::span{row}.subspan(4, 1)}},
                                  {{right, std::span{row}.subspan(5, 1)}, {left, std::span{row}.subspan(0, 1)}});
        wrong += row[0] != value(left, step, 4);
        wrong += row[5] != value(right, step, 1);
        for (std::size_t i = 1; i < 5; ++i) wrong += row[i] != value(id, step, i);
      }
      return wrong;
    });
  }

  SUBCASE("the halo of a line, whose ends have one neighbour or none") {
    neighbors::require_right(strategy, [&](auto& replica) {
      const std::size_t id = replica.replica_id().index();
      std::vector<float> below(3), above(3);
      const std::vector<float> mine(3, static_cast<float>(id + 1));
      std::vector<dist::SendTo> sends;
      std::vector<dist::ReceiveFrom> receives;
      if (id > 0) {
        sends.emplace_back(id - 1, mine);
        receives.emplace_back(id - 1, above);
      }
      if (id + 1 < size) {
        sends.emplace_back(id + 1, mine);
        receives.emplace_back(id + 1, below);
      }
      replica.neighbor_exchange(sends, receives);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < 3; ++i) {
        wrong += above[i] != static_cast<float>(id);
        wrong += below[i] != (id + 1 < size ? static_cast<float>(id + 2) : 0.0f);
      }
      return wrong;
    });
  }

  SUBCASE("the halo of a torus with rows and packed columns") {
    const std::size_t columns = size % 2 == 0 ? 2 : 1;
    const std::size_t rows = size / columns;
    neighbors::require_right(strategy, [&](auto& replica) {
      const std::size_t id = replica.replica_id().index();
      const std::size_t row = id / columns;
      const std::size_t column = id % columns;
      const auto at = [&](std::size_t r, std::size_t c) { return (r % rows) * columns + c % columns; };
      const std::size_t up = at(row + rows - 1, column), down = at(row + 1, column);
      const std::size_t left = at(row, column + columns - 1), right = at(row, column + 1);
      constexpr std::size_t side = 5;
      std::array<std::vector<double>, 4> out, in;  // up, down, left, right
      for (std::size_t edge = 0; edge < 4; ++edge) {
        out[edge] = values(id, edge, side);
        in[edge].resize(side);
      }
      replica.neighbor_exchange({{up, out[0]}, {down, out[1]}, {left, out[2]}, {right, out[3]}},
                                {{down, in[1]}, {up, in[0]}, {right, in[3]}, {left, in[2]}});
      std::size_t wrong = 0;
      wrong += in[1] != values(down, 0, side);  // sent upwards by the replica below
      wrong += in[0] != values(up, 1, side);
      wrong += in[3] != values(right, 2, side);
      wrong += in[2] != values(left, 3, side);
      return wrong;
    });
  }

  SUBCASE("an irregular graph with large and small messages, and with messages of a replica to itself") {
    neighbors::require_right(strategy, [&](auto& replica) {
      const std::size_t id = replica.replica_id().index();
      std::vector<std::vector<double>> out, in;
      for (std::size_t peer = 0; peer < size; ++peer) {
        out.push_back(values(id, peer, neighbors::count_between(id, peer)));
        in.emplace_back(neighbors::count_between(peer, id));
      }
      std::vector<dist::SendTo> sends;
      std::vector<dist::ReceiveFrom> receives;
      for (std::size_t step = 0; step < size; ++step) {
        const std::size_t to = (id + step) % size;
        const std::size_t from = (id + size - step) % size;
        if (!out[to].empty()) sends.emplace_back(to, out[to]);
        if (!in[from].empty()) receives.emplace_back(from, in[from]);
      }
      replica.neighbor_exchange(sends, receives);
      std::size_t wrong = 0;
      for (std::size_t peer = 0; peer < size; ++peer)
        wrong += in[peer] != values(peer, id, neighbors::count_between(peer, id));
      return wrong;
    });
  }

  SUBCASE("messages between two replicas arrive in order, of different types and without elements") {
    struct Point {
      std::int32_t x;
      double y;
    };
    neighbors::require_right(strategy, [&](auto& replica) {
      const std::size_t id = replica.replica_id().index();
      const std::size_t next = (id + 1) % size;
      const std::size_t last = (id + size - 1) % size;
      const std::array<int, 3> numbers{1, 2, static_cast<int>(id)};
      const Point point{static_cast<std::int32_t>(id), 0.5};
      const std::vector<float> nothing;
      std::array<int, 3> numbers_in{};
      Point point_in{};
      std::vector<float> nothing_in;
      replica.neighbor_exchange({{next, numbers}, {next, nothing}, {next, std::span{&point, 1}}},
                                {{last, numbers_in}, {last, nothing_in}, {last, std::span{&point_in, 1}}});
      return std::size_t{numbers_in != std::array<int, 3>{1, 2, static_cast<int>(last)}} +
             std::size_t{point_in.x != static_cast<std::int32_t>(last) || point_in.y != 0.5};
    });
  }

  SUBCASE("no replica has neighbours") {
    strategy.run([](auto& replica) { replica.neighbor_exchange({}, {}); });
  }

  SUBCASE("a mismatch between both ends of a message is reported on all replicas, which continue") {
    const std::size_t last = size - 1;
    // The last replica sends three elements to the first, which expects four.
    const auto other_count = [&](auto& replica) {
      const std::size_t id = replica.replica_id().index();
      const std::vector<double> out(3);
      std::vector<double> in(4);
      std::vector<dist::SendTo> sends;
      std::vector<dist::ReceiveFrom> receives;
      if (id == last) sends.emplace_back(0, out);
      if (id == 0) receives.emplace_back(last, in);
      replica.neighbor_exchange(sends, receives);
    };
    const auto other_type = [&](auto& replica) {
      const std::size_t id = replica.replica_id().index();
      const std::vector<float> out(3);
      std::vector<std::int32_t> in(3);
      std::vector<dist::SendTo> sends;
      std::vector<dist::ReceiveFrom> receives;
      if (id == last) sends.emplace_back(0, out);
      if (id == 0) receives.emplace_back(last, in);
      replica.neighbor_exchange(sends, receives);
    };
    const auto not_received = [&](auto& replica) {
      const std::vector<double> out(3);
      std::vector<dist::SendTo> sends;
      if (replica.replica_id().index() == 0) sends.emplace_back(last, out);
      replica.neighbor_exchange(sends, {});
    };
    const auto not_sent = [&](auto& replica) {
      std::vector<double> in(1);
      std::vector<dist::ReceiveFrom> receives;
      if (replica.replica_id().index() == last) receives.emplace_back(0, in);
      replica.neighbor_exchange({}, receives);
    };
    const auto swapped = [&](auto& replica) {  // the same elements in another order
      const std::size_t id = replica.replica_id().index();
      const std::vector<double> two(2), five(5);
      std::vector<double> two_in(2), five_in(5);
      std::vector<dist::SendTo> sends;
      std::vector<dist::ReceiveFrom> receives;
      if (id == last) {
        sends.emplace_back(0, two);
        sends.emplace_back(0, five);
      }
      if (id == 0) {
        receives.emplace_back(last, five_in);
        receives.emplace_back(last, two_in);
      }
      replica.neighbor_exchange(sends, receives);
    };
    const std::string from_last = dist::concat("message 0 from replica ", last, " to replica 0");
    const std::string to_last = dist::concat("message 0 from replica 0 to replica ", last);
    neighbors::require_error(strategy, "ShapeMismatch", {from_last, "3 elements of 8 bytes", "4 elements of 8 bytes"},
                             other_count);
    neighbors::require_error(strategy, "ShapeMismatch", {from_last, "3 elements of 4 bytes, of another type"},
                             other_type);
    neighbors::require_error(strategy, "CollectiveMismatch",
                             {to_last, "3 elements of 8 bytes", dist::concat("replica ", last, " does not receive")},
                             not_received);
    neighbors::require_error(strategy, "CollectiveMismatch", {to_last, "1 element of 8 bytes", "does not send"},
                             not_sent);
    neighbors::require_error(strategy, "ShapeMismatch", {from_last, "2 elements of 8 bytes", "5 elements of 8 bytes"},
                             swapped);
    neighbors::require_right(strategy, [&](auto& replica) {
      const std::size_t id = replica.replica_id().index();
      const std::size_t next = (id + 1) % size;
      const std::size_t before = (id + size - 1) % size;
      const std::vector<double> out = values(id, next, 10);
      std::vector<double> in(10);
      replica.neighbor_exchange({{next, out}}, {{before, in}});
      return std::size_t{in != values(before, id, 10)};
    });
  }

  SUBCASE("a replica out of range is an invalid argument") {
    const auto said = strategy.run([&](auto& replica) {
      const std::vector<double> out(3);
      try {
        replica.neighbor_exchange({{size, out}}, {});
      } catch (const dist::InvalidArgument& error) {
        return std::string{error.what()};
      }
      return std::string{"no error"};
    });
    for (const std::string& text : strategy.local_results(said))
      CHECK(text.find(dist::concat("replica ", size, " of ", size)) != std::string::npos);
  }
}

TEST_CASE_TEMPLATE_DEFINE("neighbours exchange elements in the strategy's memory", MakeStrategy,
                          neighbor_exchanges_in_place) {
  namespace neighbors = conformance::neighbors;
  using neighbors::value;
  using neighbors::values;
  const auto owner = MakeStrategy::make();
  auto& strategy = *owner;
  using Strategy = std::remove_cvref_t<decltype(strategy)>;
  constexpr bool on_devices = !Strategy::Device::Space::host_accessible;
  const std::size_t size = strategy.num_replicas_in_sync();
  CAPTURE(size);

  SUBCASE("the halo of a ring in several steps, between asynchronous work on it") {
    constexpr std::size_t cells = 37, steps = 12;
    const auto even = strategy.template buffer<double>({cells + 2});
    const auto odd = strategy.template buffer<double>({cells + 2});
    const std::vector<double> expected = neighbors::ring_after(cells * size, steps);
    neighbors::require_right(strategy, [&](auto& replica) {
      const std::size_t id = replica.replica_id().index();
      const std::size_t left = (id + size - 1) % size;
      const std::size_t right = (id + 1) % size;
      auto now = even.component(replica);
      auto next = odd.component(replica);
      replica.for_each(cells, neighbors::Number{now.data() + 1, id * cells});
      for (std::size_t step = 0; step < steps; ++step) {
        replica.neighbor_exchange({{left, now.subspan(1, 1)}, {right, now.subspan(cells, 1)}},
                                  {{right, now.subspan(cells + 1, 1)}, {left, now.subspan(0, 1)}});
        replica.for_each(dist::IndexRange{1, cells + 1}, neighbors::Step{now.data(), next.data()});
        std::swap(now, next);
      }
      const auto seen = support::on_host(replica.queue(), now);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < cells; ++i) wrong += seen[i + 1] != expected[id * cells + i];
      return wrong;
    });
  }

  SUBCASE("an irregular graph with large and small messages, and with messages of a replica to itself") {
    const std::size_t most = size * 40'100;  // sent or received by one replica
    const auto sent = strategy.template buffer<double>({most});
    const auto received = strategy.template buffer<double>({most});
    neighbors::require_right(strategy, [&](auto& replica) {
      const std::size_t id = replica.replica_id().index();
      std::vector<std::size_t> out{0}, in{0};
      for (std::size_t peer = 0; peer < size; ++peer) {
        out.push_back(out.back() + neighbors::count_between(id, peer));
        in.push_back(in.back() + neighbors::count_between(peer, id));
      }
      const auto from = sent.component(replica);
      const auto to = received.component(replica);
      std::vector<dist::SendTo> sends;
      std::vector<dist::ReceiveFrom> receives;
      for (std::size_t peer = 0; peer < size; ++peer) {
        replica.for_each(out[peer + 1] - out[peer], neighbors::Write{from.data() + out[peer], id, peer});
        sends.emplace_back(peer, from.subspan(out[peer], out[peer + 1] - out[peer]));  // sometimes without elements
        receives.emplace_back(peer, to.subspan(in[peer], in[peer + 1] - in[peer]));
      }
      replica.neighbor_exchange(sends, receives);
      const auto seen = support::on_host(replica.queue(), to);
      std::size_t wrong = 0;
      for (std::size_t peer = 0; peer < size; ++peer)
        for (std::size_t i = in[peer]; i < in[peer + 1]; ++i) wrong += seen[i] != value(peer, id, i - in[peer]);
      return wrong;
    });
  }

  SUBCASE("one call sends messages in host memory and in the strategy's memory, each in order") {
    const auto field = strategy.template buffer<double>({60});
    neighbors::require_right(strategy, [&](auto& replica) {
      const std::size_t id = replica.replica_id().index();
      const std::size_t next = (id + 1) % size;
      const std::size_t last = (id + size - 1) % size;
      const auto mine = field.component(replica);
      replica.for_each(30, neighbors::Write{mine.data(), id, next});
      const std::vector<float> out{1, 2, static_cast<float>(id)};
      std::vector<float> in(3);
      replica.neighbor_exchange({{next, mine.first(10)}, {next, out}, {next, mine.subspan(10, 20)}},
                                {{last, mine.subspan(30, 10)}, {last, in}, {last, mine.subspan(40, 20)}});
      std::size_t wrong = in != std::vector<float>{1, 2, static_cast<float>(last)};
      const auto seen = support::on_host(replica.queue(), mine);
      for (std::size_t i = 0; i < 30; ++i) wrong += seen[30 + i] != value(last, id, i);
      return wrong;
    });
  }

  SUBCASE("only some replicas have messages in the strategy's memory") {
    const auto field = strategy.template buffer<double>({2});
    neighbors::require_right(strategy, [&](auto& replica) {
      const std::size_t id = replica.replica_id().index();
      const auto mine = field.component(replica);
      replica.for_each(1, neighbors::Write{mine.data(), id, 7});
      std::vector<dist::SendTo> sends;
      std::vector<dist::ReceiveFrom> receives;
      if (id == size - 1) sends.emplace_back(0, mine.first(1));
      if (id == 0) receives.emplace_back(size - 1, mine.subspan(1, 1));
      replica.neighbor_exchange(sends, receives);
      replica.for_each(1, neighbors::Write{mine.data(), id, 8});  // after it was copied
      const auto seen = support::on_host(replica.queue(), mine);
      return std::size_t{seen[1] != (id == 0 ? value(size - 1, 7, 0) : 0.0)};
    });
  }

  SUBCASE("a mismatch is reported on all replicas, nothing is copied on devices, and all continue") {
    const std::size_t last = size - 1;
    const auto field = strategy.template buffer<double>({10});
    const auto numbers = strategy.template buffer<std::int64_t>({3});
    const auto clear = [&](auto& replica) { replica.queue().fill(field.component(replica), 0.0); };
    // The first replica also receives a valid message.
    const auto exchange = [&](auto& replica, const auto& out, const auto& in) {
      const std::size_t id = replica.replica_id().index();
      const auto mine = field.component(replica);
      clear(replica);
      replica.for_each(2, neighbors::Write{mine.data(), id + 1, 0});
      std::vector<dist::SendTo> sends;
      std::vector<dist::ReceiveFrom> receives;
      if (id == last) {
        sends.emplace_back(0, mine.first(2));
        sends.emplace_back(0, out);
      }
      if (id == 0) {
        receives.emplace_back(last, mine.subspan(8, 2));
        receives.emplace_back(last, in);
      }
      replica.neighbor_exchange(sends, receives);
    };
    const auto require_untouched = [&] {
      if constexpr (on_devices)
        neighbors::require_right(strategy, [&](auto& replica) {
          const auto seen = support::component_on_host(field, replica);
          return std::size_t{seen[8] != 0.0} + std::size_t{seen[9] != 0.0};
        });
    };
    const std::string from_last = dist::concat("message 1 from replica ", last, " to replica 0");
    const std::string place = on_devices ? " on a device" : "";
    neighbors::require_error(strategy, "ShapeMismatch",
                             {from_last, "3 elements of 8 bytes" + place, "4 elements of 8 bytes" + place},
                             [&](auto& replica) {
                               const auto mine = field.component(replica);
                               exchange(replica, mine.subspan(2, 3), mine.subspan(4, 4));
                             });
    require_untouched();
    neighbors::require_error(
        strategy, "ShapeMismatch", {from_last, "3 elements of 8 bytes" + place + ", of another type"},
        [&](auto& replica) { exchange(replica, numbers.component(replica), field.component(replica).subspan(4, 3)); });
    require_untouched();
    if constexpr (on_devices) {
      neighbors::require_error(
          strategy, "ShapeMismatch",
          {from_last, "3 elements of 8 bytes on a device, but the receiver expects 3 elements of 8 bytes)"},
          [&](auto& replica) {
            std::vector<double> of_host(3);
            exchange(replica, field.component(replica).subspan(2, 3), std::span{of_host});
          });
      require_untouched();
    }
    neighbors::require_error(strategy, "CollectiveMismatch",
                             {dist::concat("message 0 from replica 0 to replica ", last), "does not send"},
                             [&](auto& replica) {
                               std::vector<dist::ReceiveFrom> receives;
                               if (replica.replica_id().index() == last)
                                 receives.emplace_back(0, field.component(replica).first(1));
                               replica.neighbor_exchange({}, receives);
                             });
    neighbors::require_right(strategy, [&](auto& replica) {
      const auto mine = field.component(replica);
      exchange(replica, mine.subspan(2, 3), mine.subspan(5, 3));
      const auto seen = support::on_host(replica.queue(), mine);
      return std::size_t{replica.replica_id().index() == 0 && seen[9] != value(last + 1, 0, 1)};
    });
  }
}
