#include <dist/nn/layout.hpp>

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

struct Two {
  static constexpr std::string_view name = "two";
  static constexpr std::array parameters{nn::ParameterSpec{"a", dist::Shape{3}},
                                         nn::ParameterSpec{"b", dist::Shape{4, 5}}};
};
struct Other {
  static constexpr std::string_view name = "other";
  static constexpr auto& parameters = nn::detail::no_parameters;
  static constexpr std::array state{nn::StateSpec{"s", dist::Shape{17}, 1}};
};
struct Both {
  [[maybe_unused]] static constexpr std::string_view name = "both";
  static constexpr std::array parameters{nn::ParameterSpec{"a", dist::Shape{3}},
                                         nn::ParameterSpec{"b", dist::Shape{4, 5}}};
  using Leaves = std::tuple<Other, Two>;
};
struct Mine : Two {
  static constexpr bool is_named = true;
};
struct MineNumbered : Mine {
  static constexpr std::string_view name = "two_12";
};
struct Blocks : Two {
  static constexpr std::size_t blocks = 2;
  using Block = Two;
};
struct InBlock : Two {
  static constexpr std::string_view name = "two/1/two";
};
struct BesideBlocks : Two {
  static constexpr std::string_view name = "two/other";
};
/// `Count` layers of one name, then the named layer.
template <std::size_t Count>
using WithNumbered = decltype(std::tuple_cat(std::array<Two, Count>{}, std::tuple<MineNumbered>{}));
template <class Kind>
using Layout = nn::detail::Layout<Kind, std::tuple<Two, Other, Two>>;

}  // namespace

TEST_CASE("tensors of a kind are consecutive, each on a cache line, and named by their layer") {
  using Learned = Layout<nn::detail::Learned>;
  CHECK(Learned::first == std::array<std::size_t, 4>{0, 2, 2, 4});
  CHECK(Learned::count == 2 * (3 + 20));
  CHECK(Learned::padded_count == 2 * (16 + 32));
  CHECK(Learned::tensors[1].name() == "two/b");
  CHECK(Learned::tensors[1].offset == 16);
  CHECK(Learned::tensors[2].name() == "two_1/a");
  CHECK(Learned::tensors[2].offset == 48);
}

TEST_CASE("a layer without a member `state` has no state") {
  using Kept = Layout<nn::detail::Kept>;
  CHECK(Kept::first == std::array<std::size_t, 4>{0, 0, 1, 1});
  CHECK(Kept::tensors[0].name() == "other/s");
  CHECK(Kept::count == 17);
  CHECK(Kept::padded_count == 32);
}

TEST_CASE("of_layer returns views of one layer's tensors") {
  std::vector<float> all(Layout<nn::detail::Learned>::padded_count);
  const auto third = Layout<nn::detail::Learned>::of_layer<2>(all.data());
  REQUIRE(third.size() == 2);
  CHECK(third[1].data() == all.data() + 48 + 16);
  CHECK(third[1].shape() == dist::Shape{4, 5});
  CHECK(Layout<nn::detail::Learned>::of_layer<1>(all.data()).empty());
}

TEST_CASE("a Layout without layers has no tensors") {
  using None = nn::detail::Layout<nn::detail::Learned, std::tuple<>>;
  CHECK(None::count == 0);
  CHECK(None::tensors.empty());
}

TEST_CASE("tensors of a layer of layers have the names of inner layers, numbered with all others") {
  using Learned = nn::detail::Layout<nn::detail::Learned, std::tuple<Two, Both, Two>>;
  CHECK(Learned::first == std::array<std::size_t, 4>{0, 2, 4, 6});
  CHECK(Learned::tensors[2].name() == "two_1/a");
  CHECK(Learned::tensors[4].name() == "two_2/a");
  CHECK(Learned::names_differ);
}

TEST_CASE("names given by a program must differ from all other names") {
  CHECK_FALSE(nn::detail::Layout<nn::detail::Learned, std::tuple<Two, Mine>>::names_differ);
  CHECK(nn::detail::Layout<nn::detail::Learned, std::tuple<Other, Mine>>::names_differ);
  // The thirteenth layer of its name is called "two_12".
  CHECK(nn::detail::Layout<nn::detail::Learned, WithNumbered<12>>::names_differ);
  CHECK_FALSE(nn::detail::Layout<nn::detail::Learned, WithNumbered<13>>::names_differ);
  // The tensors of its blocks are called "two/1/…".
  CHECK_FALSE(nn::detail::Layout<nn::detail::Learned, std::tuple<Blocks, InBlock>>::names_differ);
  CHECK(nn::detail::Layout<nn::detail::Learned, std::tuple<Blocks, BesideBlocks>>::names_differ);
}
