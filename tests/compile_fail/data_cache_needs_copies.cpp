// expect: cache: the elements of the dataset must be copyable: convert them with map
#include <memory>

#include <dist/data/cache.hpp>
#include <dist/data/generator.hpp>

int main() {
  auto pointers = dist::data::generator([] { return [] { return std::optional<std::unique_ptr<int>>{}; }; });
  auto numbers = dist::data::generator([] { return [] { return std::optional<int>{}; }; });
#ifdef CONTROL
  static_cast<void>(numbers | dist::data::cache());
#else
  static_cast<void>(pointers | dist::data::cache());
#endif
}
