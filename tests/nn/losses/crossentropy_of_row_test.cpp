#include <dist/nn/losses/crossentropy_of_row.hpp>

#include <cmath>
#include <cstddef>

#include <doctest/doctest.h>

namespace detail = dist::nn::detail;
using dist::nn::Row;

TEST_CASE("probabilities are clipped, except NaN") {
  CHECK(detail::clipped_probability(0.0) == 1e-7);
  CHECK(detail::clipped_probability(1.0) == 1 - 1e-7);
  CHECK(detail::clipped_probability(0.5) == 0.5);
  CHECK(std::isnan(detail::clipped_probability(NAN)));
  CHECK((detail::unless_clipped(0.0, 3.0) == 0 && detail::unless_clipped(1.0, 3.0) == 0));
  CHECK((detail::unless_clipped(0.5, 3.0) == 3 && detail::unless_clipped<double>(NAN, 3.0) == 3));
}

TEST_CASE("smoothed targets keep their sum") {
  const detail::SmoothedLabel<Row<const double>, std::size_t> label{1, 4, 0.5F};
  CHECK(label(std::size_t{0}) == 0.125);
  CHECK(label(std::size_t{1}) == 0.625);
  const detail::SmoothedLabel<Row<const double>, std::size_t> plain{1, 4, 0};
  CHECK((plain(std::size_t{0}) == 0 && plain(std::size_t{1}) == 1));
  const int one_hot[] = {0, 1, 0, 0};
  const detail::SmoothedTargets<Row<const double>, Row<const int>> targets{{one_hot, 4}, 4, 0.5F};
  for (std::size_t k = 0; k < 4; ++k) CHECK(targets(k) == label(k));
}

TEST_CASE("gradients are right for targets that do not add up to 1") {
  const double parts[] = {0.5, 1.0, 0.25};
  const detail::SmoothedTargets<Row<const double>, Row<const double>> target{{parts, 3}, 3, 0};
  double logits[] = {1, -2, 0.5}, gradient[3];
  const auto value = [&] { return detail::crossentropy_of_logits(Row<const double>{logits, 3}, target); };
  const double total = std::exp(1) + std::exp(-2) + std::exp(0.5);
  CHECK(value() == doctest::Approx(1.75 * std::log(total) - 0.5 + 2 - 0.125).epsilon(1e-14));
  CHECK(detail::crossentropy_of_logits(Row<const double>{logits, 3}, target, 2.0, Row<double>{gradient, 3}) == value());
  for (std::size_t k = 0; k < 3; ++k) {
    const double at = logits[k];
    logits[k] = at + 1e-6;
    const double above = value();
    logits[k] = at - 1e-6;
    const double below = value();
    logits[k] = at;
    CHECK(gradient[k] == doctest::Approx(2 * (above - below) / 2e-6).epsilon(1e-6));
  }
}
