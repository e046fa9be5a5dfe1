#include <dist/context/all_gather_tensors.hpp>

#include <cstddef>
#include <string>

#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

using Strategy = dist::Mirrored<dist::ThreadAllReduce>;

TEST_CASE("tensors of all members are concatenated along an axis, including uneven ones (spec E06, H21)") {
  Strategy strategy{3};
  for (const int axis : {0, 1, -1}) {
    CAPTURE(axis);
    const auto wrong = strategy.run([&](auto& replica) {
      const std::size_t mine = replica.replica_id().index() + 1;
      dist::Tensor<int> tensor{axis == 0 ? dist::Shape{mine, 2} : dist::Shape{2, mine}};
      for (int& element : tensor.elements()) element = static_cast<int>(mine);
      const auto whole = dist::all_gather_tensors(replica.collectives(), "member", tensor.view(), axis);
      if (whole.shape() != (axis == 0 ? dist::Shape{6, 2} : dist::Shape{2, 6})) return 100;
      constexpr int of_place[] = {1, 2, 2, 3, 3, 3};
      int mistakes = 0;
      for (std::size_t place = 0; place < 6; ++place)
        for (std::size_t other = 0; other < 2; ++other)
          mistakes += whole[axis == 0 ? 2 * place + other : 6 * other + place] != of_place[place];
      return mistakes;
    });
    for (const int mistakes : wrong) CHECK(mistakes == 0);
  }
}

TEST_CASE("members with different axes, or other differences between tensors, are refused") {
  Strategy strategy{2};
  const auto message = [&](auto gather) {
    try {
      strategy.run(gather);
    } catch (const dist::ReplicaError& error) {
      return std::string{error.what()};
    }
    return std::string{"nothing was thrown"};
  };
  const std::string axes = message([](auto& replica) {
    const dist::Tensor<int> tensor{{2, 2}};
    const int axis = static_cast<int>(replica.replica_id().index());
    static_cast<void>(dist::all_gather_tensors(replica.collectives(), "member", tensor.view(), axis));
  });
  CAPTURE(axes);
  CHECK(axes.find("member 0 called all_gather along axis 0, but member 1 along axis 1") != std::string::npos);
  const std::string shapes = message([](auto& replica) {
    const dist::Tensor<int> tensor{{2, 2 + replica.replica_id().index()}};
    static_cast<void>(dist::all_gather_tensors(replica.collectives(), "member", tensor.view(), 0));
  });
  CAPTURE(shapes);
  CHECK(shapes.find("shapes [2, 2] and [2, 3]") != std::string::npos);
}
