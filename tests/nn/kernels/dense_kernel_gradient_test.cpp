#define DIST_DISPATCH_VECTORS 1  // all widths of the processor
#include <dist/nn/kernels/dense_kernel_gradient.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

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

/// The gradients of a range, block by block as in dense_kernel_gradient, with vectors of one width.
template <std::size_t Inputs, std::size_t Units, class T, class AtWidth>
std::vector<T> gradients(const Replicas<Inputs, Units, T>& replicas, IndexRange range, AtWidth& at_width) {
  using Block = nn::kernels::DenseKernelGradientBlock<Units, T>;
  static_assert(Units <= Block::most_units);
  std::vector<T> result(range.size() * Units, T{99});
  for (std::size_t first = range.begin; first < range.end; first += Block::block_inputs) {
    const std::size_t end = std::min(first + Block::block_inputs, range.end);
    at_width(Block{replicas.batches,
                   Inputs,
                   {first, end},
                   {end, std::min(end + Block::block_inputs, range.end)},
                   result.data() + (first - range.begin) * Units,
                   nullptr});
  }
  return result;
}

/// Compares with plain loops in long double, within the error bound of a sum of one product per row.
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

    // Only ranges of whole blocks must have equal bits: in others compilers may fuse multiplications and additions.
    std::size_t different = 0;
    for (const IndexRange range : {IndexRange{0, 1}, IndexRange{1, Inputs}, IndexRange{Inputs / 2, Inputs},
                                   IndexRange{Inputs / 3, Inputs / 3 * 2 + 1}, IndexRange{Inputs, Inputs},
                                   IndexRange{0, 16}, IndexRange{16, Inputs}, IndexRange{16, 32}}) {
      if (range.begin > range.end || range.end > Inputs) continue;
      const bool same_bits = range.begin % 16 == 0 && (range.end % 16 == 0 || range.end == Inputs);
      const std::vector<T> part = gradients(replicas, range, at_width);
      for (std::size_t at = 0; at < part.size(); ++at) {
        const T whole = all[range.begin * Units + at];
        if (same_bits ? part[at] != whole : !(std::abs(part[at] - whole) <= T(1e-4) * (1 + std::abs(whole))))
          ++different;
      }
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

TEST_CASE("kernel gradients over batches have the same bits for all ranges of whole blocks") {
  check_size<64, 128, float>();
}

TEST_CASE("kernel gradients are right for sizes that are not multiples of vectors") {
  check_size<1, 1, float>();
  check_size<13, 7, float>();
  check_size<45, 10, float>();
  check_size<19, 33, float>();
  check_size<35, 19, double>();
}

namespace {

/// The gradients of a range of a wide layer, from `consume`. Elements are consumed once.
template <std::size_t Inputs, std::size_t Units, class T>
std::vector<T> gradients_of_panels(const Replicas<Inputs, Units, T>& replicas, IndexRange range) {
  std::vector<T> result(range.size() * Units);
  std::vector<int> consumed(result.size());
  nn::kernels::dense_kernel_gradient<Inputs, Units>(std::span<const nn::kernels::DenseBatch<T>>{replicas.batches},
                                                    range, [&](std::size_t first, std::span<const T> sums) {
                                                      for (std::size_t i = 0; i < sums.size(); ++i) {
                                                        result.at(first - range.begin * Units + i) = sums[i];
                                                        ++consumed[first - range.begin * Units + i];
                                                      }
                                                    });
  CHECK(std::ranges::count(consumed, 1) == std::ptrdiff_t(consumed.size()));
  return result;
}

template <std::size_t Inputs, std::size_t Units, class T>
void check_panels(const std::vector<std::size_t>& rows) {
  CAPTURE(Inputs);
  CAPTURE(Units);
  CAPTURE(rows.size());
  const Replicas<Inputs, Units, T> replicas{rows};
  const std::vector<T> all = gradients_of_panels(replicas, {0, Inputs});
  double worst = 0;
  for (std::size_t i = 0; i < Inputs; ++i) {
    for (std::size_t u = 0; u < Units; ++u) {
      double sum = 0;
      for (const auto& batch : replicas.batches)
        for (std::size_t r = 0; r < batch.rows; ++r) sum += double(batch.x[r * Inputs + i]) * batch.dy[r * Units + u];
      worst = std::max(worst, std::abs(all[i * Units + u] - sum));
    }
  }
  CHECK(worst < 1e-5);
  for (const IndexRange range : {IndexRange{0, 16}, IndexRange{16, Inputs}, IndexRange{16, 32}, IndexRange{16, 16}}) {
    if (range.begin > Inputs || range.end > Inputs) continue;
    const std::vector<T> part = gradients_of_panels(replicas, range);
    CHECK(std::equal(part.begin(), part.end(), all.begin() + std::ptrdiff_t(range.begin * Units)));
  }
}

}  // namespace

TEST_CASE("kernel gradients of wide layers are right, panel by panel, with the same bits for all ranges of blocks") {
  for (const std::vector<std::size_t>& rows : std::vector<std::vector<std::size_t>>{{}, {0}, {1}, {70}, {3, 0, 130, 7}})
    check_panels<101, 1536, float>(rows);
  check_panels<9, 1030, float>({65});
  check_panels<19, 513, float>({64, 64});
  check_panels<35, 257, double>({67});
  check_panels<2, 50257, float>({3});
}

TEST_CASE("the kernel gradient of one unit has the bits of the kernel for several units") {
  const Replicas<21, 1, float> replicas{{5, 130}};
  const auto at_widest = [](const auto& body) { detail::with_widest_vectors(body); };
  std::vector<float> sums(21);
  nn::kernels::dense_kernel_gradient<21, 1>(std::span<const nn::kernels::DenseBatch<float>>{replicas.batches}, {0, 21},
                                            [&](std::size_t first, std::span<const float> block) {
                                              std::ranges::copy(block, sums.begin() + std::ptrdiff_t(first));
                                            });
  CHECK(sums == gradients(replicas, {0, 21}, at_widest));
}

TEST_CASE("blocks are consumed in order without gaps, and a NaN affects its unit only") {
  Replicas<18, 20, float> replicas{{5, 6}};
  replicas.memory[3][2 * 20 + 7] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> kernel(18 * 20, 1.0f);
  const std::span<const nn::kernels::DenseBatch<float>> batches{replicas.batches};
  std::size_t misplaced = 0;
  std::size_t expected_first = 20;
  nn::kernels::dense_kernel_gradient<18, 20>(
      batches, {1, 18},
      [&](std::size_t first, std::span<const float> block) {
        misplaced += first != expected_first || block.empty() || block.size() % 20 != 0;
        expected_first += block.size();
        for (std::size_t at = 0; at < block.size(); ++at) kernel[first + at] -= 0.5f * block[at];
      },
      kernel.data());
  CHECK(misplaced == 0);
  CHECK(expected_first == 18 * 20);
  const auto same = [](const auto& body) { detail::with_widest_vectors(body); };
  const std::vector<float> expected = gradients(replicas, {0, 18}, same);
  std::size_t wrong = 0;
  for (std::size_t at = 0; at < 20; ++at) wrong += kernel[at] != 1.0f;
  for (std::size_t at = 20; at < kernel.size(); ++at) {
    if (std::isnan(kernel[at]) != (at % 20 == 7)) ++wrong;
    if (at % 20 != 7 && std::abs(kernel[at] - (1.0f - 0.5f * expected[at])) > 1e-6f) ++wrong;
  }
  CHECK(wrong == 0);
}

namespace {

template <std::size_t Units, class T>
void check_units() {
  const std::vector<T> first = numbers<T>(9 * Units, 1);
  const std::vector<T> second = numbers<T>(2 * Units, 2);
  const std::vector<nn::kernels::DenseBatch<T>> batches{
      {nullptr, first.data(), 9}, {nullptr, nullptr, 0}, {nullptr, second.data(), 2}};
  std::vector<T> expected(Units);
  for (const auto& batch : batches)
    for (std::size_t r = 0; r < batch.rows; ++r)
      for (std::size_t u = 0; u < Units; ++u) expected[u] += batch.dy[r * Units + u];
  for_each_width([&](auto at_width) {
    std::vector<T> sums(Units, T{5});
    at_width(nn::kernels::DenseBiasGradient<Units, T>{batches, sums.data()});
    CHECK(sums == expected);
  });
  std::vector<T> sums(Units, T{5});
  nn::kernels::dense_bias_gradient<Units>(std::span<const nn::kernels::DenseBatch<T>>{batches}, sums.data());
  CHECK(sums == expected);
}

}  // namespace

TEST_CASE("bias gradients are the sums of dy over batches and rows, in order") {
  check_units<1, float>();
  check_units<7, float>();
  check_units<10, float>();
  check_units<33, float>();
  check_units<128, float>();
  check_units<1, double>();
  check_units<19, double>();
}

TEST_CASE("bias gradients of empty batches are zeros") {
  std::vector<float> sums(3, 5.0f);
  nn::kernels::dense_bias_gradient<3>(std::span<const nn::kernels::DenseBatch<float>>{}, sums.data());
  CHECK(sums == std::vector<float>(3, 0.0f));
}
