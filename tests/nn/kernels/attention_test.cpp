#define DIST_DISPATCH_VECTORS 1  // as in the compiled part
#include <dist/nn/kernels/attention.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "nn/kernels/widths.hpp"

namespace nn = dist::nn;

namespace {

using List = std::vector<double>;

struct Expected {
  List outputs, log_sums, queries, keys, values;
};

/// Attention and its gradients by definition, in double.
Expected expected(const nn::AttentionSizes& of, const std::vector<float>& q, const std::vector<float>& k,
                  const std::vector<float>& v, const std::vector<float>& slopes) {
  Expected result{List(q.size()), List(of.heads * of.length), List(q.size()), List(k.size()), List(k.size())};
  const double scale = 1 / std::sqrt(double(of.width));
  for (std::size_t h = 0; h < of.heads; ++h) {
    const std::size_t shared = h / (of.heads / of.key_heads) * of.width;
    for (std::size_t i = 0; i < of.length; ++i) {
      const std::size_t query = i * of.columns() + h * of.width;
      const std::size_t reach = of.is_causal ? i + 1 : of.length;
      List weight(reach);
      double sum = 0;
      for (std::size_t j = 0; j < reach; ++j) {
        for (std::size_t c = 0; c < of.width; ++c)
          weight[j] += scale * q[query + c] * k[j * of.key_columns() + shared + c];
        sum += std::exp(weight[j]);
      }
      result.log_sums[h * of.length + i] = std::log(sum);
      for (double& w : weight) w = std::exp(w) / sum;
      List slope(reach);
      double mean = 0;
      for (std::size_t j = 0; j < reach; ++j) {
        const std::size_t key = j * of.key_columns() + shared;
        for (std::size_t c = 0; c < of.width; ++c) {
          result.outputs[query + c] += weight[j] * v[key + c];
          slope[j] += double(slopes[query + c]) * v[key + c];
        }
        mean += weight[j] * slope[j];
      }
      for (std::size_t j = 0; j < reach; ++j) {
        const std::size_t key = j * of.key_columns() + shared;
        const double of_product = scale * weight[j] * (slope[j] - mean);
        for (std::size_t c = 0; c < of.width; ++c) {
          result.queries[query + c] += of_product * k[key + c];
          result.keys[key + c] += of_product * q[query + c];
          result.values[key + c] += weight[j] * slopes[query + c];
        }
      }
    }
  }
  return result;
}

double difference(const std::vector<float>& found, const List& expected) {
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double error = std::abs(double(found[i]) - expected[i]);
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

void check(const nn::AttentionSizes& of, float size_of_numbers = 2) {
  CAPTURE(of.length);
  CAPTURE(of.width);
  CAPTURE(of.key_heads);
  CAPTURE(of.is_causal);
  std::vector<float> q = numbers<float>(of.length * of.columns(), 1);
  std::vector<float> k = numbers<float>(of.length * of.key_columns(), 2);
  for (auto* const factor : {&q, &k})
    for (float& value : *factor) value *= size_of_numbers;
  const std::vector<float> v = numbers<float>(k.size(), 3);
  const std::vector<float> slopes = numbers<float>(q.size(), 4);
  const Expected right = expected(of, q, k, v, slopes);
  std::vector<float> outputs(q.size(), 9), log_sums(of.heads * of.length, 9), dq(q.size(), 9), dk(k.size(), 9),
      dv(k.size(), 9);
  constexpr float unused = 0x1p100f;  // shows reads of unwritten scratch
  std::vector<float> scratch(nn::kernels::attention_scratch(of) + 1, unused);
  const nn::AttentionInputs<float> inputs{q.data(), k.data(), v.data()};
  nn::kernels::attention(of, inputs, outputs.data(), log_sums.data(), scratch.data());
  const double most = 1e-6 * (1 + size_of_numbers * size_of_numbers);
  CHECK(difference(outputs, right.outputs) < most);
  CHECK(difference(log_sums, right.log_sums) < most);
  nn::kernels::attention_gradients(of, inputs, outputs.data(), log_sums.data(),
                                   {slopes.data(), dq.data(), dk.data(), dv.data()}, scratch.data());
  CHECK(difference(dq, right.queries) < most);
  CHECK(difference(dk, right.keys) < most);
  CHECK(difference(dv, right.values) < most);
  CHECK(scratch.back() == unused);
}

}  // namespace

TEST_CASE("blocked attention and its gradients agree with the definition, for all lengths and widths") {
  for (const bool is_causal : {false, true}) {
    for (const std::size_t length : std::vector<std::size_t>{1, 2, 7, 16, 47, 48, 49, 130, 200})
      check({length, 2, 2, 5, is_causal});
    for (const std::size_t width : std::vector<std::size_t>{1, 3, 8, 16, 17, 64, 72})
      check({70, 2, 2, width, is_causal});
  }
}

TEST_CASE("blocked attention keeps large products from overflow, and small weights from NaN") {
  for (const bool is_causal : {false, true}) check({130, 1, 1, 8, is_causal}, 20);
}

TEST_CASE("heads of queries share heads of keys and values, whose gradients are sums over them") {
  for (const bool is_causal : {false, true}) {
    check({67, 6, 2, 4, is_causal});
    check({67, 4, 1, 4, is_causal});
  }
}
