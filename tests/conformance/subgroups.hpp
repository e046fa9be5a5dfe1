// The suite of subgroups. A strategy joins with one line:
//   TEST_CASE_TEMPLATE_INSTANTIATE(subgroups, Make<TheStrategy, 2>);
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <dist/context/subgroup.hpp>
#include <dist/core/error.hpp>
#include <dist/core/float16.hpp>
#include <dist/core/reduce_op.hpp>

#include <doctest/doctest.h>

TEST_CASE_TEMPLATE_DEFINE("replicas of a colour are a subgroup with its own collectives", MakeStrategy, subgroups) {
  const auto owner = MakeStrategy::make();
  auto& strategy = *owner;
  const std::size_t size = strategy.num_replicas_in_sync();
  CAPTURE(size);
  const auto require_right = [&](auto&& body) {
    const auto wrong = strategy.run(body);
    for (const std::size_t mistakes : strategy.local_results(wrong)) CHECK(mistakes == 0);
  };
  // Replicas 0, 2, 4, … and 1, 3, 5, …, the latter in reverse order.
  const auto by_parity = [](auto& replica) {
    const std::size_t id = replica.replica_id().index();
    return replica.split(id % 2, id % 2 == 1 ? 1000 - id : 0);
  };
  const auto members_of = [&](std::size_t color) {
    std::vector<std::size_t> members;
    for (std::size_t id = color; id < size; id += 2) members.push_back(id);
    if (color == 1) members = {members.rbegin(), members.rend()};
    return members;
  };

  SUBCASE("ranks follow keys, then replicas") {
    require_right([&](auto& replica) {
      const auto group = by_parity(replica);
      const std::size_t id = replica.replica_id().index();
      const std::vector<std::size_t> expected = members_of(id % 2);
      std::size_t wrong = group.size() != expected.size();
      for (std::size_t rank = 0; rank < expected.size(); ++rank) wrong += group.replicas()[rank] != expected[rank];
      return wrong + std::size_t{expected[group.rank()] != id};
    });
  }

  SUBCASE("reductions in the order of the ranks, with different extents per subgroup") {
    require_right([&](auto& replica) {
      const auto group = by_parity(replica);
      const std::size_t id = replica.replica_id().index();
      const std::vector<std::size_t> members = members_of(id % 2);
      std::size_t sum = 0;
      for (const std::size_t member : members) sum += member + 1;
      std::size_t wrong = group.all_reduce(dist::sum, id + 1) != sum;
      wrong += group.all_reduce(dist::max, static_cast<float>(id)) !=
               static_cast<float>(id % 2 == 0 ? members.back() : members.front());
      const std::size_t count = id % 2 == 0 ? 1003 : 5;
      std::vector<double> values(count);
      for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<double>((id + 1) * (i + 1));
      group.all_reduce(dist::mean, std::span<double>{values});
      for (std::size_t i = 0; i < count; ++i)
        wrong += values[i] != static_cast<double>(sum * (i + 1)) / static_cast<double>(members.size());
      std::vector<dist::BFloat16> halves(70, dist::BFloat16{1.0f});
      group.all_reduce(dist::sum, std::span<dist::BFloat16>{halves});
      for (const dist::BFloat16 half : halves) wrong += static_cast<float>(half) != static_cast<float>(members.size());
      return wrong;
    });
  }

  SUBCASE("values of all members, and of one of them") {
    require_right([&](auto& replica) {
      const auto group = by_parity(replica);
      const std::size_t id = replica.replica_id().index();
      const std::vector<std::size_t> members = members_of(id % 2);
      std::vector<std::size_t> expected;
      for (const std::size_t member : members) expected.insert(expected.end(), member, member);
      const std::vector<std::size_t> mine(id, id);  // none for replica 0
      std::size_t wrong = group.all_gather(std::span{mine}) != expected;
      std::vector<float> values(9, static_cast<float>(id));
      group.broadcast(std::span{values}, group.size() - 1);
      for (const float value : values) wrong += value != static_cast<float>(members.back());
      group.barrier();
      return wrong;
    });
  }

  SUBCASE("neighbours in a ring of each colour") {
    require_right([&](auto& replica) {
      const auto group = by_parity(replica);
      const std::size_t next = (group.rank() + 1) % group.size();
      const std::size_t last = (group.rank() + group.size() - 1) % group.size();
      const std::vector<std::size_t> out(3, replica.replica_id().index());
      std::vector<std::size_t> in(3);
      group.neighbor_exchange({{next, out}}, {{last, in}});
      return std::size_t{in != std::vector<std::size_t>(3, group.replicas()[last])};
    });
  }

  SUBCASE("one subgroup for all, and one for each") {
    require_right([&](auto& replica) {
      const std::size_t id = replica.replica_id().index();
      const auto all = replica.split(7);
      const auto alone = replica.split(id);
      std::size_t wrong = all.all_reduce(dist::sum, std::size_t{1}) != size;
      wrong += alone.all_reduce(dist::sum, id) != id;
      return wrong + (all.rank() != id) + (alone.size() != 1);
    });
  }

  SUBCASE("members with different counts get an error, and all replicas continue") {
    if (size < 3) return;
    const auto said = strategy.run([&](auto& replica) {
      const auto group = by_parity(replica);
      std::vector<double> values(replica.replica_id().index() == 2 ? 4 : 3);
      std::string text = "no error";
      try {
        group.all_reduce(dist::sum, std::span{values});
      } catch (const dist::ShapeMismatch& error) {
        text = error.what();
      }
      return group.all_reduce(dist::sum, 1) == static_cast<int>(group.size()) ? text : "does not go on";
    });
    for (const std::string& text : strategy.local_results(said)) {
      CAPTURE(text);
      CHECK(text.find("eplica 0") != std::string::npos);
      CHECK(text.find("eplica 2") != std::string::npos);
    }
  }

  SUBCASE("a root out of range is an invalid argument") {
    const auto refused = strategy.run([&](auto& replica) {
      const auto group = by_parity(replica);
      int value = 1;
      try {
        group.broadcast(std::span{&value, 1}, group.size());
      } catch (const dist::InvalidArgument&) {
        return true;
      }
      return false;
    });
    for (const bool is_refused : strategy.local_results(refused)) CHECK(is_refused);
  }
}
