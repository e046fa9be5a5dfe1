#include <dist/nn/losses/deferred_loss.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

#include <dist/core/error.hpp>
#include <dist/core/future.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>

namespace nn = dist::nn;

namespace {

/// A future that counts its waits.
template <class T>
struct Counting {
  T number;
  int* waits;

  void wait() const { ++*waits; }
  [[nodiscard]] bool is_done() const { return *waits > 0; }
  [[nodiscard]] T value() const {
    wait();
    return number;
  }
};
struct NoTargets {};

using Checked = nn::detail::CheckedTotal<std::int32_t>;

}  // namespace

TEST_CASE("a deferred loss has the value of a loss, and waits when it is read") {
  int waits = 0;
  const nn::DeferredLoss<float, NoTargets, Counting<double>> loss{{}, {6.0, &waits}, 3, 10, 12};
  static_assert(dist::Future<nn::DeferredLoss<float, NoTargets, Counting<double>>>);
  CHECK(loss.examples() == 3);
  CHECK(!loss.is_done());
  CHECK(waits == 0);
  CHECK(loss.value() == 0.5F);
  CHECK(loss.total() == 6.0);
  CHECK(loss.is_done());
  CHECK(nn::DeferredLoss<float, NoTargets, Counting<double>>{{}, {6.0, &waits}, 3, 10, 0}.value() == 0);
}

TEST_CASE("a default DeferredLoss is 0 and done") {
  const nn::DeferredLoss<float, NoTargets, Counting<double>> none;
  CHECK(none.is_done());
  CHECK(none.value() == 0);
  CHECK(none.examples() == 0);
}

TEST_CASE("reading a deferred loss reports the first target that the loss does not accept") {
  int waits = 0;
  const nn::SparseCategoricalCrossentropy crossentropy;
  const nn::DeferredLoss<float, nn::SparseCategoricalCrossentropy, Counting<Checked>> right{
      crossentropy, {{2.0, 3, nn::detail::no_row, 0}, &waits}, 4, 3, 4};
  CHECK(right.value() == 0.5F);
  const nn::DeferredLoss<float, nn::SparseCategoricalCrossentropy, Counting<Checked>> wrong{
      crossentropy, {{2.0, 4, 2, 7}, &waits}, 4, 3, 4};
  CHECK_THROWS_WITH_AS(wrong.wait(), doctest::Contains("Label 7 of example 2 is not a class"), dist::InvalidArgument);
  CHECK(wrong.is_done());

  // The examples that count are only known after a wait if the loss ignores labels.
  CHECK(right.examples() == 4);
  const nn::DeferredLoss<float, nn::SparseCategoricalCrossentropy, Counting<Checked>> ignoring{
      {.ignore_class = -1}, {{2.0, 3, nn::detail::no_row, 0}, &waits}, 4, 3, 4};
  const int before = waits;
  CHECK(ignoring.examples() == 3);
  CHECK(waits == before + 1);
}

TEST_CASE("AddCheckedTotals adds totals and keeps the first rejected row, in any order") {
  const nn::detail::AddCheckedTotals<std::int32_t> add;
  const Checked none = nn::detail::AddCheckedTotals<std::int32_t>::identity<Checked>;
  const Checked third{1.5, 1, 3, 30}, fifth{2.0, 2, 5, 50};
  for (const Checked& both : {add(third, fifth), add(fifth, third), add(add(none, third), add(fifth, none))}) {
    CHECK(both.total == 3.5);
    CHECK(both.examples == 3);
    CHECK(both.refused_row == 3);
    CHECK(both.refused == 30);
  }
  CHECK(add(none, none).refused_row == nn::detail::no_row);
}
