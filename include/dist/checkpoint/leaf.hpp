#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/checkpoint/snapshot.hpp>
#include <dist/comm/collective_call.hpp>
#include <dist/comm/communicator.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/track.hpp>

namespace dist::detail {

/// A leaf of a walk that is saved as one tensor, such as a variable.
template <class Leaf, class Scope>
concept WholeLeaf = requires(Leaf& leaf, const Scope& scope) {
  leaf.whole(scope);
};
/// One that says itself which shapes it takes, by throwing ShapeMismatch for others.
template <class Leaf>
concept ChecksShape = requires(Leaf& leaf, const Shape& shape) {
  leaf.require_restorable(shape);
};
/// Others take their shape alone.
template <class Leaf>
concept ShapedLeaf = !ChecksShape<Leaf> && requires(Leaf & leaf) {
  leaf.shape();
};

template <class Leaf>
consteval bool require_number() {
  static_assert(
      std::is_arithmetic_v<Leaf>,
      "what a checkpoint keeps has track(visit), or shape(), whole(scope) and restore(scope, values), or is a "
      "number");
  return std::is_arithmetic_v<Leaf>;
}

/// For functions that take what is tracked.
template <class Tracked>
consteval bool require_tracked() {
  static_assert(Trackable<Tracked>,
                "weights are those of something that names its parts by track(visit), such as an nn::Network: see "
                "dist::Trackable");
  return Trackable<Tracked>;
}

/// The tensor's element type that a leaf is saved as; some type for what is refused.
template <class Leaf, class Scope>
struct LeafElementOf {
  using Type = std::conditional_t<std::is_arithmetic_v<Leaf>, Leaf, bool>;
};
template <class Leaf, class Scope>
  requires WholeLeaf<Leaf, Scope>
struct LeafElementOf<Leaf, Scope> {
  using Type = typename decltype(std::declval<Leaf&>().whole(std::declval<const Scope&>()))::Element;
};
template <class Leaf, class Scope>
using LeafElement = typename LeafElementOf<Leaf, Scope>::Type;

/// Puts what a leaf has into a snapshot. A collective call of the processes.
template <class Leaf, class Scope>
void save_leaf(std::string_view key, Leaf& leaf, const Scope& scope, Snapshot& snapshot) {
  if constexpr (WholeLeaf<Leaf, Scope>)
    snapshot.put(key, leaf.whole(scope));
  else if constexpr (require_number<Leaf>())
    snapshot.put_number(key, leaf);
}

/// The processes, whose collectives are `workers`, have the same numbers, because a checkpoint keeps one value of each.
/// Throws ShapeMismatch in all of them, with the first number that differs. A collective call.
template <class Workers>
void require_equal_numbers([[maybe_unused]] const Workers& workers, const std::vector<SavedNumber>& numbers) {
  if constexpr (!CollectivesOfOne<Workers>) {
    const std::size_t processes = workers.communicator().size();
    std::string all;
    for (const SavedNumber& number : numbers) all += concat(number.key, "=", number.value, "\n");
    const std::uint64_t mine = hash_of(all);
    std::vector<std::uint64_t> all_values(processes);
    workers.all_gather_values("numbers of the program", mine, std::span{all_values});
    if (std::equal(all_values.begin() + 1, all_values.end(), all_values.begin())) return;

    struct Line {
      std::uint64_t hash = 0;
      std::array<char, 128> key{};
      std::array<char, 48> value{};
    };
    std::vector<Line> lines(processes);
    for (std::size_t number = 0;; ++number) {
      Line line;
      if (number < numbers.size()) {
        line.hash = hash_of(concat(numbers[number].key, "=", numbers[number].value));
        numbers[number].key.copy(line.key.data(), line.key.size() - 1);
        numbers[number].value.copy(line.value.data(), line.value.size() - 1);
      }
      workers.all_gather_values("a number of the program", line, std::span{lines});
      for (std::size_t process = 1; process < processes; ++process)
        if (lines[process].hash != lines[0].hash) {
          const auto said = [](const Line& its) {
            return its.key[0] == '\0' ? std::string{"missing"}
                                      : concat(quoted(its.key.data()), " = ", its.value.data());
          };
          throw ShapeMismatch(
              concat("Process ", process, " and the first process save different numbers"),
              concat(said(lines[process]), " in process ", process, ", and ", said(lines[0]), " in the first"),
              "A checkpoint keeps one value of each number: make them equal before the save, or leave the number out");
        }
    }
  }
}

/// Gives a leaf the elements of `values`, a tensor of its LeafElement. A collective call of the processes.
template <class Leaf, class Scope, class Values>
void restore_leaf(Leaf& leaf, const Scope& scope, const Values& values) {
  if constexpr (WholeLeaf<Leaf, Scope>)
    leaf.restore(scope, values.view());
  else if constexpr (require_number<Leaf>())
    leaf = values[0];
}

}  // namespace dist::detail
