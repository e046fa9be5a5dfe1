// with: registry_other.cpp
#include <dist/server/registry.hpp>

#include <unistd.h>

#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include "server/registry_other.hpp"
#include "support/what_throws.hpp"

namespace {

using dist::ArchiveError;
using dist::ArchiveReader;
using dist::ArchiveWriter;
using dist::FunctionId;
using registry_test::Context;
using registry_test::Invocations;
using registry_test::Numbers;
using registry_test::shared;
using registry_test::Table;
using support::what_throws;

int same_name(int x) { return 100 + x; }
int unknown(int x) { return x; }
int add(Context& context, int a, int b) { return context.offset + a + b; }

/// A function with state that can be sent.
struct Scale {
  float factor;
  float operator()(Context&, float x) const { return factor * x; }
};

Numbers numbers_of_this_unit() {
  auto lambda = [](Context& context, int x) { return context.offset + 1000 + x; };
  return {Table::number<&same_name>(), Invocations::number<&dist::invoke<Context, decltype(lambda), int>>(),
          Table::number<&shared<int>>()};
}

template <class F, class... Arguments>
std::vector<std::byte> call_of(const F& function, const Arguments&... arguments) {
  return ArchiveWriter{}
      .put(Invocations::number<&dist::invoke<Context, F, Arguments...>>())
      .put(function)
      .put(std::tuple<Arguments...>{arguments...})
      .take();
}
std::vector<std::byte> run(const std::vector<std::byte>& call, Context context = {}) {
  ArchiveReader archive{call, "A call"};
  return Invocations::find(archive.get<FunctionId>())(context, archive);
}
template <class Result, class F, class... Arguments>
Result result_of(const F& function, const Arguments&... arguments) {
  return dist::from_bytes<Result>(run(call_of(function, arguments...), {7}));
}

std::string written(const Numbers& numbers) {
  std::string all;
  for (const FunctionId& place : {numbers.function, numbers.lambda, numbers.shared})
    all += dist::concat(place.module, ":", place.offset, " ");
  return all;
}

[[maybe_unused]] const auto captured = [x = 1](Context&, int y) { return x + y; };
[[maybe_unused]] const auto free_of_captures = [](Context&, int y) { return y; };
static_assert(dist::Schedulable<std::remove_const_t<decltype(free_of_captures)>> && dist::Schedulable<Scale>);
static_assert(dist::Schedulable<dist::Function<add>> && !dist::Schedulable<decltype(&add)>);
static_assert(!dist::Schedulable<std::remove_const_t<decltype(captured)>> && !dist::Schedulable<decltype(add)>);

}  // namespace

TEST_CASE("functions are found by number, and same names and types get different numbers") {
  const Numbers here = numbers_of_this_unit();
  const Numbers there = registry_test::numbers_of_other_unit();
  CHECK(here.function != there.function);
  CHECK(here.lambda != there.lambda);
  CHECK(here.shared == there.shared);
  CHECK(Table::find(here.function)(1) == 101);
  CHECK(Table::find(there.function)(1) == 201);
  CHECK(Table::find(here.shared)(1) == 301);
  const std::vector<std::byte> arguments = dist::to_bytes(std::tuple{5});
  const auto ran = [&](const FunctionId& number) {
    ArchiveReader archive{arguments};
    Context context{7};
    return dist::from_bytes<int>(Invocations::find(number)(context, archive));
  };
  CHECK(ran(here.lambda) == 1012);
  CHECK(ran(there.lambda) == 2012);
}

TEST_CASE("only numbers of registered functions are found") {
  const FunctionId known = Table::number<&same_name>();
  for (const FunctionId& hostile :
       {FunctionId{known.module, known.offset + 1}, FunctionId{known.module + 1, known.offset}, FunctionId{},
        dist::detail::code_place_of(reinterpret_cast<std::uintptr_t>(&unknown))})
    CHECK_THROWS_AS(static_cast<void>(Table::find(hostile)), ArchiveError);
  // Functions of another signature are not in this table.
  CHECK_THROWS_AS(static_cast<void>(Table::find(numbers_of_this_unit().lambda)), ArchiveError);
  CHECK(
      what_throws([] {
        static_cast<void>(Table::find({1, 2}));
      }) ==
      dist::concat("A message names a function that this program does not have (no function of type ",
                   dist::detail::type_name<int(int)>(),
                   " is registered at 2 of module 1). Start all processes of the job from one build of the program."));
}

TEST_CASE("a call runs a lambda, a function or a plain struct with the sent arguments") {
  CHECK(result_of<int>([](Context& context, int x) { return context.offset + x; }, 5) == 12);
  CHECK(result_of<int>(dist::function<add>, 1, 2) == 10);
  CHECK(result_of<float>(Scale{2.5f}, 2.0f) == 5.0f);
  const auto swapped = [](Context&, const std::string& a, std::vector<int>& b) { return std::tuple{b, a}; };
  using Result = std::tuple<std::vector<int>, std::string>;
  CHECK(result_of<Result>(swapped, std::string{"a"}, std::vector<int>{1, 2}) == Result{{1, 2}, "a"});
  CHECK(run(call_of([](Context&) {})).empty());
  CHECK_THROWS_AS(run(call_of([](Context&) { throw std::domain_error("mine"); })), std::domain_error);
}

TEST_CASE("arguments of other types than the function's are rejected") {
  std::vector<std::byte> call = call_of(Scale{2}, 2.0f);
  call.emplace_back();
  CHECK(
      what_throws<ArchiveError>([&] { run(call); }).starts_with("A call is longer than its values (1 bytes are left)"));
  call.resize(call.size() - 2);
  CHECK(what_throws<ArchiveError>([&] {
          run(call);
        }).starts_with("A call ends early (4 bytes of float were expected, 3 are"));
}

TEST_CASE("tells its numbers" * doctest::skip()) {
  std::printf("numbers %s%s\n", written(numbers_of_this_unit()).c_str(),
              written(registry_test::numbers_of_other_unit()).c_str());
}

TEST_CASE("numbers are the same in another process with another load address") {
  std::array<char, 4096> path{};
  REQUIRE(readlink("/proc/self/exe", path.data(), path.size() - 1) > 0);
  for (int process = 0; process < 2; ++process) {
    std::FILE* const stream =
        popen(dist::concat("'", path.data(), "' --no-skip --test-case='tells its numbers'").c_str(), "r");
    REQUIRE(stream != nullptr);
    std::string output;
    for (int character = 0; (character = std::fgetc(stream)) != EOF;) output += static_cast<char>(character);
    CHECK(pclose(stream) == 0);
    CHECK(output.find("numbers " + written(numbers_of_this_unit()) + written(registry_test::numbers_of_other_unit()) +
                      "\n") != std::string::npos);
  }
}
