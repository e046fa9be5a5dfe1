#include <dist/data/preprocessing.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/map.hpp>
#include <dist/data/range.hpp>
#include <dist/data/take_skip.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/strategy/default.hpp>

#include <doctest/doctest.h>

#include <support/saved.hpp>

namespace data = dist::data;
using data::CharacterLookup;
using data::Normalization;
using data::StringLookup;
using dist::InvalidArgument;
using dist::ShapeMismatch;

namespace {

/// Returns a dataset of the elements of a list.
template <class T>
auto dataset_of(std::vector<T> all) {
  return data::range(static_cast<std::int64_t>(all.size())) |
         data::map([all = std::move(all)](std::int64_t i) { return all[static_cast<std::size_t>(i)]; });
}

using Point = std::array<double, 3>;
auto points() { return dataset_of<Point>({{1, 10, 5}, {2, 20, 5}, {4, 60, 5}}); }
auto words() { return dataset_of<std::string>({"b", "a", "c", "a", "b", "d", "e", "c", "a"}); }

/// The words of all numbers.
std::vector<std::string> vocabulary_of(const StringLookup& lookup) {
  std::vector<std::string> all;
  for (std::size_t number = 0; number < lookup.size(); ++number) all.emplace_back(lookup.word(number));
  return all;
}

struct Features {
  Normalization size;
  StringLookup kind;
  CharacterLookup characters;
  void track(auto& visit) {
    visit("size", size);
    visit("kind", kind);
    visit("characters", characters);
  }
};

}  // namespace

// The numbers of Keras 3.15.1, in float32.
TEST_CASE("Normalization scales each feature as in Keras, and a constant one to 0") {
  Normalization normalization;
  normalization.adapt(points());
  const std::vector<double> mean{2.3333333, 30, 5}, variance{1.5555556, 466.66666, 0};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(normalization.mean()[i] == doctest::Approx(mean[i]).epsilon(1e-7));
    CHECK(normalization.variance()[i] == doctest::Approx(variance[i]).epsilon(1e-7));
  }
  const std::array<float, 3> first = normalization(Point{1, 10, 5});
  CHECK(first[0] == doctest::Approx(-1.069045).epsilon(1e-6));
  CHECK(first[1] == doctest::Approx(-0.9258201).epsilon(1e-6));
  CHECK(first[2] == 0);
  const dist::Tensor<float> last = normalization(dist::Tensor<float>{{3}, {4, 60, 5}});
  CHECK(last[0] == doctest::Approx(1.3363063).epsilon(1e-6));
  CHECK(last[1] == doctest::Approx(1.3887302).epsilon(1e-6));
}

TEST_CASE("Normalization of one number is precise far from 0, and adapts anew") {
  Normalization normalization;
  normalization.adapt(dataset_of<double>({1e9 - 1, 1e9, 1e9 + 1}));
  CHECK(normalization.variance()[0] == doctest::Approx(2.0 / 3).epsilon(1e-9));
  CHECK(normalization(1e9 + 2) == doctest::Approx(2 / std::sqrt(2.0 / 3)).epsilon(1e-6));
  normalization.adapt(data::range(3));
  CHECK(normalization.mean()[0] == 1);
}

TEST_CASE("Normalization refuses data without examples, examples of different sizes, and use before adapt") {
  Normalization normalization;
  CHECK_THROWS_WITH_AS(static_cast<void>(normalization(1.0F)),
                       doctest::Contains("has no statistics (it has neither adapted to data nor been restored)"),
                       InvalidArgument);
  CHECK_THROWS_AS(normalization.adapt(points() | data::take(0)), InvalidArgument);
  normalization.adapt(points());
  CHECK_THROWS_WITH_AS(static_cast<void>(normalization(std::array{1.0F, 2.0F})),
                       doctest::Contains("it has 2 features, the data of adapt had 3"), ShapeMismatch);
  const auto different = data::range(2) | data::map([](std::int64_t i) {
                           return dist::Tensor<float>{{static_cast<std::size_t>(i + 1)},
                                                      std::vector<float>(static_cast<std::size_t>(i + 1))};
                         });
  CHECK_THROWS_WITH_AS(normalization.adapt(different),
                       doctest::Contains("the first one has 1 features, example 1 has 2"), ShapeMismatch);
  CHECK(normalization.mean().size() == 3);  // unchanged
}

