// The suite of policies between processes, over any network: a typed suite for programs that run under mpirun,
//   TEST_CASE_TEMPLATE_INSTANTIATE(process_collectives, TheFixture);
// and functions that take the collectives of one member and record errors, for processes that a test forks.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <conformance/elements.hpp>
#include <dist/comm/cross_device_ops.hpp>
#include <dist/core/error.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>

#include <doctest/doctest.h>
#include <support/largest_magnitude.hpp>
#include <support/sanitizers.hpp>

namespace conformance {

/// The errors found, as text; empty if there are none.
class Findings {
 public:
  template <class... What>
  void expect(bool holds, const What&... what) {
    if (!holds && all_.size() < 4000) all_ += dist::concat(what..., "; ");
  }
  [[nodiscard]] const std::string& all() const noexcept { return all_; }

 private:
  std::string all_;
};

// Zero, one, fewer than members, a few, and more than one block; fewer if a sanitizer checks every element, and one
// type of each kind, because sanitizer builds take minutes to compile.
#ifdef DIST_TEST_SANITIZER
inline constexpr std::size_t process_counts[] = {0, 1, 7, 1000, 10007};
inline constexpr bool every_type = false;
#else
inline constexpr std::size_t process_counts[] = {0, 1, 7, 1000, 100003};
inline constexpr bool every_type = true;
#endif

namespace process {

/// Plain memory of `count` elements, which a std::vector of bool does not have.
template <class T>
class Values {
 public:
  explicit Values(std::size_t count) : memory_(new T[count]()), count_(count) {}
  Values(std::size_t rank, std::size_t count) : Values(count) {
    for (std::size_t i = 0; i < count; ++i) memory_[i] = element<T>(rank, i);
  }
  [[nodiscard]] std::span<T> span() noexcept { return {memory_.get(), count_}; }
  [[nodiscard]] std::span<const T> view() const noexcept { return {memory_.get(), count_}; }

