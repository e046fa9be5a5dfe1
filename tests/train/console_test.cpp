#include <dist/train/console.hpp>

#include <string>

#include <doctest/doctest.h>

TEST_CASE("what is written to a file is there at once, and a file is no terminal") {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  const auto console = dist::nn::Console::to(file);
  CHECK(!console.terminal);
  console.write("12/12");
  console.write(" done\n");
  const int descriptor = fileno(file);
  char buffer[32] = {};
  CHECK(pread(descriptor, buffer, sizeof buffer, 0) == 11);
  CHECK(std::string(buffer) == "12/12 done\n");
  std::fclose(file);
}

TEST_CASE("the clock goes forward, in seconds") {
  const auto console = dist::nn::Console::standard_output();
  const double before = console.clock();
  usleep(2000);
  const double passed = console.clock() - before;
  CHECK(passed >= 0.002);
  CHECK(passed < 60);
}
