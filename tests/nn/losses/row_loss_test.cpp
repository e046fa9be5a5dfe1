#include <dist/nn/losses/row_loss.hpp>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

struct Squares {
  static constexpr std::string_view name = "squares";
  template <class T>
  T element(T output, T target) const {
    return (output - target) * (output - target);
  }
  template <class T>
  T slope(T output, T target) const {
    return 2 * (output - target);
  }
};
struct OfRows {
  float per_example(nn::Row<const float> outputs, nn::Row<const int> targets) const {
    return outputs[1] + static_cast<float>(targets[0]);
  }
  float per_example(nn::Row<const float> outputs, nn::Row<const int> targets, float scale,
                    nn::Row<float> gradient) const {
    gradient[1] = scale;
    return per_example(outputs, targets);
  }
};
struct OfSpans {
  static constexpr std::string_view name = "of_spans";
  void check(dist::TensorView<const float>, dist::TensorView<const int>) const {
    throw dist::InvalidArgument("It is wrong", "it is", "Do it right");
  }
  float per_example(std::span<const float> outputs, std::span<const int> targets) const {
    return outputs[1] - static_cast<float>(targets[0]);
  }
  float per_example(std::span<const float> outputs, std::span<const int> targets, float scale,
                    std::span<float> gradient) const {
    gradient[0] = -scale;
    return per_example(outputs, targets);
  }
};
struct WithoutSlope {
  float element(float output, float) const { return output; }
};

static_assert(nn::LossOfElements<Squares, float, int> && !nn::LossOfRows<Squares, float, int>);
static_assert(nn::LossOfRows<OfRows, float, int> && !nn::LossOfRows<OfRows, double, int>);
static_assert(nn::LossOfSpans<OfSpans, float, int> && !nn::LossOfSpans<OfSpans, float, float>);
static_assert(!nn::LossOfElements<WithoutSlope, float, float>);
static_assert(nn::detail::LossOnDevices<Squares, float, int> && nn::detail::LossOnDevices<OfRows, float, int> &&
              !nn::detail::LossOnDevices<OfSpans, float, int>);

const float outputs[] = {3, 5};
const int targets[] = {1, 2};

template <class L>
float value(const L& loss, std::vector<float>& gradient) {
  const nn::Row<const float> row{outputs, 2};
  const nn::Row<const int> target{targets, 2};
  const float alone = nn::detail::loss_of_row(loss, row, target);
  CHECK(nn::detail::loss_of_row(loss, row, target, 4.0F, nn::row_of(std::span{gradient})) == alone);
  return alone;
}

}  // namespace

TEST_CASE("a loss is called in the form that it defines") {
  std::vector<float> gradient(2);
  CHECK(value(Squares{}, gradient) == (4 + 9) / 2.0F);  // the mean of the elements
  CHECK(gradient == std::vector<float>{4 * 4 / 2, 4 * 6 / 2});
  gradient = {0, 0};
  CHECK(value(OfRows{}, gradient) == 6);
  CHECK(gradient == std::vector<float>{0, 4});
  gradient = {0, 0};
  CHECK(value(OfSpans{}, gradient) == 4);
  CHECK(gradient == std::vector<float>{-4, 0});
}

TEST_CASE("targets must have the outputs' shape, unless the loss has its own check") {
  const dist::Tensor<float> rows{dist::Shape{2, 3}};
  dist::Tensor<int> given{dist::Shape{2, 3}};
  CHECK_NOTHROW(nn::detail::examples_of(Squares{}, Squares::name, nn::values_of(rows), nn::values_of(given)));
  CHECK_THROWS_AS(nn::detail::examples_of(OfSpans{}, OfSpans::name, nn::values_of(rows), nn::values_of(given)),
                  dist::InvalidArgument);
  given.resize(dist::Shape{2, 2});
  CHECK_THROWS_WITH_AS(
      nn::detail::examples_of(Squares{}, Squares::name, nn::values_of(rows), nn::values_of(given)),
      "squares got targets that do not fit the outputs (outputs [2, 3], targets [2, 2]). Give one row of 3 elements "
      "for each example, or use a loss or metric whose member check(outputs, targets) accepts these.",
      dist::ShapeMismatch);
}
