#include <dist/strategy/step_values.hpp>

#include <doctest/doctest.h>

#include <hlo/run.hpp>
#include <support/what_throws.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/shape.hpp>

using dist::PerReplica;
using dist::Shape;
using dist::Tensor;
using dist::detail::StepForm;
using Floats = Tensor<float>;

namespace {

Floats zeros(std::size_t rows, std::size_t columns = 2) { return Floats{Shape{rows, columns}}; }
StepForm form(const auto&... args) { return StepForm::of<false>(2, args...); }

}  // namespace

TEST_CASE("a form has a leaf per number and tensor; tensors of a PerReplica have the rows of a batch") {
  const auto of = form(std::pair{PerReplica<Floats>::of(zeros(3), zeros(1)), zeros(5)}, 2.0F);
  REQUIRE(of.leaves().size() == 3);
  CHECK(of.leaves()[0].has_rows);
  CHECK(of.leaves()[0].shape == Shape{2});
  CHECK_FALSE(of.leaves()[1].has_rows);
  CHECK(of.leaves()[1].shape == Shape{5, 2});
  CHECK(of.leaves()[2].shape == Shape{});
  CHECK(of.rows() == std::vector<std::size_t>{3, 1});
  CHECK(of.description() == "[3, 2], [5, 2], []");
  CHECK(StepForm::of<true>(1, zeros(4)).rows() == std::vector<std::size_t>{4});
}

TEST_CASE("all tensors of a replica's batch must have equal numbers of rows, at any position, including none") {
  const auto numbers = PerReplica<int>::of(1, 2);
  CHECK(form(numbers, PerReplica<Floats>::of(zeros(3), zeros(2))).rows() == std::vector<std::size_t>{3, 2});
  const auto refused = [](const auto& first, const auto& second) {
    return support::what_throws<dist::ShapeMismatch>([&] { static_cast<void>(form(first, second)); });
  };
  const auto three = PerReplica<Floats>::of(zeros(3), zeros(3)), none = PerReplica<Floats>::of(zeros(0), zeros(3));
  CHECK(refused(three, none).find("on replica 0 one has 3 and another one 0") != std::string::npos);
  CHECK(refused(none, three).find("on replica 0 one has 0 and another one 3") != std::string::npos);
  CHECK(
      refused(three, PerReplica<Floats>::of(zeros(3, 4), zeros(3, 5))).find("([4] and, on replica 1, [5], of a row)") !=
      std::string::npos);
}

TEST_CASE("a program accepts fewer rows of the same shapes, and batches without rows of any shape") {
  const auto batch = [](std::size_t first, std::size_t second, std::size_t columns = 2) {
    return PerReplica<Floats>::of(zeros(first, columns), zeros(second, columns));
  };
  const StepForm program = form(batch(4, 4), zeros(2, 3));
  CHECK(form(batch(4, 1), zeros(2, 3)).fits(program, 4));
  CHECK_FALSE(form(batch(5, 1), zeros(2, 3)).fits(program, 4));
  CHECK_FALSE(form(batch(4, 4, 5), zeros(2, 3)).fits(program, 4));
  CHECK_FALSE(form(batch(4, 4), zeros(3, 2)).fits(program, 4));
  CHECK(form(batch(0, 0, 7), zeros(2, 3)).fits(program, 4));
  CHECK_FALSE(form(batch(0, 0), zeros(3, 2)).fits(program, 4));
  CHECK(form(batch(0, 0), zeros(2, 3)).is_empty());
  CHECK_FALSE(form(zeros(2, 3)).is_empty());
  const auto scalars = PerReplica<Floats>::of(Floats{Shape{}}, Floats{Shape{}});
  const auto vectors = PerReplica<Floats>::of(Floats{Shape{4}}, Floats{Shape{4}});
  CHECK_FALSE(form(scalars).fits(form(vectors), 4));
}

TEST_CASE("arguments are numbers, tensors, and structures of these") {
  using dist::detail::is_step_argument;
  static_assert(is_step_argument<std::tuple<int, std::pair<Floats, dist::TensorView<const int>>>>);
  static_assert(is_step_argument<dist::data::Example<Floats, Tensor<int>>>);
  static_assert(!is_step_argument<std::string> && !is_step_argument<std::vector<float>>);
  static_assert(std::is_same_v<dist::detail::ElementOfLeaf<dist::TensorView<const int>>, int>);
}

namespace hlo = dist::hlo;
using dist::detail::HostForm;
using dist::detail::is_step_result;

TEST_CASE("results are traced arrays with batch rows as first extent only, and structures of these") {
  static_assert(is_step_result<void> && is_step_result<hlo::Traced<float>> && is_step_result<hlo::Dynamic<int>>);
  static_assert(is_step_result<std::pair<hlo::Traced<float, hlo::batch, 2>, std::array<hlo::Traced<int>, 2>>>);
  static_assert(!is_step_result<hlo::Traced<float, 2, hlo::batch>> && !is_step_result<std::tuple<float>>);
}

TEST_CASE("a batch has the replica's valid rows, also in structures") {
  using Batch = hlo::Traced<float, hlo::batch, 2>;
  const dist::pjrt::Client client = testing::cpus(1);
  const Tensor<float> padded{{3, 2}, {1, 2, 3, 4, 0, 0}};
  const auto next = [&] { return dist::pjrt::upload(client, 0, padded); };
  CHECK(HostForm<Batch>::of(next, 2) == Tensor<float>{{2, 2}, {1, 2, 3, 4}});
  CHECK(HostForm<hlo::Dynamic<float>>::of(next, 2) == padded);
  const auto [fixed, pair] = HostForm<std::tuple<hlo::Traced<float, 3, 2>, std::array<Batch, 2>>>::of(next, 1);
  CHECK(fixed == padded);
  CHECK(pair[1] == Tensor<float>{{1, 2}, {1, 2}});
}