 private:
  std::unique_ptr<T[]> memory_;
  std::size_t count_;
};

template <class T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

template <class T, class Op, class Ops>
void check_all_reduce(const Ops& ops, Op op, std::size_t count, Findings& found) {
  const auto comm = ops.communicator();
  Values<T> values(comm.rank(), count);
  ops.all_reduce(op, values.span());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += values.view()[i] != expected_reduction<T, Op>(comm.size(), i);
  found.expect(wrong == 0, "all_reduce(", Op::name, ") of ", count, " ", dist::dtype_name<T>, ": ", wrong, " wrong");
}

template <class T, class Ops>
void check_operations(const Ops& ops, Findings& found) {
  for (const std::size_t count : process_counts) {
    const auto each = [&](auto... op) { (check_all_reduce<T>(ops, op, count, found), ...); };
    if constexpr (std::same_as<T, bool>)
      each(dist::min, dist::max, dist::bit_and, dist::bit_or, dist::bit_xor);
    else if constexpr (std::integral<T>)
      each(dist::sum, dist::min, dist::max, dist::prod, dist::bit_and, dist::bit_or, dist::bit_xor);
    else
      each(dist::sum, dist::min, dist::max, dist::prod, dist::mean);
  }
}

/// Checks NaN, zeros of both signs and infinities.
template <class T, class Ops>
void check_extremes(const Ops& ops, Findings& found) {
  const auto comm = ops.communicator();
  if (comm.size() == 1) return;
  const auto check = [&]<class Op>(Op op, std::size_t count) {
    Values<T> values(count);
    for (std::size_t i = 0; i < count; ++i) values.span()[i] = special_element<T>(comm.size(), comm.rank(), i);
    ops.all_reduce(op, values.span());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i)
      wrong += !conformance::same_bits(values.view()[i], expected_extremum<T, Op>(comm.size(), i));
    found.expect(wrong == 0, "all_reduce(", Op::name, ") of ", count, " special ", dist::dtype_name<T>, ": ", wrong,
                 " wrong");
  };
  for (const std::size_t count : process_counts) {
    check(dist::max, count);
    check(dist::min, count);
  }
}

/// Checks user-defined operations, which libraries do not support.
template <class Ops>
void check_own_operations(const Ops& ops, Findings& found) {
  for (const std::size_t count : process_counts) {
    check_all_reduce<float>(ops, support::LargestMagnitude{}, count, found);
    check_all_reduce<std::int8_t>(ops, support::LargestMagnitude{}, count, found);
    check_all_reduce<dist::BFloat16>(ops, support::LargestMagnitude{}, count, found);
  }
}

/// Numbers whose sum depends on the order of additions.
inline float awkward(std::size_t rank, std::size_t i) {
  const float magnitude = rank % 3 == 0 ? 1.0f : rank % 3 == 1 ? 1e4f : 1e-4f;
  return (rank % 2 == 0 ? magnitude : -magnitude) / static_cast<float>(3 + rank + i % 97);
}

template <class Ops>
void check_same_bits(const Ops& ops, std::size_t count, Findings& found) {
  const auto comm = ops.communicator();
  std::vector<float> first;
  for (int repetition = 0; repetition < 3; ++repetition) {
    std::vector<float> sums(count);
    for (std::size_t i = 0; i < count; ++i) sums[i] = awkward(comm.rank(), i);
    ops.all_reduce(dist::sum, std::span<float>{sums});
    if (repetition == 0) first = sums;
    found.expect(same_bits<float>(sums, first), "run ", repetition, " has other bits");
  }
  const std::vector<std::size_t> counts(comm.size(), count);
  std::vector<float> all_values(count * comm.size());
  ops.all_gather(std::span<const float>{first}, std::span<const std::size_t>{counts}, std::span<float>{all_values});
  for (std::size_t rank = 0; rank < comm.size(); ++rank)
    found.expect(same_bits<float>(std::span{all_values}.subspan(rank * count, count), first), "rank ", rank,
                 " has other bits");
}

template <class T, class Ops>
void check_broadcasts(const Ops& ops, Findings& found) {
  const auto comm = ops.communicator();
  for (const std::size_t count : process_counts)
    for (std::size_t root = 0; root < comm.size(); ++root) {
      Values<T> values(comm.rank(), count);
      const Values<T> expected(root, count);
      ops.broadcast(root, values.span());
      found.expect(same_bits<T>(values.view(), expected.view()), "broadcast of ", count, " ", dist::dtype_name<T>,
                   " from ", root);
    }
}

/// Gathers r + `first` elements times `factor` of rank r; with 0, rank 0 has none.
template <class T, class Ops>
void check_all_gather(const Ops& ops, std::size_t first, std::size_t factor, bool in_place, Findings& found) {
  const auto comm = ops.communicator();
  std::vector<std::size_t> counts(comm.size());
  for (std::size_t rank = 0; rank < comm.size(); ++rank) counts[rank] = (rank + first) * factor;
  const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  Values<T> expected(total);
  Values<T> all(total);
  std::size_t place = 0;
  std::size_t my_place = 0;
  for (std::size_t rank = 0; rank < comm.size(); ++rank) {
    if (rank == comm.rank()) my_place = place;
    for (std::size_t i = 0; i < counts[rank]; ++i) expected.span()[place++] = element<T>(rank, i);
  }
  const Values<T> mine(comm.rank(), counts[comm.rank()]);
  std::span<const T> operand = mine.view();
  if (in_place) {
    std::copy(operand.begin(), operand.end(), all.span().data() + my_place);
    operand = std::span<const T>{all.span().subspan(my_place, operand.size())};
  }
  ops.all_gather(operand, std::span<const std::size_t>{counts}, all.span());
  found.expect(same_bits<T>(all.view(), expected.view()), "all_gather of ", total, " ", dist::dtype_name<T>);
}

template <class Ops>
void check_all_gathers(const Ops& ops, Findings& found) {
  for (const bool in_place : {false, true}) {
    check_all_gather<std::int32_t>(ops, 0, 1, in_place, found);
    check_all_gather<float>(ops, 1, 1, in_place, found);
    check_all_gather<double>(ops, 0, 5003, in_place, found);
    check_all_gather<bool>(ops, 3, 7, in_place, found);
    check_all_gather<dist::BFloat16>(ops, 2, 1000, in_place, found);
  }
}

template <class Ops>
void check_exchanges(const Ops& ops, Findings& found) {
  struct Large {
    std::size_t rank;
    char filling[9000];
  };
  const auto comm = ops.communicator();
  for (std::size_t round = 0; round < 20; ++round) {
    std::vector<std::size_t> ranks(comm.size());
    ops.all_gather_values("ranks", comm.rank() + round, std::span<std::size_t>{ranks});
    std::vector<Large> all(comm.size());
    ops.all_gather_values("large", Large{comm.rank() + round, {}}, std::span<Large>{all});
    for (std::size_t other = 0; other < comm.size(); ++other)
      found.expect(ranks[other] == other + round && all[other].rank == other + round, "exchange, round ", round);
  }
}

/// Checks that the reduction updates each element once; mirrors are equal afterwards, gradients unchanged.
template <class T, class Op, class Ops>
void check_reduce_and_apply(const Ops& ops, Op op, std::size_t count, Findings& found) {
  const auto comm = ops.communicator();
  Values<T> gradient(comm.rank(), count);
  const Values<T> before(comm.rank(), count);
  Values<T> mirror(0, count);
  ops.reduce_and_apply(op, std::span<const T>{gradient.span()}, mirror.span(), [](std::size_t i, T weight, T reduced) {
    return static_cast<T>(weight + reduced + static_cast<T>(i % 3));
  });
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i)
    wrong += mirror.view()[i] !=
             static_cast<T>(element<T>(0, i) + expected_reduction<T, Op>(comm.size(), i) + static_cast<T>(i % 3));
  found.expect(wrong == 0, "reduce_and_apply(", Op::name, ") of ", count, " ", dist::dtype_name<T>, ": ", wrong,
               " wrong");
  found.expect(same_bits<T>(gradient.view(), before.view()), "reduce_and_apply changed gradients");
}

