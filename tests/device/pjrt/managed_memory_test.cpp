#include <dist/device/pjrt/managed_memory.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include <support/four_xla_cpus.hpp>
#include <support/what_throws.hpp>

using dist::Shape;
using dist::Tensor;
using dist::TensorView;
using dist::pjrt::ManagedMemory;

namespace {

const std::vector<std::size_t> devices{0, 1};
constexpr std::size_t bytes = 3 * sizeof(float);

ManagedMemory two_devices() { return ManagedMemory{devices}; }
float* floats(ManagedMemory& memory, std::size_t replica, std::size_t offset) {
  return reinterpret_cast<float*>(memory.at(replica, offset));
}
const std::vector<ManagedMemory::Part> whole{{0, Shape{3}}};

Tensor<float> on_device(ManagedMemory& memory, std::size_t replica, std::size_t offset,
                        const std::vector<ManagedMemory::Part>& parts = whole, std::size_t part = 0) {
  std::vector<const dist::pjrt::Buffer*> buffers;
  memory.resident<float>(replica, offset, parts, "w")->on_device(buffers);
  REQUIRE(buffers.size() == parts.size());
  return buffers[part]->download<float>();
}
void compute(ManagedMemory& memory, std::size_t replica, std::size_t offset, const Tensor<float>& newest,
             const std::vector<ManagedMemory::Part>& parts = whole, std::size_t part = 0) {
  static_cast<void>(on_device(memory, replica, offset, parts));  // passed to a program
  memory.resident<float>(replica, offset, parts, "w")
      ->replace(part, dist::pjrt::upload(memory.client(), devices[replica], newest));
}

}  // namespace

TEST_CASE("host and devices see each other's last writes, per replica") {
  ManagedMemory memory = two_devices();
  const std::size_t first = memory.allocate(bytes);
  const std::size_t second = memory.allocate(bytes);
  CHECK(memory.replicas() == 2);
  for (std::size_t replica = 0; replica < 2; ++replica) {
    for (std::size_t i = 0; i < 3; ++i) CHECK(floats(memory, replica, first)[i] == 0);
    floats(memory, replica, first)[1] = static_cast<float>(replica + 1);
  }
  CHECK(on_device(memory, 0, first) == Tensor<float>{{3}, {0, 1, 0}});
  CHECK(on_device(memory, 1, first) == Tensor<float>{{3}, {0, 2, 0}});

  compute(memory, 1, first, {{3}, {7, 8, 9}});
  CHECK(on_device(memory, 1, first) == Tensor<float>{{3}, {7, 8, 9}});
  CHECK(floats(memory, 0, first)[1] == 1);
  CHECK(floats(memory, 1, first)[2] == 9);
  floats(memory, 1, first)[2] = 5;
  CHECK(on_device(memory, 1, first) == Tensor<float>{{3}, {7, 8, 5}});
  CHECK(on_device(memory, 1, second) == Tensor<float>{{3}, {0, 0, 0}});
}

TEST_CASE("programs use different parts of a slice, and see each other's last writes") {
  ManagedMemory memory = two_devices();
  const std::size_t offset = memory.allocate(bytes);
  const std::vector<ManagedMemory::Part> ends{{0, Shape{}}, {2 * sizeof(float), Shape{1, 1}}};
  compute(memory, 0, offset, {{3}, {1, 2, 3}});
  CHECK(on_device(memory, 0, offset, ends, 0) == Tensor<float>{{}, {1}});
  CHECK(on_device(memory, 0, offset, ends, 1) == Tensor<float>{{1, 1}, {3}});
  compute(memory, 0, offset, {{1, 1}, {9}}, ends, 1);
  CHECK(on_device(memory, 0, offset) == Tensor<float>{{3}, {1, 2, 9}});
  compute(memory, 0, offset, {{}, {7}}, ends, 0);
  CHECK(floats(memory, 0, offset)[0] == 7);
  CHECK(floats(memory, 0, offset)[2] == 9);
}

TEST_CASE("device data is freed with its slice") {
  ManagedMemory memory = two_devices();
  const std::size_t offset = memory.allocate(bytes);
  compute(memory, 0, offset, {{3}, {1, 2, 3}});
  memory.release(offset, bytes);
  REQUIRE(memory.allocate(bytes) == offset);
  CHECK(floats(memory, 0, offset)[0] == 0);
  CHECK(on_device(memory, 0, offset) == Tensor<float>{{3}, {0, 0, 0}});
}

TEST_CASE("using a released slice throws an error with its name") {
  ManagedMemory memory = two_devices();
  const std::size_t offset = memory.allocate(bytes);
  const auto resident = memory.resident<float>(0, offset, whole, "weights");
  memory.release(offset, bytes);
  std::vector<const dist::pjrt::Buffer*> buffers;
  CHECK(support::what_throws<dist::InvalidArgument>([&] {
          resident->on_device(buffers);
        }).find("Variable 'weights' was destroyed, but a compiled step uses it") == 0);
}

TEST_CASE("a failed transfer to the host throws once, and then the host has its previous data") {
  ManagedMemory memory = two_devices();
  const std::size_t offset = memory.allocate(bytes);
  floats(memory, 0, offset)[1] = 5;
  compute(memory, 0, offset, {{2}, {1, 2}});  // a wrong shape, which programs with this slice never produce
  CHECK_THROWS_AS(static_cast<void>(floats(memory, 0, offset)), dist::ShapeMismatch);
  CHECK(floats(memory, 0, offset)[1] == 5);
  CHECK(on_device(memory, 0, offset) == Tensor<float>{{3}, {0, 5, 0}});
}
