#include <dist/context/agreed_structure.hpp>

#include <doctest/doctest.h>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/comm/self.hpp>
#include <dist/comm/thread/communicator.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/replica_threads.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include <support/what_throws.hpp>

using dist::detail::AgreedStructure;
using dist::detail::holds_optional;
using dist::detail::structure_of;

namespace {

struct Plain {
  float loss;
  int count;
};
struct WithOptional {
  float loss;
  std::optional<int> count;
};
struct WithTensors {
  dist::Tensor<float> loss;
  int count;
};

template <class T>
constexpr bool is_flat = structure_of<T>() == 0;

static_assert(is_flat<float> && is_flat<dist::Tensor<float>> && is_flat<dist::PerReplica<int>>);
static_assert(!is_flat<std::tuple<int>> && !is_flat<std::array<int, 1>> && !is_flat<Plain> && !is_flat<WithTensors>);
static_assert(structure_of<std::tuple<int>>() != structure_of<std::tuple<int, int>>());
static_assert(structure_of<std::array<int, 2>>() != structure_of<std::array<int, 3>>());
static_assert(structure_of<std::tuple<std::tuple<int>, int, int>>() !=
              structure_of<std::tuple<std::tuple<int, int>, int>>());
static_assert(structure_of<std::optional<int>>() != structure_of<std::tuple<int>>());
static_assert(structure_of<std::tuple<dist::PerReplica<int>&, float>>() == structure_of<std::pair<int, float>>());
static_assert(holds_optional<std::tuple<int, std::array<std::optional<int>, 2>>>() && holds_optional<WithOptional>());
static_assert(!holds_optional<std::tuple<int, Plain>>() && !holds_optional<float>());

/// Returns the errors of members that pass `values`, one each, to the same collective.
template <class Value, std::size_t members>
std::array<std::string, members> said_of(const std::array<Value, members>& values) {
  using Ops = dist::ThreadAllReduce::On<dist::ThreadCommunicator>;
  dist::ReplicaThreads threads(members);
  dist::ThreadGroup group(threads.status(), threads.spin_budget(), std::chrono::minutes{1});
  std::array<std::string, members> said;
  threads.run([&](std::size_t rank) {
    const Ops ops{dist::ThreadCommunicator{group, rank}};
    said[rank] = support::what_throws<dist::ShapeMismatch>([&] {
      const AgreedStructure agreed{ops, "replica", values[rank]};
    });
    int one = 1;
    ops.all_reduce(dist::sum, std::span<int>{&one, 1});  // all are still in step
    if (one != static_cast<int>(members)) said[rank] += " and a wrong sum";
  });
  return said;
}

}  // namespace

TEST_CASE("optionals that differ are named on all members") {
  using Value = std::tuple<int, std::optional<std::pair<float, std::optional<int>>>, std::optional<int>>;
  const Value all{1, std::pair{2.0F, std::optional{3}}, 4};
  const Value no_inner{1, std::pair{2.0F, std::optional<int>{}}, 4};
  const Value no_outer{1, std::nullopt, 4};
  const Value no_last{1, std::pair{2.0F, std::optional{3}}, std::nullopt};
  const std::string none = "nothing was thrown";
  CHECK(said_of(std::array{all, all, all}) == std::array{none, none, none});
  CHECK(said_of(std::array{no_outer, no_outer}) == std::array{none, none});
  const auto differ = [](const std::string& what) {
    return "The replicas gave values with different structures (" + what +
           "; optionals are counted from 0, outer ones first). Give an optional a value on every replica or on none.";
  };
  const std::string inner = differ("on replica 0 optional 1 has a value, on replica 2 it has none");
  CHECK(said_of(std::array{all, all, no_inner}) == std::array{inner, inner, inner});
  const std::string outer = differ("on replica 0 optional 0 has none, on replica 1 it has one");
  CHECK(said_of(std::array{no_outer, all}) == std::array{outer, outer});
  const std::string last = differ("on replica 0 optional 2 has none, on replica 1 it has one");
  CHECK(said_of(std::array{no_last, all}) == std::array{last, last});
}

TEST_CASE("optionals beyond the first 64 are compared") {
  std::array<std::array<std::optional<int>, 70>, 2> values{};
  values[1][69] = 1;
  for (const std::string& said : said_of(values)) CHECK(said.find("different structures") != std::string::npos);
}

TEST_CASE("the structure applies to its own calls, and ends with its scope") {
  using Ops = dist::ThreadAllReduce::On<dist::ThreadCommunicator>;
  dist::ReplicaThreads threads(2);
  dist::ThreadGroup group(threads.status(), threads.spin_budget(), std::chrono::minutes{1});
  std::array<std::string, 2> said;
  threads.run([&](std::size_t rank) {
    const Ops ops{dist::ThreadCommunicator{group, rank}};
    const auto barrier_in = [&](const auto& value) {
      const AgreedStructure agreed{ops, "replica", value};
      ops.communicator().barrier();
    };
    said[rank] = support::what_throws<dist::CollectiveMismatch>([&] {
      if (rank == 0)
        barrier_in(std::tuple{1});
      else
        barrier_in(std::tuple{1, 2});
    });
    barrier_in(Plain{1, 2});
    ops.communicator().barrier();
  });
  for (const std::string& text : said)
    CHECK(text.find("but replica ") < text.find("as part of values with a different structure"));
}

TEST_CASE("a group of one always agrees") {
  const dist::SelfCollectives alone;
  const AgreedStructure agreed{alone, "replica", std::optional<int>{}};
}
