// A table from a CSV file, and a network for it.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <string>

#include <dist/data.hpp>
#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/train.hpp>
#include <dist/train/model_files.hpp>

namespace nn = dist::nn;
namespace data = dist::data;

struct Row {
  float x0, x1, x2, x3, x4, x5, x6, x7, x8, x9;
  std::string city;
  float target;
};

inline auto table(const char* path) {
  return data::csv(path, data::column("x0", &Row::x0), data::column("x1", &Row::x1), data::column("x2", &Row::x2),
                   data::column("x3", &Row::x3), data::column("x4", &Row::x4), data::column("x5", &Row::x5),
                   data::column("x6", &Row::x6), data::column("x7", &Row::x7), data::column("x8", &Row::x8),
                   data::column("x9", &Row::x9), data::column("city", &Row::city),
                   data::column("target", &Row::target));
}

inline std::array<float, 10> numbers_of(const Row& row) {
  return {row.x0, row.x1, row.x2, row.x3, row.x4, row.x5, row.x6, row.x7, row.x8, row.x9};
}

/// Mean and standard deviation of each column of numbers.
struct Statistics {
  std::array<double, 10> mean{}, deviation{};
};

inline Statistics statistics_of(auto dataset) {
  std::array<double, 10> sums{}, squares{};
  double count = 0;
  for (const Row& row : dataset) {
    const std::array<float, 10> numbers = numbers_of(row);
    for (std::size_t i = 0; i < 10; ++i) {
      const double number = numbers[i];
      sums[i] += number;
      squares[i] += number * number;
    }
    ++count;
  }
  Statistics result;
  for (std::size_t i = 0; i < 10; ++i) {
    result.mean[i] = sums[i] / count;
    result.deviation[i] = std::sqrt(squares[i] / count - result.mean[i] * result.mean[i]);
  }
  return result;
}

inline auto to_example(Statistics statistics) {
  return data::map([statistics](const Row& row) {
    dist::Tensor<float> x{{14}};
    const std::array<float, 10> numbers = numbers_of(row);
    for (std::size_t i = 0; i < 10; ++i)
      x[i] = static_cast<float>((static_cast<double>(numbers[i]) - statistics.mean[i]) / statistics.deviation[i]);
    constexpr const char* cities[] = {"berlin", "paris", "rome", "oslo"};
    for (std::size_t i = 0; i < 4; ++i) x[10 + i] = row.city == cities[i];
    return data::Example{x, row.target};
  });
}

using Net =
    nn::Sequential<nn::Input<14>, nn::Dense<64, nn::Relu>, nn::Dropout<20>, nn::Dense<64, nn::Relu>, nn::Dense<1>>;