/// Checks that the shards cover all elements once, and are the shards that are updated.
template <class T, class Op, class Ops>
void check_halves(const Ops& ops, Op op, std::size_t count, Findings& found) {
  const auto comm = ops.communicator();
  const Values<T> values(comm.rank(), count);
  std::vector<std::uint8_t> seen(count);
  std::size_t wrong = 0;
  ops.reduce_scatter(op, values.view(), [&](std::size_t first, std::span<const T> reduced) {
    wrong += reduced.empty();
    for (std::size_t i = 0; i < reduced.size(); ++i) {
      ++seen[first + i];
      wrong += reduced[i] != expected_reduction<T, Op>(comm.size(), first + i);
    }
  });
  const std::vector<std::uint8_t> mine = seen;
  Values<T> mirror(0, count);
  std::size_t elsewhere = 0;
  ops.update_shards(values.view(), mirror.span(), [&](std::size_t i, T, T gradient) {
    elsewhere += mine[i] != 1;
    wrong += gradient != element<T>(comm.rank(), i);
    return element<T>(1, i);
  });
  ops.all_reduce(dist::sum, std::span<std::uint8_t>{seen});
  const auto once = static_cast<std::size_t>(std::count(seen.begin(), seen.end(), std::uint8_t{1}));
  for (std::size_t i = 0; i < count; ++i) wrong += mirror.view()[i] != element<T>(1, i);
  found.expect(wrong == 0 && elsewhere == 0 && once == count, "halves(", Op::name, ") of ", count, " ",
               dist::dtype_name<T>, ": ", wrong, " wrong, ", elsewhere, " elsewhere, ", once, " once");
}

template <class Ops>
void check_gradients(const Ops& ops, Findings& found) {
  for (const std::size_t count : process_counts) {
    check_reduce_and_apply<float>(ops, dist::sum, count, found);
    check_reduce_and_apply<double>(ops, dist::mean, count, found);
    check_reduce_and_apply<dist::Float16>(ops, dist::sum, count, found);
    check_halves<float>(ops, dist::sum, count, found);
    check_halves<double>(ops, dist::mean, count, found);
    check_halves<std::int32_t>(ops, dist::min, count, found);
    check_halves<dist::BFloat16>(ops, dist::max, count, found);
  }
}

