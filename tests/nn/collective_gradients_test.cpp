#include <dist/nn/collective_gradients.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;
using List = std::vector<double>;
using Lists = std::vector<List>;

namespace {

/// The gradients of `loss`, a function of all replicas' inputs, by central differences.
Lists differences(Lists inputs, const std::function<double(const Lists&)>& loss) {
  Lists gradients = inputs;
  for (std::size_t replica = 0; replica < inputs.size(); ++replica)
    for (std::size_t i = 0; i < inputs[replica].size(); ++i) {
      constexpr double step = 1e-6;
      const double before = inputs[replica][i];
      inputs[replica][i] = before + step;
      const double above = loss(inputs);
      inputs[replica][i] = before - step;
      const double below = loss(inputs);
      inputs[replica][i] = before;
      gradients[replica][i] = (above - below) / (2 * step);
    }
  return gradients;
}

void check_equal(const auto& gradients, const Lists& expected) {
  REQUIRE(gradients.size() == expected.size());
  for (std::size_t replica = 0; replica < expected.size(); ++replica) {
    REQUIRE(gradients[replica].size() == expected[replica].size());
    for (std::size_t i = 0; i < expected[replica].size(); ++i)
      CHECK(gradients[replica][i] == doctest::Approx(expected[replica][i]).epsilon(1e-7));
  }
}

/// Replica r's loss: the sum over i of sin((r + 1) y_i) + i y_i, where y is the collective's result.
double loss_of(std::size_t replica, std::span<const double> y) {
  double loss = 0;
  for (std::size_t i = 0; i < y.size(); ++i)
    loss += std::sin(static_cast<double>(replica + 1) * y[i]) + static_cast<double>(i) * y[i];
  return loss;
}
void slopes_of(std::size_t replica, std::span<double> y) {
  const auto factor = static_cast<double>(replica + 1);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = factor * std::cos(factor * y[i]) + static_cast<double>(i);
}

/// The example in the header.
struct Centred {  // y = x - mean over replicas of x
  void forward(const auto& replica, std::span<double> x) {
    std::vector<double> mean{x.begin(), x.end()};
    replica.all_reduce(dist::mean, std::span<double>{mean});
    for (std::size_t i = 0; i < x.size(); ++i) x[i] -= mean[i];
  }
  void backward(const auto& replica, std::span<double> gradient) {
    std::vector<double> of_mean{gradient.begin(), gradient.end()};
    dist::nn::all_reduce_gradient(replica, dist::mean, std::span<double>{of_mean});
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] -= of_mean[i];
  }
};

Lists inputs_of(const std::vector<std::size_t>& sizes) {
  Lists inputs;
  for (const std::size_t size : sizes) {
    inputs.emplace_back(size);
    for (std::size_t i = 0; i < size; ++i)
      inputs.back()[i] = 0.3 * static_cast<double>(i) - 0.2 * static_cast<double>(inputs.size());
  }
  return inputs;
}

}  // namespace

TEST_CASE_TEMPLATE("the gradient of all_reduce is all_reduce of the gradients by the same operation (spec E05)", Op,
                   dist::Sum, dist::Mean) {
  for (std::size_t replicas = 1; replicas <= 4; ++replicas) {
    CAPTURE(replicas);
    const Lists inputs = inputs_of(std::vector<std::size_t>(replicas, 3));
    const auto reduced = [&](const Lists& given) {
      List y(3, 0.0);
      for (const List& x : given)
        for (std::size_t i = 0; i < 3; ++i) y[i] += x[i];
      for (double& element : y) element = Op::finish(element, replicas);
      return y;
    };
    const Lists expected = differences(inputs, [&](const Lists& given) {
      double loss = 0;
      for (std::size_t r = 0; r < replicas; ++r) loss += loss_of(r, reduced(given));
      return loss;
    });
    Mirrored strategy{replicas};
    check_equal(strategy.run([&](auto& replica) {
      List y = inputs[replica.local_index()];
      replica.all_reduce(Op{}, std::span<double>{y});
      slopes_of(replica.local_index(), y);
      nn::all_reduce_gradient(replica, Op{}, std::span<double>{y});
      return y;
    }),
                expected);
  }
}

TEST_CASE("a user's layer may communicate (spec E05)") {
  const Lists inputs = inputs_of({2, 2, 2});
  const Lists expected = differences(inputs, [&](const Lists& given) {
    double loss = 0;
    for (std::size_t r = 0; r < 3; ++r) {
      List y = given[r];
      for (std::size_t i = 0; i < 2; ++i) y[i] -= (given[0][i] + given[1][i] + given[2][i]) / 3;
      loss += loss_of(r, y);
    }
    return loss;
  });
  Mirrored strategy{3};
  check_equal(strategy.run([&](auto& replica) {
    List y = inputs[replica.local_index()];
    Centred layer;
    layer.forward(replica, y);
    slopes_of(replica.local_index(), y);
    layer.backward(replica, y);
    return y;
  }),
              expected);
}

