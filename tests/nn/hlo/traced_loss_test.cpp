#include <dist/nn/hlo/traced_loss.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <dist/hlo/dynamic.hpp>
#include <dist/nn/losses/average_loss.hpp>
#include <dist/nn/losses/binary_crossentropy.hpp>
#include <dist/nn/losses/categorical_crossentropy.hpp>
#include <dist/nn/losses/cosine_similarity.hpp>
#include <dist/nn/losses/kl_divergence.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <hlo/run.hpp>
#include <nn/hlo/tracing.hpp>
#include <nn/keras/losses.hpp>
#include <support/what_throws.hpp>

namespace hlo = dist::hlo;
namespace nn = dist::nn;
namespace keras = keras_losses;
using dist::Tensor;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
/// Four of the rows are valid.
constexpr std::size_t rows = 6;
using Outputs = hlo::Traced<double, rows, 3>;
using PerRow = hlo::Traced<double, rows>;

/// The loss of one of Keras' cases in a program, the weighted loss, and its gradient.
struct Computed {
  hlo::Value loss, weighted_loss, gradient;
};
template <class L, class Targets>
Computed compute(const L& loss, Outputs outputs, const Targets& targets, PerRow weights) {
  const dist_test::Tracing replica{4};
  const hlo::Traced<double> weighted = nn::compute_loss(loss, replica, outputs, targets, 6, weights);
  const auto [gradient] = hlo::gradients(weighted, std::tuple{outputs});
  return {nn::compute_loss(loss, replica, outputs, targets, 6).value(), weighted.value(), gradient.value()};
}

/// A case, and the loss to call with the case's outputs and targets.
template <class L, class Target = double>
struct Case {
  const keras::Case* numbers;
  L loss;
  using Element = Target;
};
template <class Target = double, class L>
Case<L, Target> make_case(const keras::Case& numbers, L loss) {
  return {&numbers, loss};
}

template <class Target>
auto targets_of(Outputs targets) {
  if constexpr (std::integral<Target>)  // labels are the first numbers
    return hlo::Dynamic<Target>{hlo::slice<0, 0, rows>(hlo::reshape<rows * 3>(targets)).template as<Target>()};
  else
    return targets;
}

/// Checks all cases in one program, whose last two rows are NaN.
template <class... Cases>
void check(const Cases&... cases) {
  constexpr std::size_t count = sizeof...(cases);
  using All = hlo::Traced<double, count, rows, 3>;
  Tensor<double> outputs{All::shape()}, targets{All::shape()};
  for (double& each : outputs.elements()) each = not_a_number;
  std::size_t next = 0;
  const auto fill = [&](const keras::Case& numbers, bool are_labels) {
    for (std::size_t i = 0; i < 12; ++i) outputs[next * rows * 3 + i] = numbers.outputs[i];
    for (std::size_t i = 0; i < rows * 3; ++i)
      targets[next * rows * 3 + i] = i < (are_labels ? 4 : 12) ? numbers.targets[i] : 77;
    ++next;
  };
  (fill(*cases.numbers, std::integral<typename Cases::Element>), ...);

  const std::tuple computed = testing::run<All, All, PerRow>(
      1,
      [&](All all_outputs, All all_targets, PerRow weights) {
        std::vector<hlo::Value> losses, slopes;
        const auto add = [&]<std::size_t I>(const auto& each, std::integral_constant<std::size_t, I>) {
          const Outputs of_case = hlo::reshape<rows, 3>(hlo::slice<0, I, 1>(all_outputs));
          const Outputs wanted = hlo::reshape<rows, 3>(hlo::slice<0, I, 1>(all_targets));
          using Target = typename std::remove_cvref_t<decltype(each)>::Element;
          const Computed one = compute(each.loss, of_case, targets_of<Target>(wanted), weights);
          losses.push_back(hlo::untyped::reshape(one.loss, dist::Shape{1}));
          losses.push_back(hlo::untyped::reshape(one.weighted_loss, dist::Shape{1}));
          slopes.push_back(hlo::untyped::reshape(one.gradient, dist::Shape{1, rows, 3}));
        };
        [&]<std::size_t... I>(std::index_sequence<I...>) {
          (add(cases, std::integral_constant<std::size_t, I>{}), ...);
        }
        (std::make_index_sequence<count>{});
        return std::tuple{hlo::Traced<double, 2 * count>{hlo::untyped::concatenate(losses, 0)},
                          All{hlo::untyped::concatenate(slopes, 0)}};
      },
      outputs, targets,
      Tensor<double>{
          {rows},
          {keras::weights[0], keras::weights[1], keras::weights[2], keras::weights[3], not_a_number, not_a_number}});

  const Tensor<double>& numbers = std::get<0>(computed);
  const Tensor<double>& gradients = std::get<1>(computed);
  next = 0;
  const auto compare = [&](const keras::Case& expected, std::string_view name) {
    CAPTURE(name);
    CAPTURE(next);
    // Keras divides by its 4 rows, the program by a global batch of 6.
    constexpr double share = 4.0 / 6;
    CHECK(numbers[2 * next] == doctest::Approx(share * expected.loss).epsilon(1e-12));
    CHECK(numbers[2 * next + 1] == doctest::Approx(share * expected.weighted_loss).epsilon(1e-12));
    for (std::size_t i = 0; i < rows * 3; ++i) {
      CAPTURE(i);
      const double slope = i < 12 ? share * expected.weighted_gradient[i] : 0;
      CHECK(std::fabs(gradients[next * rows * 3 + i] - slope) < 1e-12 * std::max(1.0, std::fabs(slope)));
    }
    ++next;
  };
  (compare(*cases.numbers, decltype(cases.loss)::name), ...);
}