/// Makes collectives of different kinds and extents, one after another.
template <class Ops>
void check_sequences(const Ops& ops, Findings& found) {
  const auto comm = ops.communicator();
  const auto rank = static_cast<std::int64_t>(comm.rank());
  const auto members = static_cast<std::int64_t>(comm.size());
  std::size_t wrong = 0;
  for (std::int64_t round = 0; round < 30; ++round) {
    std::int64_t one = rank + round;
    ops.all_reduce(dist::sum, std::span<std::int64_t>{&one, 1});
    wrong += one != members * (members - 1) / 2 + members * round;
    std::vector<std::int64_t> many(static_cast<std::size_t>(100 + 200 * round), rank - round);
    ops.all_reduce(dist::min, std::span<std::int64_t>{many});
    for (const std::int64_t value : many) wrong += value != -round;
    comm.barrier();
    std::fill(many.begin(), many.end(), rank);
    ops.broadcast(static_cast<std::size_t>(round % members), std::span<std::int64_t>{many});
    for (const std::int64_t value : many) wrong += value != round % members;
  }
  found.expect(wrong == 0, "collectives one after another: ", wrong, " wrong");
}

/// Checks that `call` throws an E whose text contains all of `parts`.
template <class E, class Call>
void expect_error(Findings& found, std::string_view what, Call&& call, std::initializer_list<std::string> parts) {
  try {
    call();
    found.expect(false, what, " threw nothing");
  } catch (const E& error) {
    for (const std::string& part : parts)
      found.expect(std::string_view{error.what()}.find(part) != std::string_view::npos, what, " says '", error.what(),
                   "', without '", part, "'");
  } catch (const std::exception& other) {
    found.expect(false, what, " threw something else: ", other.what());
  }
}

/// Member `size - 1` makes another call than the others: all get an error that names both, and continue.
template <class Ops>
void check_mismatches(const Ops& ops, Findings& found) {
  const auto comm = ops.communicator();
  const std::size_t odd = comm.size() - 1;
  const bool differs = comm.rank() == odd;
  const auto reduces = [&](auto op, auto zero, std::size_t count) {
    std::vector<decltype(zero)> values(count);
    ops.all_reduce(op, std::span{values});
  };
  const auto both = [&](std::string_view what, auto usual, auto other, std::string usual_text, std::string other_text) {
    expect_error<dist::CollectiveMismatch>(found, what, [&] { differs ? other() : usual(); }, {usual_text, other_text});
    check_all_reduce<float>(ops, dist::sum, 10, found);
  };
  const auto usual = [&] { reduces(dist::sum, 0.0f, 100); };
  const std::string text = "all_reduce(sum) of 100 f32";
  for (int again = 0; again < 3; ++again)  // without a successful collective in between
    expect_error<dist::CollectiveMismatch>(found, "another count, again",
                                           [&] { reduces(dist::sum, 0.0f, differs ? 101 : 100); },
                                           {text, "all_reduce(sum) of 101 f32"});
  both(
      "another count", usual, [&] { reduces(dist::sum, 0.0f, 101); }, text, "all_reduce(sum) of 101 f32");
  both(
      "another type", usual, [&] { reduces(dist::sum, 0.0, 100); }, text, "all_reduce(sum) of 100 f64");
  both(
      "another operation", usual, [&] { reduces(dist::prod, 0.0f, 100); }, text, "all_reduce(prod) of 100 f32");
  both(
      "another kind", usual,
      [&] {
        std::vector<float> values(100);
        ops.broadcast(0, std::span<float>{values});
      },
      text, "broadcast of 100 f32 from 0");
  both(
      "a barrier", usual, [&] { comm.barrier(); }, text, "barrier");
  const auto broadcast_from = [&](std::size_t root) {
    std::vector<float> values(100);
    ops.broadcast(root, std::span<float>{values});
  };
  both(
      "another root", [&] { broadcast_from(0); }, [&] { broadcast_from(1); }, "broadcast of 100 f32 from 0",
      "broadcast of 100 f32 from 1");
  const auto gather = [&](std::size_t mine_more) {
    std::vector<std::size_t> counts(comm.size(), 2);
    counts[0] += mine_more;
    counts[1] += 1 - mine_more;
    const std::vector<float> mine(counts[comm.rank()]);
    std::vector<float> all(2 * comm.size() + 1);
    ops.all_gather(std::span<const float>{mine}, std::span<const std::size_t>{counts}, std::span<float>{all});
  };
  both(
      "other counts", [&] { gather(0); }, [&] { gather(1); }, "all_gather of", "with different element counts");
}

