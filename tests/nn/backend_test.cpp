#include <dist/nn/backend.hpp>

#include <type_traits>

#include <dist/nn/reference/backend.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

struct Minimal {
  static constexpr std::string_view name = "minimal";
  struct Device {};
  struct State {
    int enter() { return 0; }
  };
  template <class T>
  [[maybe_unused]] static constexpr bool supports = false;
};
struct WithoutState {
  [[maybe_unused]] static constexpr std::string_view name = "near miss";
  struct Device {};
  template <class T>
  [[maybe_unused]] static constexpr bool supports = false;
};
struct WithoutEnter : Minimal {
  struct State {};
};
struct StateNeedsArguments : Minimal {
  struct State {
    explicit State(int) {}
    int enter() { return 0; }
  };
};
struct WithoutElementTypes {
  [[maybe_unused]] static constexpr std::string_view name = "near miss";
  struct Device {};
  using State = Minimal::State;
};
struct WithoutDevice {
  [[maybe_unused]] static constexpr std::string_view name = "near miss";
  using State = Minimal::State;
  template <class T>
  [[maybe_unused]] static constexpr bool supports = false;
};

}  // namespace

namespace {

struct AskedFor {
  template <class Backend>
  using From = typename Backend::template Negation<int>;
};
struct WithNegation : Minimal {
  template <class T>
  struct Negation {};
};

}  // namespace

TEST_CASE("a back end may lack an operation") {
  CHECK(nn::detail::Computes<WithNegation, AskedFor>);
  CHECK(std::is_same_v<nn::detail::KernelFrom<WithNegation, AskedFor>, WithNegation::Negation<int>>);
  CHECK_FALSE(nn::detail::Computes<Minimal, AskedFor>);
}

TEST_CASE("a back end has a name, a device, a state to enter and element types") {
  CHECK(nn::Backend<Minimal>);
  CHECK(nn::Backend<nn::Reference>);
  CHECK_FALSE(nn::Backend<WithoutState>);
  CHECK_FALSE(nn::Backend<WithoutEnter>);
  CHECK_FALSE(nn::Backend<StateNeedsArguments>);
  CHECK_FALSE(nn::Backend<WithoutElementTypes>);
  CHECK_FALSE(nn::Backend<WithoutDevice>);
  CHECK_FALSE(nn::Backend<int>);
}