/// A user-defined loss: the mean of cubes.
struct Cubes {
  static constexpr std::string_view name = "cubes";
  template <class T>
  [[nodiscard]] T element(T output, T target) const {
    return (output - target) * (output - target) * (output - target);
  }
  template <class T>
  [[nodiscard]] T slope(T output, T target) const {
    return T{3} * (output - target) * (output - target);
  }
};

/// A formula for rows of both the host and programs: the squared distance of the label's output from the largest one,
/// times the number of outputs above 0.
struct DistanceFromTop {
  static constexpr std::string_view name = "distance_from_top";
  static constexpr bool takes_labels = true;
  void check(const auto& outputs, const auto& labels) const { nn::require_targets(name, outputs, labels, 1); }
  template <class Row, class Labels>
  typename Row::Number per_example(Row outputs, Labels labels) const {
    const typename Row::Number distance = outputs[index_of_largest(outputs)] - outputs[class_of(labels)];
    return distance * distance * sum_of(outputs, [&](auto k) {
             using nn::detail::select;
             using Element = typename Row::Element;
             return select(outputs[k] > Element{0}, Element{1}, Element{0});
           });
  }
};

}  // namespace

TEST_CASE("a formula of a row is a loss for the host and for programs") {
  using Outputs3 = hlo::Traced<double, 2, 3>;
  using Labels = hlo::Traced<std::int32_t, 2>;
  const auto [loss, slopes] = testing::run<Outputs3, Labels>(
      1,
      [](Outputs3 outputs, Labels labels) {
        const auto sum = nn::compute_loss(DistanceFromTop{}, dist_test::Tracing{2}, outputs, labels, 2);
        return std::tuple{sum, std::get<0>(hlo::gradients(sum, std::tuple{outputs}))};
      },
      Tensor<double>{{2, 3}, {3, 1, -1, 0, 2, 1}}, Tensor<std::int32_t>{{2}, {1, 0}});
  CHECK(loss[0] == (2 * 2 * 2 + 2 * 2 * 2) / 2.0);
  CHECK(slopes == Tensor<double>{{2, 3}, {4, -4, 0, -4, 4, 0}});
  const double row[] = {3, 1, -1};
  const std::int32_t label = 1;
  CHECK(DistanceFromTop{}.per_example(nn::Row<const double>{row, 3}, nn::Row<const std::int32_t>{&label, 1}) == 8);
}

TEST_CASE("losses in programs and their gradients match Keras, whatever padding rows contain") {
  keras::Case smoothed_labels = keras::categorical_logits_smoothed;
  smoothed_labels.targets = keras::sparse_logits.targets;
  using Sparse = nn::SparseCategoricalCrossentropy;
  using Categorical = nn::CategoricalCrossentropy;
  using Binary = nn::BinaryCrossentropy;
  check(
      make_case<std::int64_t>(keras::sparse_logits, Sparse{}),
      make_case<std::uint8_t>(keras::sparse_probabilities, Sparse{.from_logits = false}),
      make_case<std::int32_t>(smoothed_labels, Sparse{.label_smoothing = 0.1F}),
      make_case(keras::categorical_logits, Categorical{}),
      make_case(keras::categorical_logits_smoothed, Categorical{.label_smoothing = 0.1F}),
      make_case(keras::categorical_probabilities, Categorical{.from_logits = false}),
      make_case(keras::categorical_probabilities_smoothed, Categorical{.from_logits = false, .label_smoothing = 0.1F}),
      make_case(keras::binary_logits, Binary{}),
      make_case(keras::binary_logits_smoothed, Binary{.label_smoothing = 0.2F}),
      make_case(keras::binary_probabilities, Binary{.from_logits = false}),
      make_case(keras::binary_probabilities_smoothed, Binary{.from_logits = false, .label_smoothing = 0.2F}),
      make_case(keras::mean_squared_error, nn::MeanSquaredError{}),
      make_case(keras::mean_absolute_error, nn::MeanAbsoluteError{}), make_case(keras::huber, nn::Huber{}),
      make_case(keras::huber_wide, nn::Huber{.delta = 2.5F}), make_case(keras::hinge, nn::Hinge{}),
      make_case(keras::hinge_of_signs, nn::Hinge{}), make_case(keras::log_cosh, nn::LogCosh{}),
      make_case(keras::poisson, nn::Poisson{}),
      make_case(keras::mean_squared_logarithmic_error, nn::MeanSquaredLogarithmicError{}),
      make_case(keras::kl_divergence, nn::KlDivergence{}), make_case(keras::cosine_similarity, nn::CosineSimilarity{}));
}

