#include <dist/nn/backend.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <type_traits>

#include <dist/nn/reference/backend.hpp>

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

TEST_CASE("a back end need not have every operation") {
  CHECK(nn::detail::Computes<WithNegation, AskedFor>);
  CHECK(std::is_same_v<nn::detail::KernelFrom<WithNegation, AskedFor>, WithNegation::Negation<int>>);
  CHECK_FALSE(nn::detail::Computes<Minimal, AskedFor>);
}

TEST_CASE("a Backend has a name, a device, an enterable state and element types") {
  CHECK(nn::Backend<Minimal>);
  CHECK(nn::Backend<nn::Reference>);
  CHECK_FALSE(nn::Backend<WithoutState>);
  CHECK_FALSE(nn::Backend<WithoutEnter>);
  CHECK_FALSE(nn::Backend<StateNeedsArguments>);
  CHECK_FALSE(nn::Backend<WithoutElementTypes>);
  CHECK_FALSE(nn::Backend<WithoutDevice>);
  CHECK_FALSE(nn::Backend<int>);
}

namespace {

struct Elsewhere {
  static constexpr bool host_accessible = false;
};
struct NumberOfQueue {
  int number = 0;
};
/// A back end of a device, whose memory records its queue and size.
struct Remote {
  struct Device {
    using Space = Elsewhere;
    using Queue = NumberOfQueue;
  };
  struct State {
    NumberOfQueue of_replica;
    [[nodiscard]] NumberOfQueue queue() const { return of_replica; }
  };
  template <class T>
  struct Memory {
    NumberOfQueue queue{};
    std::size_t count = 0;
  };
};

}  // namespace

TEST_CASE("layer memory is on the host, or on the back end's device") {
  auto here = nn::detail::make_layer_memory<nn::Reference, double>({}, 3);
  here.data()[2] = 5;
  CHECK(here.size() == 3);
  CHECK(nn::detail::LayerMemory<nn::Reference, double>{}.data() == nullptr);
  const auto there = nn::detail::make_layer_memory<Remote, float>({7}, 4);
  CHECK(there.queue.number == 7);
  CHECK(there.count == 4);
}

TEST_CASE("layer memory uses the queue of the back end's state") {
  CHECK(nn::detail::queue_of<Remote>(Remote::State{{7}}).number == 7);
  const nn::Reference::State state;
  static_cast<void>(nn::detail::queue_of<nn::Reference>(state));
}