/// Member `size - 1` does not call in time: the others report this, with its last collective. `wait_outside`
/// synchronises all members without `ops`, whose group may be unusable afterwards.
template <class Ops, class WaitOutside>
void check_skipped_call(const Ops& ops, WaitOutside&& wait_outside, Findings& found) {
  const auto comm = ops.communicator();
  const std::size_t absent = comm.size() - 1;
  check_all_reduce<float>(ops, dist::sum, 33, found);
  comm.barrier();
  if (comm.rank() != absent) {
    std::vector<float> values(44);
    expect_error<dist::DeadlineExceeded>(
        found, "a skipped call", [&] { ops.all_reduce(dist::sum, std::span<float>{values}); },
        {"orkers reached a collective in time", dist::concat("worker ", absent, " (host "), "all_reduce(sum) of 44 f32",
         "barrier"});
  }
  wait_outside();
}

/// Mirrors with different extents: all get an error before any element of a mirror changes, and continue.
template <class Ops>
void check_mismatched_update(const Ops& ops, Findings& found) {
  const std::size_t rank = ops.communicator().rank();
  const std::vector<float> gradients(3001, 1);
  std::vector<float> mirror(3000 + (rank == 0 ? 0 : 1), 5);
  expect_error<dist::CollectiveMismatch>(
      found, "an update of mirrors that differ",
      [&] {
        ops.update_shards(std::span<const float>{gradients}.first(mirror.size()), std::span<float>{mirror},
                          [](std::size_t, float weight, float slope) { return weight + slope; });
      },
      {"update_shards"});
  found.expect(mirror == std::vector<float>(mirror.size(), 5), "a mirror changed before the calls were compared");
  check_all_reduce<float>(ops, dist::sum, 33, found);
}

/// Member 0 reports a failure instead of calling: the others get its text, and all continue.
template <class Ops>
void check_abandoned_call(const Ops& ops, Findings& found) {
  const auto comm = ops.communicator();
  check_all_reduce<float>(ops, dist::sum, 33, found);
  if (comm.rank() == 0) {
    comm.cancel("the disk is full");
  } else {
    std::vector<float> values(44);
    expect_error<dist::PeerError>(found, "an abandoned call",
                                  [&] { ops.all_reduce(dist::sum, std::span<float>{values}); },
                                  {"Worker 0 on host ", "the disk is full"});
  }
  check_all_reduce<float>(ops, dist::sum, 33, found);
}

/// A member fails several times before it calls a collective: the others get every text, in order, and all continue.
template <class Ops>
void check_repeated_failures(const Ops& ops, Findings& found) {
  const auto comm = ops.communicator();
  for (const std::size_t failing : {std::size_t{0}, comm.size() - 1}) {
    for (int attempt = 0; attempt < 5; ++attempt) {
      comm.begin_attempt();
      const std::string why = dist::concat("batch ", attempt, " is empty");
      if (comm.rank() == failing) {
        comm.cancel(std::string_view{why});
        comm.cancel("the same failure, on its way to the caller");
        continue;
      }
      std::vector<float> values(44);
      expect_error<dist::PeerError>(found, "a repeated failure",
                                    [&] {
                                      try {
                                        ops.all_reduce(dist::sum, std::span<float>{values});
                                      } catch (const dist::PeerError& error) {
                                        found.expect(error.rank() == failing && error.thrown() == why, "rank ",
                                                     error.rank(), " and not ", failing, " says '", error.thrown(),
                                                     "'");
                                        throw;
                                      }
                                    },
                                    {dist::concat("Worker ", failing, " on host "), why});
    }
    check_all_reduce<float>(ops, dist::sum, 33, found);
    // All fail at once, for different reasons, then one of them alone.
    comm.begin_attempt();
    comm.cancel("a failure on every member");
    comm.begin_attempt();
    std::vector<float> values(44);
    if (comm.rank() == failing)
      comm.cancel("a failure on one member");
    else
      expect_error<dist::PeerError>(found, "a failure after one that all had",
                                    [&] { ops.all_reduce(dist::sum, std::span<float>{values}); },
                                    {"a failure on one member"});
    check_all_reduce<float>(ops, dist::sum, 33, found);
  }
}

