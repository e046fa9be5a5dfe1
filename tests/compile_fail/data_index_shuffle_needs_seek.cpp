// expect: index_shuffle: the dataset must be able to seek
#include <dist/data/index_shuffle.hpp>
#include <dist/data/range.hpp>
#include <dist/data/take_skip.hpp>

int main() {
#ifdef CONTROL
  static_cast<void>(dist::data::range(8) | dist::data::index_shuffle());
#else
  static_cast<void>(dist::data::range(8) | dist::data::repeat(2) | dist::data::index_shuffle());
#endif
}
