// expect: a partitioner must take a shape and the size of an element in bytes, and return the number of shards
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
