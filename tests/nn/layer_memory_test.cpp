#include <dist/nn/layer_memory.hpp>

#include <cstddef>

#include <dist/nn/reference/backend.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

struct Elsewhere {
  static constexpr bool host_accessible = false;
};
struct NumberOfQueue {
  int number = 0;
};
/// A back end of a device, whose memory says for which queue it was made, and how much it is.
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

TEST_CASE("layers keep what they have in memory of the host, or in that of the back end's device") {
  auto here = nn::detail::make_layer_memory<nn::Reference, double>({}, 3);
  here.data()[2] = 5;
  CHECK(here.size() == 3);
  CHECK(nn::detail::LayerMemory<nn::Reference, double>{}.data() == nullptr);
  const auto there = nn::detail::make_layer_memory<Remote, float>({7}, 4);
  CHECK(there.queue.number == 7);
  CHECK(there.count == 4);
}

TEST_CASE("memory is for the work of the queue in the back end's state") {
  CHECK(nn::detail::queue_of<Remote>(Remote::State{{7}}).number == 7);
  const nn::Reference::State state;
  static_cast<void>(nn::detail::queue_of<nn::Reference>(state));
}
