#include <dist/nn/kernels/dense_kernel_gradient.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "nn/kernels/widths.hpp"

using namespace dist;

namespace {

template <std::size_t Inputs, std::size_t Units, class T>
struct Replicas {
  std::vector<std::vector<T>> memory;
  std::vector<nn::kernels::DenseBatch<T>> batches;

  explicit Replicas(const std::vector<std::size_t>& rows) {
    unsigned seed = 0;
    for (const std::size_t count : rows) {
      memory.push_back(numbers<T>(count * Inputs, ++seed));
      memory.push_back(numbers<T>(count * Units, ++seed));
    }
    for (std::size_t b = 0; b < rows.size(); ++b)
      batches.push_back({memory[2 * b].data(), memory[2 * b + 1].data(), rows[b]});
  }
};

/// The gradients of a range as `consume` gets them; checks that the blocks are whole inputs, in order, without gaps.
template <std::size_t Inputs, std::size_t Units, class T, class AtWidth>
std::vector<T> gradients(const Replicas<Inputs, Units, T>& replicas, IndexRange range, AtWidth& at_width) {
  std::vector<T> result;
  std::size_t misplaced = 0;
  const auto consume = [&](std::size_t first, std::span<const T> block) {
    misplaced += first != range.begin * Units + result.size() || block.empty() || block.size() % Units != 0;
    result.insert(result.end(), block.begin(), block.end());
  };
  const auto prefetch = [&](std::size_t element) {
    misplaced += element < range.begin * Units + result.size() || element >= range.end * Units;
  };
  at_width(nn::kernels::DenseKernelGradient<Inputs, Units, T, decltype(consume), decltype(prefetch)>{
      replicas.batches, range, consume, prefetch});
  CHECK(misplaced == 0);
  CHECK(result.size() == range.size() * Units);
  return result;
}

/// Against plain loops in long double, within the bound of a sum of as many products as there are rows.
template <std::size_t Inputs, std::size_t Units, class T>
void check_rows(const std::vector<std::size_t>& rows) {
  const Replicas<Inputs, Units, T> replicas{rows};
  for_each_width([&](auto at_width) {
    const std::vector<T> all = gradients(replicas, {0, Inputs}, at_width);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < Inputs; ++i) {
      for (std::size_t u = 0; u < Units; ++u) {
        long double sum = 0;
        long double magnitude = 0;
        long double count = 0;
        for (const auto& batch : replicas.batches) {
          for (std::size_t r = 0; r < batch.rows; ++r) {
            const long double term = static_cast<long double>(batch.x[r * Inputs + i]) * batch.dy[r * Units + u];
            sum += term;
            magnitude += std::abs(term);
            ++count;
          }
        }
        if (!(std::abs(all[i * Units + u] - sum) <= count * std::numeric_limits<T>::epsilon() * magnitude)) ++wrong;
      }
    }
    CHECK(wrong == 0);

    std::size_t different = 0;
    for (const IndexRange range : {IndexRange{0, 1}, IndexRange{1, Inputs}, IndexRange{Inputs / 2, Inputs},
                                   IndexRange{Inputs / 3, Inputs / 3 * 2 + 1}, IndexRange{Inputs, Inputs}}) {
      if (range.begin > range.end || range.end > Inputs) continue;
      const std::vector<T> part = gradients(replicas, range, at_width);
      for (std::size_t at = 0; at < part.size(); ++at)
        if (part[at] != all[range.begin * Units + at]) ++different;
    }
    CHECK(different == 0);
  });
}

template <std::size_t Inputs, std::size_t Units, class T>
void check_size() {
  CAPTURE(Inputs);
  CAPTURE(Units);
  for (const std::vector<std::size_t>& rows : std::vector<std::vector<std::size_t>>{
           {}, {0}, {1}, {2}, {7}, {13}, {64}, {65}, {300}, {64, 64}, {3, 0, 130, 7}}) {
    CAPTURE(rows.size());
    check_rows<Inputs, Units, T>(rows);
  }
}

}  // namespace

TEST_CASE("kernel gradients over batches; the same bits in any range of inputs") { check_size<64, 128, float>(); }

TEST_CASE("kernel gradients of sizes that are no multiple of a vector") {
  check_size<1, 1, float>();
  check_size<13, 7, float>();
  check_size<45, 10, float>();
  check_size<19, 33, float>();
  check_size<35, 19, double>();
}

TEST_CASE("kernel gradients of so many units that a block holds few inputs") { check_size<9, 1030, float>(); }

TEST_CASE("dense_kernel_gradient takes the processor's widest vectors; a NaN reaches its unit only") {
  Replicas<18, 20, float> replicas{{5, 6}};
  replicas.memory[3][2 * 20 + 7] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> kernel(18 * 20, 1.0f);
  const std::span<const nn::kernels::DenseBatch<float>> batches{replicas.batches};
  nn::kernels::dense_kernel_gradient<18, 20>(batches, {0, 18}, [&](std::size_t first, std::span<const float> block) {
    for (std::size_t at = 0; at < block.size(); ++at) kernel[first + at] -= 0.5f * block[at];
  });
  const auto same = [](const auto& body) { detail::with_widest_vectors(body); };
  const std::vector<float> expected = gradients(replicas, {0, 18}, same);
  std::size_t wrong = 0;
  for (std::size_t at = 0; at < kernel.size(); ++at) {
    if (std::isnan(kernel[at]) != (at % 20 == 7)) ++wrong;
    if (at % 20 != 7 && std::abs(kernel[at] - (1.0f - 0.5f * expected[at])) > 1e-6f) ++wrong;
  }
  CHECK(wrong == 0);
}
