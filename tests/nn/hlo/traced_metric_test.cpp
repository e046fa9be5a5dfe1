#include <dist/nn/hlo/traced_metric.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include <dist/nn/losses/regression.hpp>
#include <dist/nn/metrics/accuracy.hpp>
#include <dist/nn/metrics/auc.hpp>
#include <dist/nn/metrics/confusion_matrix.hpp>
#include <dist/nn/metrics/precision_recall.hpp>
#include <hlo/run.hpp>
#include <nn/hlo/tracing.hpp>
#include <nn/keras/metrics.hpp>
#include <support/what_throws.hpp>

namespace hlo = dist::hlo;
namespace nn = dist::nn;
namespace keras = keras_metrics;
using dist::Tensor;

namespace {

/// Eight rows are valid; the others contain NaN, and labels out of range.
constexpr std::size_t rows = 10;
constexpr dist_test::Tracing replica{8};
using Outputs = hlo::Traced<double, rows, 3>;
using PerRow = hlo::Traced<double, rows>;
/// The contributions of a metric, followed by zeros.
constexpr std::size_t most_counts = 400;

template <class M, class Target>
struct Case {
  const keras::Case* numbers;
  M measure;
  using Element = Target;
};
template <class Target = double, class M>
Case<M, Target> make_case(const keras::Case& numbers, M measure) {
  return {&numbers, measure};
}

template <class M, class... Given>
hlo::Value added(const M& measure, const Given&... given) {
  std::vector<hlo::Value> all;
  std::size_t count = 2;
  if constexpr (nn::CountingMetric<M>) {
    count = measure.shape().elements();
    all = {hlo::untyped::reshape(nn::traced_counts(nn::MetricInTrace{}, measure, replica, given...).value(), {count})};
  } else {
    const nn::TracedTally tally = nn::traced_tally(nn::MetricInTrace{}, measure, replica, given...);
    all = {hlo::reshape<1>(tally.total).value(), hlo::reshape<1>(tally.count).value()};
  }
  all.push_back(hlo::untyped::constant({hlo::element_kind<double>, {most_counts - count}}, 0));
  return hlo::untyped::reshape(hlo::untyped::concatenate(all, 0), {1, most_counts});
}

template <class M>
double result(const M& measure, const double* added) {
  if constexpr (nn::CountingMetric<M>)
    return measure.result(dist::TensorView<const double>{added, measure.shape()});
  else
    return added[0] / added[1];
}

/// Checks all cases in one program, with and without weights.
template <class... Cases>
void check(const Cases&... cases) {
  constexpr std::size_t count = sizeof...(cases);
  using All = hlo::Traced<double, count, rows, 3>;
  Tensor<double> outputs{All::shape()}, targets{All::shape()}, weights{{rows}};
  for (double& each : outputs.elements()) each = std::numeric_limits<double>::quiet_NaN();
  for (double& each : targets.elements()) each = 77;
  for (std::size_t i = 0; i < rows; ++i) weights[i] = i < 8 ? keras::weights[i] : std::nan("");
  std::size_t next = 0;
  const auto fill = [&](const keras::Case& numbers, std::size_t target_count) {
    for (std::size_t i = 0; i < 24; ++i) outputs[next * rows * 3 + i] = numbers.outputs[i];
    for (std::size_t i = 0; i < target_count; ++i) targets[next * rows * 3 + i] = numbers.targets[i];
    ++next;
  };
  (fill(*cases.numbers, std::integral<typename Cases::Element> ? 8 : 24), ...);

  const Tensor<double> computed = testing::run<All, All, PerRow>(
      1,
      [&](All all_outputs, All all_targets, PerRow of_rows) {
        std::vector<hlo::Value> values;
        const auto add = [&]<class Each, std::size_t I>(const Each& each, std::integral_constant<std::size_t, I>) {
          const Outputs of_case = hlo::reshape<rows, 3>(hlo::slice<0, I, 1>(all_outputs));
          const auto wanted = [&] {
            using Target = typename Each::Element;
            const auto row = hlo::reshape<rows * 3>(hlo::slice<0, I, 1>(all_targets)).template as<Target>();
            if constexpr (std::integral<Target>)
              return hlo::Dynamic<Target>{hlo::slice<0, 0, rows>(row)};
            else
              return hlo::reshape<rows, 3>(row);
          }();
          values.push_back(added(each.measure, of_case, wanted));
          values.push_back(added(each.measure, of_case, wanted, of_rows));
        };
        [&]<std::size_t... I>(std::index_sequence<I...>) {
          (add(cases, std::integral_constant<std::size_t, I>{}), ...);
        }
        (std::make_index_sequence<count>{});
        return hlo::Traced<double, 2 * count, most_counts>{hlo::untyped::concatenate(values, 0)};
      },
      outputs, targets, weights);

  next = 0;
  const auto compare = [&](const auto& each) {
    CAPTURE(each.measure.name);
    CAPTURE(next);
    const double* const of_case = computed.data() + 2 * next * most_counts;
    CHECK(result(each.measure, of_case) == doctest::Approx(each.numbers->result).epsilon(1e-12));
    CHECK(result(each.measure, of_case + most_counts) == doctest::Approx(each.numbers->weighted_result).epsilon(1e-12));
    ++next;
  };
  (compare(cases), ...);
}

}  // namespace