TEST_CASE("losses of a step accept batches with labels [rows, 1], integer targets, and user-defined losses") {
  using Logits = hlo::Traced<float, hlo::batch, 2, 1>;
  using Labels = hlo::Traced<std::int64_t, hlo::batch, 1>;
  using Targets = hlo::Traced<std::int32_t, hlo::batch, 2>;
  const dist::pjrt::Client client = testing::cpus(1);
  const auto step = [](Logits logits, Labels labels, Targets targets) {
    const dist_test::Tracing replica{2};
    const hlo::Dynamic<std::int64_t> dynamic{labels};
    const auto cubes = nn::compute_loss(Cubes{}, replica, logits, targets, 3);
    const auto [slopes] = hlo::gradients(cubes, std::tuple{logits});
    return std::tuple{nn::sparse_categorical_crossentropy(replica, hlo::reshape<hlo::batch, 2>(logits), dynamic, 3),
                      nn::mean_squared_error(replica, logits, targets, 3),
                      nn::Reduced{nn::MeanAbsoluteError{}, nn::Reduction::Sum{}}(replica, logits, targets),
                      cubes,
                      slopes,
                      nn::scale_regularization_loss(dist_test::Tracing{2, 4}, hlo::Traced<float>{6})};
  };
  const hlo::Program program{client, hlo::trace<Logits, Labels, Targets>(1, 3, step)};
  const auto run = [&](std::int64_t second) {
    return testing::on_replica_0(program(hlo::PerReplica<Logits>{client, 1, {{3, 2, 1}, {1, 0, 0, 2, 9, 9}}},
                                         hlo::PerReplica<Labels>{client, 1, {{3, 1}, {0, second, -1}}},
                                         hlo::PerReplica<Targets>{client, 1, {{3, 2}, {1, 1, -1, 0, 9, 9}}}));
  };
  const auto [crossentropy, squares, sum, cubes, slopes, share] = run(1);
  CHECK(crossentropy[0] == doctest::Approx((std::log1p(std::exp(-1)) + std::log1p(std::exp(-2))) / 3));
  CHECK(squares[0] == doctest::Approx((0.5 + 2.5) / 3));
  CHECK(sum[0] == doctest::Approx(0.5 + 1.5));
  CHECK(cubes[0] == doctest::Approx((-0.5 + 4.5) / 3));
  CHECK(slopes == Tensor<float>{{3, 2, 1}, {0, 0.5F, 0.5F, 2, 0, 0}});
  CHECK(share[0] == 1.5F);
  // The label of a valid row.
  CHECK(std::isnan(std::get<0>(run(2))[0]));
  CHECK(std::isnan(std::get<0>(run(-1))[0]));
}

TEST_CASE("a traced step checks losses like a replica function") {
  const hlo::Trace trace{2, 4};
  using Logits = hlo::Traced<float, hlo::batch, 3>;
  const dist_test::Tracing replica{4, 2};
  const Logits logits{0};
  const auto message = [&](const auto& loss, const auto& targets, nn::GlobalBatchSize global, const auto&... weights) {
    return support::what_throws(
        [&] { static_cast<void>(nn::compute_loss(loss, replica, logits, targets, global, weights...)); });
  };
  const hlo::Traced<std::int32_t, hlo::batch> labels{0};
  CHECK(message(nn::SparseCategoricalCrossentropy{}, labels, 8) == "nothing was thrown");
  CHECK(message(nn::SparseCategoricalCrossentropy{}, hlo::Traced<std::int32_t, hlo::batch, 2>{0}, 8) ==
        "sparse_categorical_crossentropy got labels that do not fit the outputs (outputs [4, 3], labels [4, 2]). Give "
        "one label per example, [4].");
  CHECK(message(nn::SparseCategoricalCrossentropy{.label_smoothing = 2}, labels, 8)
            .starts_with("sparse_categorical_crossentropy.label_smoothing is out of range"));
  CHECK(message(nn::Huber{}, labels, 8).starts_with("huber got targets that do not fit the outputs"));
  CHECK(message(nn::Huber{.delta = 0}, logits, 8).starts_with("huber.delta is out of range"));
  CHECK(message(nn::Huber{}, logits, 8, hlo::Traced<float, 3>{1}) ==
        "huber got sample weights that do not fit the outputs (outputs [4, 3], weights [3]). Give one weight per "
        "example, "
        "or none.");
  CHECK(message(nn::Huber{}, logits, 3).starts_with("The global batch size of a loss is too small"));
}
