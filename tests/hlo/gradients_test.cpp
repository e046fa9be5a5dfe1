#include <dist/hlo/gradients.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

#include <dist/hlo/collectives.hpp>
#include <dist/hlo/scan.hpp>
#include <hlo/run.hpp>
#include <support/what_throws.hpp>

namespace hlo = dist::hlo;
using dist::Tensor;
template <std::size_t... Extents>
using Doubles = hlo::Traced<double, Extents...>;

namespace {

constexpr std::size_t count = 6;
using X = Doubles<count>;
/// No two are equal, none is an integer, and none is at a step of the remainder.
const Tensor<double> at{{count}, {0.7, -1.3, 2.1, 0.4, -0.6, 1.9}};

/// Functions of `x` that together use each operation with a known gradient, and treat each element differently.
auto functions(X x) {
  const auto all = [](auto y) { return hlo::reduce(dist::sum, y * y + y); };
  const auto m = hlo::reshape<2, 3>(x);
  const auto positive = x * x + 0.3;
  const auto cube = hlo::reshape<1, 2, 3>(x);
  return std::array{
      all(x + 2.0 * x - x / 3.0),
      all(x * x / positive),
      all(x % X{0.9}),
      all(pow(positive, x)),
      all(hlo::max(x, 0.5 * x * x)) + all(hlo::min(x, 0.5 * x * x)),
      all(abs(x)) + all(-x) + all(floor(x) * x),
      all(exp(x)) + all(expm1(x)),
      all(log(positive)) + all(log1p(positive)),
      all(sqrt(positive)) + all(rsqrt(positive)),
      all(sin(x)) + all(cos(x)),
      all(tanh(x)) + all(logistic(x)),
      all(hlo::select(x > X{0.5}, x * x, 3.0 * x)),
      all(x.as<float>().as<double>()),
      all(hlo::broadcast<Doubles<2, 3, 4>, 0, 1>(m) * hlo::iota<Doubles<2, 3, 4>, 2>()),
      all(hlo::transpose<1, 0>(m) * hlo::iota<Doubles<3, 2>, 0>()),
      all(hlo::transpose<2, 0, 1>(cube) * hlo::iota<Doubles<3, 1, 2>, 0>()),
      all(hlo::contract<0, 0>(m, m)) + all(hlo::contract<1, 1>(m, m)) + all(hlo::contract<0, 0>(x, x)),
      all(hlo::contract<hlo::Axes<1>, hlo::Axes<2>, hlo::Axes<2>, hlo::Axes<0>>(cube,
                                                                                hlo::transpose<2, 0, 1>(cube * cube))),
      all(hlo::contract<hlo::Axes<1, 2>, hlo::Axes<1, 0>>(hlo::reshape<1, 2, 3>(x), hlo::reshape<3, 2, 1>(x * x))),
      all(hlo::reduce<0>(dist::sum, m)) + all(hlo::reduce<1>(dist::sum, m)),
      all(hlo::reduce<1>(dist::max, m)) + all(hlo::reduce<0>(dist::min, m)),
      all(hlo::reduce<1>(dist::prod, m)),
      all(hlo::slice<1, 1, 2>(m)) + all(hlo::slice<0, 0, 3>(x)),
      all(hlo::concatenate<1>(m, hlo::slice<1, 0, 2>(m)) * hlo::iota<Doubles<2, 5>, 1>()),
      all(hlo::pad<1, 1, 2>(m, hlo::reduce(dist::sum, x)) * hlo::iota<Doubles<2, 6>, 1>()),
      all(hlo::reverse<0>(x) * hlo::iota<X, 0>()),
      hlo::reduce(dist::sum, hlo::stop_gradient(x) * x * x),
  };
}

template <std::size_t... I>
auto gradients_of_functions(X x, std::index_sequence<I...>) {
  const auto values = functions(x);
  return std::tuple{std::get<0>(hlo::gradients(values[I], std::tuple{x}))...};
}

}  // namespace

TEST_CASE("gradients of all operations match central differences") {
  constexpr std::size_t all = std::tuple_size_v<decltype(functions(std::declval<X>()))>;
  const auto gradients = testing::run<X>(
      1, [](auto x) { return gradients_of_functions(x, std::make_index_sequence<all>{}); }, at);

  const dist::pjrt::Client client = testing::cpus(1);
  const hlo::Program values{client, hlo::trace<X>(1, [](auto x) {
                              return std::apply([](auto... each) { return std::tuple{each...}; }, functions(x));
                            })};
  const auto values_at = [&](std::size_t moved, double by) {
    Tensor<double> x = at;
    x[moved] += by;
    return std::apply([](const auto&... each) { return std::array{each[0]...}; },
                      testing::on_replica_0(values(hlo::PerReplica<X>{client, 1, x})));
  };
  for (std::size_t element = 0; element < count; ++element) {
    CAPTURE(element);
    constexpr double step = 1e-5;
    const auto above = values_at(element, step), below = values_at(element, -step);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      const auto check = [&](std::size_t function, double gradient) {
        CAPTURE(function);
        double difference = (above[function] - below[function]) / (2 * step);
        // Function 12 converts to float, which hides the step. The last function treats one of its factors as
        // constant.
        if (function == 12) difference = 2 * at[element] + 1;
        if (function == all - 1) difference = 2 * at[element] * at[element];
        CHECK(gradient == doctest::Approx(difference).epsilon(1e-6));
      };
      (check(I, std::get<I>(gradients)[element]), ...);
    }
    (std::make_index_sequence<all>{});
  }
}

