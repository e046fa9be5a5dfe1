// expect: generator: give a function that creates, for every epoch, a function that returns a std::optional<Element>
#include <dist/data/generator.hpp>

int main() {
#ifdef CONTROL
  static_cast<void>(dist::data::generator([] { return [] { return std::optional<int>{}; }; }));
#else
  static_cast<void>(dist::data::generator([] { return std::optional<int>{}; }));
#endif
}
