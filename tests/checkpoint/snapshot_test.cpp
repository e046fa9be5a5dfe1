#include <dist/checkpoint/snapshot.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using dist::detail::SavedTensor;
using dist::detail::Snapshot;

TEST_CASE("a tensor is stored with its type, shape and bytes") {
  Snapshot snapshot{0, 1};
  dist::Tensor<float> values{{2, 3}};
  for (std::size_t i = 0; i < 6; ++i) values[i] = static_cast<float>(i) / 2;
  snapshot.put("network/kernel", values);
  values[0] = 100;  // does not change the snapshot
  snapshot.put_number("epoch", std::int64_t{-5});
  const std::vector<SavedTensor>& mine = snapshot.local_tensors();
  REQUIRE(mine.size() == 2);
  CHECK(mine[0].key == "network/kernel");
  CHECK(mine[0].type == dist::io::ElementType::f32);
  CHECK(mine[0].shape == dist::Shape{2, 3});
  REQUIRE(mine[0].bytes.size() == 24);
  float kept[6];
  std::memcpy(kept, mine[0].bytes.data(), 24);
  for (std::size_t i = 0; i < 6; ++i) CHECK(kept[i] == static_cast<float>(i) / 2);
  CHECK(mine[1].type == dist::io::ElementType::i64);
  CHECK(mine[1].shape == dist::Shape{});
  std::int64_t epoch = 0;
  std::memcpy(&epoch, mine[1].bytes.data(), 8);
  CHECK(epoch == -5);
}

TEST_CASE("every tensor is written by one process, and the load is balanced") {
  for (const std::size_t processes : {1U, 2U, 3U, 5U}) {
    std::map<std::string, int> writers;
    std::vector<std::size_t> bytes(processes);
    for (std::size_t rank = 0; rank < processes; ++rank) {
      Snapshot snapshot{rank, processes};
      for (std::size_t i = 0; i < 60; ++i) snapshot.put("t" + std::to_string(i), dist::Tensor<double>{{i % 7 + 1}});
      snapshot.put_number("step", 1);
      for (const SavedTensor& each : snapshot.local_tensors()) {
        ++writers[each.key];
        bytes[rank] += each.bytes.size();
      }
      CHECK(snapshot.rank() == rank);
      CHECK(snapshot.processes() == processes);
    }
    CHECK(writers.size() == 61);
    for (const auto& writer : writers) CHECK_MESSAGE(writer.second == 1, writer.first);
    for (const std::size_t one : bytes)
      for (const std::size_t other : bytes) CHECK(one <= other + 8 * 7 + sizeof(int));
  }
}
