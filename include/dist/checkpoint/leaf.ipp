#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <dist/checkpoint/leaf.hpp>
#include <dist/comm/collective_call.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>

namespace dist::detail {

DIST_INLINE void save_leaf(std::string_view key, AnyLeaf& leaf, const void* scope, Snapshot& snapshot) {
  if (leaf.is_number())
    snapshot.put_number(key, leaf.whole(scope));
  else
    snapshot.put(key, leaf.whole(scope));
}

DIST_INLINE void require_equal_numbers(const AnyStrategy& strategy, const std::vector<SavedNumber>& numbers) {
  const std::size_t processes = strategy.num_workers();
  if (processes == 1) return;
  struct Line {
    std::uint64_t hash = 0;
    std::array<char, 128> key{};
    std::array<char, 48> value{};
  };
  static_assert(sizeof(Line) <= sizeof(AnyStrategy::Record));
  std::vector<AnyStrategy::Record> records(processes);
  const auto gather = [&](std::string_view operation, const Line& mine) {
    AnyStrategy::Record record{};
    std::memcpy(record.data(), &mine, sizeof mine);
    strategy.gather(operation, record, records);
    std::vector<Line> lines(processes);
    for (std::size_t process = 0; process < processes; ++process)
      std::memcpy(&lines[process], records[process].data(), sizeof(Line));
    return lines;
  };
  std::string all;
  for (const SavedNumber& number : numbers) all += concat(number.key, "=", number.value, "\n");
  const std::vector<Line> of_all = gather("numbers of the program", {.hash = hash_of(all)});
  const auto differs = [&](const Line& its) { return its.hash != of_all[0].hash; };
  if (std::none_of(of_all.begin(), of_all.end(), differs)) return;

  for (std::size_t number = 0;; ++number) {
    Line line;
    if (number < numbers.size()) {
      line.hash = hash_of(concat(numbers[number].key, "=", numbers[number].value));
      numbers[number].key.copy(line.key.data(), line.key.size() - 1);
      numbers[number].value.copy(line.value.data(), line.value.size() - 1);
    }
    const std::vector<Line> lines = gather("a number of the program", line);
    for (std::size_t process = 1; process < processes; ++process)
      if (lines[process].hash != lines[0].hash) {
        const auto said = [](const Line& its) {
          return its.key[0] == '\0' ? std::string{"missing"} : concat(quoted(its.key.data()), " = ", its.value.data());
        };
        throw ShapeMismatch(
            concat("Process ", process, " and the first process save different numbers"),
            concat(said(lines[process]), " in process ", process, ", and ", said(lines[0]), " in the first"),
            "A checkpoint keeps one value of each number: make them equal before the save, or leave the number out");
      }
  }
}

}  // namespace dist::detail