/// An update throws on member 0 during a collective: the others do not wait forever.
template <class Ops>
void check_update_that_throws(const Ops& ops, Findings& found) {
  const auto comm = ops.communicator();
  std::vector<float> gradient(3000), mirror(3000);
  const auto apply = [&] {
    ops.reduce_and_apply(dist::sum, std::span<const float>{gradient}, std::span<float>{mirror},
                         [&](std::size_t, float weight, float) {
                           if (comm.rank() == 0) throw std::runtime_error("the step is NaN");
                           return weight;
                         });
  };
  if (comm.rank() == 0) {
    expect_error<std::runtime_error>(found, "an update that throws", apply, {"the step is NaN"});
    comm.cancel("the step is NaN");
  } else {
    expect_error<dist::PeerError>(found, "an update that throws elsewhere", apply,
                                  {"Worker 0 on host ", "the step is NaN"});
  }
  check_all_reduce<float>(ops, dist::sum, 33, found);
}

}  // namespace process

}  // namespace conformance

/// `Fixture{timeout}` is a group of all processes: `collectives()`, and `wait_outside()`, which synchronises all by
/// other means. Constructed on every member for each part of the suite. `Fixture::every_type` is true to test all
/// types.
TEST_CASE_TEMPLATE_DEFINE("policies between processes (spec C07, E12, H02)", Fixture, process_collectives) {
  using namespace conformance::process;
  using namespace std::chrono_literals;
  conformance::Findings found;
  const auto with_group = [&](std::chrono::nanoseconds timeout, auto check) {
    Fixture fixture{timeout};
    check(fixture.collectives(), fixture);
    CHECK(found.all() == "");
  };
  SUBCASE("every operation and every type") {
    with_group(60s, [&](const auto& ops, auto&) {
      check_operations<float>(ops, found);
      check_operations<dist::BFloat16>(ops, found);
      check_operations<std::int32_t>(ops, found);
      check_operations<bool>(ops, found);
      if constexpr (conformance::every_type && Fixture::every_type) {
        check_operations<double>(ops, found);
        check_operations<dist::Float16>(ops, found);
        check_operations<std::int8_t>(ops, found);
        check_operations<std::uint8_t>(ops, found);
        check_operations<std::int16_t>(ops, found);
        check_operations<std::uint16_t>(ops, found);
        check_operations<std::uint32_t>(ops, found);
        check_operations<std::int64_t>(ops, found);
        check_operations<std::uint64_t>(ops, found);
      }
      check_extremes<float>(ops, found);
      check_extremes<dist::BFloat16>(ops, found);
      if constexpr (conformance::every_type && Fixture::every_type) {
        check_extremes<double>(ops, found);
        check_extremes<dist::Float16>(ops, found);
      }
      check_own_operations(ops, found);
    });
  }
  SUBCASE("results are bit-identical on every member and in every run") {
    with_group(60s, [&](const auto& ops, auto&) {
      for (const std::size_t count : conformance::process_counts) check_same_bits(ops, count, found);
    });
  }
  SUBCASE("broadcasts from every root, uneven gathers, exchanges (spec H21, H22)") {
    with_group(60s, [&](const auto& ops, auto&) {
      check_broadcasts<float>(ops, found);
      check_broadcasts<bool>(ops, found);
      check_broadcasts<dist::Float16>(ops, found);
      check_all_gathers(ops, found);
      check_exchanges(ops, found);
    });
  }
  SUBCASE("gradients are reduced and applied once") {
    with_group(60s, [&](const auto& ops, auto&) { check_gradients(ops, found); });
  }
  SUBCASE("collectives of different extents may follow each other (spec E12)") {
    with_group(60s, [&](const auto& ops, auto&) { check_sequences(ops, found); });
  }
  SUBCASE("members that disagree get an error that names both sides, and continue (spec E12)") {
    with_group(60s, [&](const auto& ops, auto&) {
      if (ops.communicator().size() == 1) return;
      check_mismatches(ops, found);
      check_mismatched_update(ops, found);
    });
  }
  SUBCASE("a member that failed notifies the others, and all continue") {
    with_group(60s, [&](const auto& ops, auto&) {
      if (ops.communicator().size() == 1) return;
      check_abandoned_call(ops, found);
      check_repeated_failures(ops, found);
      check_update_that_throws(ops, found);
    });
  }
  SUBCASE("a missing member is named, with its last collective (spec H13)") {
    with_group(300ms, [&](const auto& ops, auto& fixture) {
      if (ops.communicator().size() > 1)
        check_skipped_call(
            ops, [&] { fixture.wait_outside(); }, found);
    });
  }
}
