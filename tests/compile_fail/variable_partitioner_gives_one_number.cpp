// expect: a partitioner takes a shape and the bytes of an element, and returns one whole number
// (spec J05)
#include <dist/variable/partitioner.hpp>

#include <cstddef>
#include <vector>

int main() {
#ifdef CONTROL
  const auto partitioner = [](const dist::Shape&, std::size_t) { return std::size_t{2}; };
#else
  const auto partitioner = [](const dist::Shape&, std::size_t) { return std::vector<std::size_t>{2, 1}; };
#endif
  return static_cast<int>(dist::number_of_shards(partitioner, "table", {4, 3}, 4));
}