TEST_CASE("StringLookup numbers words in the order of Keras, and unknown ones 0") {
  StringLookup lookup;
  CHECK(lookup.size() == 1);
  CHECK(lookup("a") == 0);
  lookup.adapt(words());
  CHECK(vocabulary_of(lookup) == std::vector<std::string>{"[UNK]", "a", "c", "b", "e", "d"});
  for (std::size_t number = 1; number < lookup.size(); ++number) CHECK(lookup(lookup.word(number)) == number);
  CHECK(lookup("z") == 0);
  CHECK(lookup("") == 0);
  lookup.adapt(dataset_of<std::string>({"a", "", "", "b", ""}));
  CHECK(vocabulary_of(lookup) == std::vector<std::string>{"[UNK]", "", "b", "a"});
  CHECK_THROWS_WITH_AS(static_cast<void>(lookup.word(4)), doctest::Contains("it is 4, the numbers are 0 to 3"),
                       InvalidArgument);
  StringLookup few{3};
  few.adapt(words());
  CHECK(vocabulary_of(few) == std::vector<std::string>{"[UNK]", "a", "c"});
  CHECK(few("b") == 0);
  CHECK_THROWS_AS(few.adapt(dataset_of<std::string>({std::string(1, '\0')})), InvalidArgument);
}

TEST_CASE("CharacterLookup numbers the bytes of a text in their order, and returns the text") {
  using Numbers = std::vector<std::int32_t>;
  CharacterLookup lookup;
  CHECK(lookup.size() == 0);
  lookup.adapt(std::string_view{"hello \xC3\xA4\0", 9});  // sorted: \0, space, e, h, l, o, \xA4, \xC3
  CHECK(lookup.size() == 8);
  CHECK(lookup.encode("hole") == Numbers{3, 5, 4, 2});
  CHECK(lookup.encode(std::string_view{"\xC3\xA4\0 ", 4}) == Numbers{7, 6, 0, 1});
  CHECK(lookup.encode("").empty());
  const Numbers numbers{3, 5, 4, 2, 7, 0};
  CHECK(lookup.decode(numbers) == std::string_view{"hole\xC3\0", 6});
  lookup.adapt("ba");
  CHECK(lookup.encode("ab") == Numbers{0, 1});
  CHECK_THROWS_WITH_AS(static_cast<void>(lookup.encode("abac")),
                       doctest::Contains("no number for a byte ('c' at position 3 is not one of its 2)"),
                       InvalidArgument);
  CHECK_THROWS_WITH_AS(static_cast<void>(lookup.decode(Numbers{0, 2})),
                       doctest::Contains("no byte for a number (2 at position 1, the vocabulary has 2 bytes)"),
                       InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(lookup.decode(Numbers{-1})), InvalidArgument);
}

TEST_CASE("one_hot has a 1 at its place, and features joins numbers") {
  CHECK(data::one_hot<3>(1) == std::array{0.0F, 1.0F, 0.0F});
  CHECK_THROWS_WITH_AS(static_cast<void>(data::one_hot<3>(3)), doctest::Contains("it is 3, the places are 0 to 2"),
                       InvalidArgument);
  const dist::Tensor<float> all = data::features(1.5F, std::array{2, 3}, dist::Tensor<double>{{2}, {4, 5}}, true);
  CHECK(all == dist::Tensor<float>{{6}, {1.5F, 2, 3, 4, 5, 1}});
}

TEST_CASE("statistics and words are saved and restored") {
  dist::Default strategy;
  Features learnt;
  learnt.size.adapt(points());
  learnt.kind.adapt(dataset_of<std::string>({"a", "", "\xC3\xA4", "a"}));
  learnt.characters.adapt("b\xFF.a");
  const support::Saved saved{strategy, learnt};
  CHECK(saved.keys() ==
        std::vector<std::string>{"characters/vocabulary", "kind/vocabulary", "size/mean", "size/variance"});
  Features restored;
  restored.kind.adapt(words());
  saved.restore(strategy, restored);
  CHECK(restored.size(Point{1, 2, 3}) == learnt.size(Point{1, 2, 3}));
  CHECK(vocabulary_of(restored.kind) == vocabulary_of(learnt.kind));
  CHECK(restored.characters.decode(learnt.characters.encode("\xFF.ab")) == "\xFF.ab");
  CHECK(restored.kind("\xC3\xA4") == learnt.kind("\xC3\xA4"));
  CHECK_THROWS_WITH_AS(data::detail::LearntNumbers<double>{}.require_restorable(dist::Shape{2, 3}),
                       doctest::Contains("The saved numbers of a preprocessing step are not a list"), ShapeMismatch);
}