TEST_CASE("the gradient of a product is the product of the other factors, also with zeros") {
  const auto [one_zero, two_zeros] = testing::run<Doubles<3>, Doubles<3>>(
      1,
      [](auto x, auto y) {
        const auto of = [](auto z) { return std::get<0>(hlo::gradients(hlo::reduce(dist::prod, z), std::tuple{z})); };
        return std::tuple{of(x), of(y)};
      },
      Tensor<double>{{3}, {2, 0, 5}}, Tensor<double>{{3}, {0, 0, 5}});
  CHECK(one_zero == Tensor<double>{{3}, {0, 10, 0}});
  CHECK(two_zeros == Tensor<double>{{3}, {0, 0, 0}});
}

TEST_CASE("gradients through collectives differentiate the sum over all replicas (spec E05, E07)") {
  const dist::pjrt::Client client = testing::cpus(2);
  using P = Doubles<2>;
  const hlo::Program program{client, hlo::trace<P>(2, [](auto x) {
                               const auto squares = [](auto y) { return hlo::reduce(dist::sum, y * y); };
                               const auto of = [&](auto y) {
                                 return std::get<0>(hlo::gradients(squares(y), std::tuple{x}));
                               };
                               return std::tuple{of(hlo::all_reduce(dist::sum, x)), of(hlo::all_reduce(dist::mean, x)),
                                                 of(hlo::all_gather<2>(x)), of(hlo::reduce_scatter<2>(dist::sum, x))};
                             })};
  const std::vector<Tensor<double>> parts{{{2}, {1, 2}}, {{2}, {3, 5}}};
  const auto [sum, mean, gathered, scattered] = program(hlo::PerReplica<P>{client, parts});
  for (std::size_t replica = 0; replica < 2; ++replica) {
    CAPTURE(replica);
    const Tensor<double>& x = parts[replica];
    CHECK(sum.on(replica) == Tensor<double>{{2}, {16, 28}});  // both replicas have the sums 4 and 7
    CHECK(mean.on(replica) == Tensor<double>{{2}, {4, 7}});   // and the means 2 and 3.5
    CHECK(gathered.on(replica) == Tensor<double>{{2}, {4 * x[0], 4 * x[1]}});
    CHECK(scattered.on(replica) == Tensor<double>{{2}, {8, 14}});  // each sum belongs to one replica
  }
}

TEST_CASE("gradients can be taken inside of a loop's body, but not through a loop") {
  const Tensor<double> minimum = testing::run<Doubles<2>>(
      1,
      [](auto start) {
        const auto rosenbrock = [](Doubles<2> p) {
          const auto x = hlo::slice<0, 0, 1>(p), y = hlo::slice<0, 1, 1>(p);
          return hlo::reduce(dist::sum, (1.0 - x) * (1.0 - x) + 5.0 * (y - x * x) * (y - x * x));
        };
        const auto descend = [&](auto p, auto i) {
          return std::tuple{p - 0.02 * std::get<0>(hlo::gradients(rosenbrock(p), std::tuple{p})), i + 1};
        };
        return std::tuple{std::get<0>(
            hlo::loop([](auto, auto i) { return i < 4000; }, descend, start, hlo::Traced<std::int32_t>{0}))};
      },
      Tensor<double>{{2}, {-0.5, 0.5}});
  CHECK(minimum[0] == doctest::Approx(1).epsilon(1e-9));
  CHECK(minimum[1] == doctest::Approx(1).epsilon(1e-9));

  // A loop with x as state, and a loop whose body uses x.
  const auto through = [](bool is_state) {
    static_cast<void>(hlo::trace<Doubles<>>(1, [is_state](auto x) {
      const auto [power, i] = hlo::loop([](auto, auto n) { return n < 3; },
                                        [&](auto p, auto n) {
                                          return std::tuple{is_state ? p * p : p * x, n + 1};
                                        },
                                        is_state ? x : Doubles<>{1}, hlo::Traced<std::int32_t>{0});
      return hlo::gradients(power, std::tuple{x});
    }));
  };
  for (const bool is_state : {true, false})
    CHECK(support::what_throws<dist::InvalidArgument>([&] {
            through(is_state);
          }).find("The gradient of the operation while is not known") == 0);
}

TEST_CASE("gradients are zero for independent values and step functions, and one for the number itself") {
  const auto [of_itself, of_other, of_steps] = testing::run<Doubles<>, Doubles<2>>(
      1,
      [](auto x, auto other) {
        const auto [itself, unused] = hlo::gradients(x, std::tuple{x, other});
        const auto steps = hlo::select(other > 0, hlo::Traced<std::int32_t, 2>{1}, 0).template as<double>();
        return std::tuple{itself, unused,
                          std::get<0>(hlo::gradients(hlo::reduce(dist::sum, steps), std::tuple{other}))};
      },
      Tensor<double>{{}, {3}}, Tensor<double>{{2}, {1, 2}});
  CHECK(of_itself[0] == 1);
  CHECK(of_other == Tensor<double>{{2}, {0, 0}});
  CHECK(of_steps == Tensor<double>{{2}, {0, 0}});
  CHECK(support::what_throws<dist::InvalidArgument>([] {
          static_cast<void>(hlo::trace<Doubles<>>(1, [](auto x) {
            return hlo::gradients(x.template as<std::int32_t>().template as<double>(), std::tuple{x});
          }));
        }).find("The gradient of the operation convert is not known") == 0);
}