TEST_CASE("metrics in programs match Keras, whatever padding rows contain") {
  // Keras adds an epsilon to each part of F1; this test uses the epsilon of Keras' precision and recall.
  keras::Case f1 = keras::f1;
  const auto mean = [](double precision, double recall) { return 2 * precision * recall / (precision + recall); };
  f1.result = mean(keras::precision.result, keras::recall.result);
  f1.weighted_result = mean(keras::precision.weighted_result, keras::recall.weighted_result);
  check(make_case(keras::binary_accuracy, nn::BinaryAccuracy{}),
        make_case<float>(keras::binary_accuracy_above, nn::BinaryAccuracy{.threshold = 0.75F}),
        make_case(keras::categorical_accuracy, nn::CategoricalAccuracy{}),
        make_case<std::int64_t>(keras::sparse_categorical_accuracy, nn::SparseCategoricalAccuracy{}),
        make_case(keras::top_2, nn::TopKCategoricalAccuracy{.k = 2}),
        make_case<std::uint8_t>(keras::sparse_top_2, nn::SparseTopKCategoricalAccuracy{.k = 2}),
        make_case(keras::precision, nn::Precision{}),
        make_case<float>(keras::precision_above, nn::Precision{.threshold = 0.75F}),
        make_case(keras::recall, nn::Recall{}), make_case<float>(keras::recall_above, nn::Recall{.threshold = 0.75F}),
        make_case(f1, nn::F1{}), make_case(keras::auc, nn::Auc{}), make_case(keras::auc_of_5, nn::Auc{.thresholds = 5}),
        make_case(keras::pr_auc, nn::Auc{.curve = nn::Auc::Curve::pr}),
        make_case(keras::auc_of_logits, nn::Auc{.from_logits = true}),
        make_case<std::int32_t>(keras::sparse_categorical_accuracy, nn::ConfusionMatrix{.classes = 3}));
}

TEST_CASE("programs count exactly, per cell of a metric, and average losses and numbers") {
  using Batch = hlo::Traced<float, hlo::batch, 3>;
  using Labels = hlo::Traced<std::int64_t, hlo::batch>;
  const dist::pjrt::Client client = testing::cpus(1);
  const hlo::Program program{
      client, hlo::trace<Batch, Labels, hlo::Traced<float>>(1, rows, [](Batch outputs, Labels labels, auto number) {
        constexpr nn::MetricInTrace in_trace;
        const nn::TracedTally loss =
            nn::traced_tally(in_trace, nn::MeanOf{nn::MeanSquaredError{}}, replica, outputs, Batch{1});
        const nn::TracedTally weighted =
            nn::traced_tally(in_trace, nn::MeanOf{nn::MeanSquaredError{}}, replica, outputs, Batch{1}, labels);
        const nn::TracedTally mean = nn::traced_tally(in_trace, nn::MeanValue{}, replica, number, 4);
        const nn::TracedTally of_value = nn::traced_tally(in_trace, nn::MeanValue{}, replica, number.value());
        const auto counts = nn::traced_counts(in_trace, nn::ConfusionMatrix{.classes = 3}, replica, outputs, labels);
        const auto top =
            nn::traced_tally(in_trace, nn::SparseTopKCategoricalAccuracy{.k = 9}, replica, outputs, labels);
        return std::tuple{counts.as<3, 3>(), loss.total, loss.count,     weighted.total, weighted.count,
                          mean.total,        mean.count, of_value.total, of_value.count, top.total};
      })};
  Tensor<float> outputs{{rows, 3}};
  Tensor<std::int64_t> labels{{rows}, {0, 0, 1, 1, 2, 2, -1, 3, 0, 1}};
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < 3; ++i) outputs(row, i) = i == row / 2 % 3 ? 2 : 0;
  outputs(1, 0) = -std::numeric_limits<float>::infinity();
  const auto [counts, total, count, weighted_total, weighted_count, mean, weight, value, ones, top] =
      testing::on_replica_0(program(hlo::PerReplica<Batch>{client, 1, outputs},
                                    hlo::PerReplica<Labels>{client, 1, labels},
                                    hlo::PerReplica<hlo::Traced<float>>{client, 1, {{}, {2.5F}}}));
  // Labels out of range are not counted; the first column of row 1 is the smallest.
  CHECK(counts == Tensor<double>{{3, 3}, {1, 1, 0, 0, 2, 0, 0, 0, 2}});
  CHECK(total[0] == std::numeric_limits<double>::infinity());
  CHECK(count[0] == 8);
  CHECK(std::isnan(weighted_total[0]));
  CHECK(weighted_count[0] == 0 + 0 + 1 + 1 + 2 + 2 - 1 + 3);
  CHECK(mean[0] == 10);
  CHECK(weight[0] == 4);
  CHECK(value[0] == 2.5);
  CHECK(ones[0] == 1);
  CHECK(top[0] == 5);  // an output of -infinity is never among the largest
}

TEST_CASE("a traced step checks the arguments of metrics like a replica function") {
  const hlo::Trace trace{1, 4};
  const hlo::Traced<float, hlo::batch, 3> outputs{0};
  const hlo::Traced<std::int32_t, hlo::batch> labels{0};
  const auto message = [&](const auto& measure, const auto& targets, const auto&... weights) {
    return support::what_throws([&] { static_cast<void>(added(measure, outputs, targets, weights...)); });
  };
  CHECK(message(nn::SparseCategoricalAccuracy{}, labels) == "nothing was thrown");
  CHECK(message(nn::SparseCategoricalAccuracy{}, hlo::Traced<std::int32_t, 3>{0})
            .starts_with("accuracy got labels that do not fit the outputs"));
  CHECK(message(nn::SparseCategoricalAccuracy{}, labels, hlo::Traced<float, 3>{0})
            .starts_with("accuracy got sample weights that do not fit the outputs"));
  CHECK(message(nn::Precision{}, hlo::Traced<float, hlo::batch, 2>{0})
            .starts_with("precision got targets that do not fit the outputs"));
  CHECK(message(nn::ConfusionMatrix{.classes = 4}, labels)
            .starts_with("confusion_matrix got outputs with a different number of classes"));
}
