// expect: columns: give as many names as the array member has elements
#include <array>

#include <dist/data/csv.hpp>

struct Row {
  std::array<float, 3> x;
};

int main() {
#ifdef CONTROL
  auto rows = dist::data::csv("a.csv", dist::data::columns({"a", "b", "c"}, &Row::x));
#else
  auto rows = dist::data::csv("a.csv", dist::data::columns({"a", "b"}, &Row::x));
#endif
  (void)rows;
}