TEST_CASE("all_reduce_gradient accepts one number, and one replica") {
  Mirrored two{2};
  const auto gradients = two.run([&](auto& replica) {
    return nn::all_reduce_gradient(replica, dist::mean, static_cast<float>(replica.local_index()) + 1.0F);
  });
  CHECK(gradients[0] == 1.5F);
  CHECK(gradients[1] == 1.5F);
  dist::Default one;
  CHECK(one.run([&](auto& replica) { return nn::all_reduce_gradient(replica, dist::sum, 3.0); }) == 3.0);
}

TEST_CASE("the gradient of an all-gather is the replica's rows of the summed gradients (spec E07)") {
  constexpr std::size_t width = 2;
  for (const std::vector<std::size_t>& rows :
       {std::vector<std::size_t>{2}, {1, 3}, {2, 0, 1}, std::vector<std::size_t>{1, 1, 1, 1}}) {
    CAPTURE(rows.size());
    std::vector<std::size_t> sizes;
    for (const std::size_t count : rows) sizes.push_back(count * width);
    const Lists inputs = inputs_of(sizes);
    const auto gathered = [&](const Lists& given) {
      List all;
      for (const List& part : given) all.insert(all.end(), part.begin(), part.end());
      return all;
    };
    const Lists expected = differences(inputs, [&](const Lists& given) {
      double loss = 0;
      for (std::size_t r = 0; r < rows.size(); ++r) loss += loss_of(r, gathered(given));
      return loss;
    });
    Mirrored strategy{rows.size()};
    check_equal(strategy.run([&](auto& replica) {
      List slopes = gathered(inputs);  // the result of an all-gather
      slopes_of(replica.local_index(), slopes);
      const auto mine = nn::all_gather_gradient(
          replica, dist::TensorView<double>{slopes.data(), dist::Shape{slopes.size() / width, width}}, rows);
      CHECK(mine.shape() == dist::Shape{rows[replica.local_index()], width});
      return List(mine.data(), mine.data() + mine.size());
    }),
                expected);
  }
}

TEST_CASE("the gradient of all_gather on any axis (spec E06, E07)") {
  for (const int axis : {0, 1, -1})
    for (const std::vector<std::size_t>& widths : {std::vector<std::size_t>{2}, {1, 3}, {2, 0, 1}}) {
      CAPTURE(axis);
      CAPTURE(widths.size());
      const auto shape_of = [&](std::size_t replica) {
        const std::size_t width = widths[replica];
        return axis == 0 ? dist::Shape{width, 2, 3} : axis == 1 ? dist::Shape{2, width, 3} : dist::Shape{2, 3, width};
      };
      std::vector<std::size_t> sizes;
      for (const std::size_t width : widths) sizes.push_back(6 * width);
      const Lists inputs = inputs_of(sizes);
      Mirrored strategy{widths.size()};
      const auto run = [&](const Lists& given) {
        std::vector<std::pair<double, List>> parts(widths.size());
        strategy.run([&](auto& replica) {
          const std::size_t rank = replica.local_index();
          auto whole = replica.all_gather(dist::TensorView<const double>{given[rank].data(), shape_of(rank)}, axis);
          const double loss = loss_of(rank, whole.elements());
          slopes_of(rank, whole.elements());
          const auto mine = nn::all_gather_gradient(replica, whole.view(), widths[rank], axis);
          CHECK(mine.shape() == shape_of(rank));
          parts[rank] = {loss, List(mine.elements().begin(), mine.elements().end())};
        });
        return parts;
      };
      const Lists expected = differences(inputs, [&](const Lists& given) {
        double loss = 0;
        for (const auto& part : run(given)) loss += part.first;
        return loss;
      });
      Lists gradients;
      for (const auto& part : run(inputs)) gradients.push_back(part.second);
      check_equal(gradients, expected);
    }
  dist::Default strategy;
  dist::Tensor<double> gradient{dist::Shape{3, 2}};
  strategy.run([&](auto& replica) {
    CHECK_THROWS_AS(static_cast<void>(nn::all_gather_gradient(replica, gradient.view(), 3, 1)), dist::ShapeMismatch);
    CHECK_THROWS_AS(static_cast<void>(nn::all_gather_gradient(replica, gradient.view(), 3, 2)), dist::InvalidArgument);
  });
}

TEST_CASE("all_gather_gradient rejects a gradient of the wrong shape before it communicates") {
  dist::Default strategy;
  dist::Tensor<double> gradient{dist::Shape{3, 2}};
  const auto refused = [&](dist::TensorView<double> given, const std::vector<std::size_t>& rows) {
    std::string message;
    strategy.run([&](auto& replica) {
      try {
        static_cast<void>(nn::all_gather_gradient(replica, given, rows));
      } catch (const dist::ShapeMismatch& error) {
        message = error.what();
      }
    });
    return message;
  };
  CHECK(refused(gradient, {4}).find("shape [3, 2] for 4 rows of 1 replicas") != std::string::npos);
  CHECK_FALSE(refused(gradient, {1, 2}).empty());
  CHECK_FALSE(refused(dist::TensorView<double>{gradient.data(), dist::Shape{}}, {1}).empty());
  CHECK(refused(gradient, {3}).empty());
}
