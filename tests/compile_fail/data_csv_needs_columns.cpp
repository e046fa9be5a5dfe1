// expect: csv: the members must be numbers, bools, std::strings, std::optionals of these, or std::arrays of them
#include <dist/data.hpp>

struct Row {
  int number;
  int* pointer;
};

int main() {
#ifdef CONTROL
  static_cast<void>(dist::data::csv("a.csv", dist::data::column("a", &Row::number)));
#else
  static_cast<void>(dist::data::csv("a.csv", dist::data::column("a", &Row::pointer)));
#endif
}
