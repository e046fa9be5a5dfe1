#include <dist/device/pjrt/buffer.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dist/core/future.hpp>
#include <support/fake_pjrt/fake_pjrt.hpp>
#include <support/what_throws.hpp>

using dist::Shape;
using dist::Tensor;
using dist::TensorView;
using dist::pjrt::Buffer;
using dist::pjrt::Client;

static_assert(dist::Future<dist::pjrt::Event>);

namespace {

Client two_cpus() { return Client{{.values = {{"cpu_device_count", std::int64_t{2}}}}}; }

/// Uploads these numbers as T to device 1, and downloads them.
template <class T>
void check_round_trip(const Client& client) {
  CAPTURE(dist::dtype_name<T>);
  Tensor<T> elements{Shape{2, 3}};
  for (std::size_t i = 0; i < 6; ++i) elements[i] = static_cast<T>(static_cast<float>(i % 2 == 0 ? i : 1));
  const Buffer buffer = upload(client, 1, elements);
  CHECK(buffer.shape() == Shape{2, 3});
  CHECK(buffer.type() == dist::pjrt::buffer_type<T>);
  CHECK(buffer.download<T>() == elements);
}

/// Checks that these 16-bit numbers pass through device 0 unchanged.
template <class T>
void check_bits(const Client& client, const std::vector<std::uint16_t>& bits) {
  CAPTURE(dist::dtype_name<T>);
  Tensor<T> elements{Shape{bits.size()}};
  for (std::size_t i = 0; i < bits.size(); ++i) elements[i] = T::from_bits(bits[i]);
  const Tensor<T> back = upload(client, 0, elements).template download<T>();
  for (std::size_t i = 0; i < bits.size(); ++i) CHECK(back[i].bits() == bits[i]);
}

}  // namespace

TEST_CASE("arrays of every number type are uploaded and downloaded row by row") {
  const Client client = two_cpus();
  check_round_trip<bool>(client);
  check_round_trip<std::int8_t>(client);
  check_round_trip<std::int16_t>(client);
  check_round_trip<std::int32_t>(client);
  check_round_trip<std::int64_t>(client);
  check_round_trip<std::uint8_t>(client);
  check_round_trip<std::uint16_t>(client);
  check_round_trip<std::uint32_t>(client);
  check_round_trip<std::uint64_t>(client);
  check_round_trip<dist::Float16>(client);
  check_round_trip<dist::BFloat16>(client);
  check_round_trip<float>(client);
  check_round_trip<double>(client);
  CHECK(upload(client, 0, Tensor<float>{{}, {7}}).download<float>() == Tensor<float>{{}, {7}});
  CHECK(upload(client, 0, Tensor<float>{Shape{2, 0}}).download<float>().size() == 0);
}

TEST_CASE("16-bit numbers keep all bits, including NaNs and denormals") {
  const Client client = two_cpus();
  // -0, the smallest denormal, infinity, a signalling NaN and a quiet NaN with a payload.
  check_bits<dist::Float16>(client, {0x8000, 0x0001, 0x7c00, 0x7d01, 0xfe2a});
  check_bits<dist::BFloat16>(client, {0x8000, 0x0001, 0x7f80, 0x7f81, 0xffea});
}

TEST_CASE("a device without memory throws the plugin's name and a suggestion") {
  const Client client{{.plugin = fake_pjrt::plugin()}};
  const std::string said =
      support::what_throws<dist::OutOfMemory>([&] { static_cast<void>(upload(client, 0, Tensor<float>{Shape{2}})); });
  CHECK(said.find("The PJRT plugin '" + fake_pjrt::plugin() + "' refuses ") == 0);
  CHECK(said.find("(a fake has no memory). Make the model or the batch smaller, or use more devices.") !=
        std::string::npos);
}

TEST_CASE("background transfers complete, and buffers outlive their client") {
  std::vector<float> numbers(1 << 16, 3);
  const TensorView<const float> view{numbers.data(), {256, 256}};
  Buffer buffer = [&] {
    dist::pjrt::Upload started = start_upload(two_cpus(), 0, view);
    started.transfer.wait();
    CHECK(started.transfer.is_done());
    started.transfer.wait();
    return std::move(started.buffer);
  }();
  numbers.assign(numbers.size(), 0);
  buffer.wait();
  const dist::pjrt::Event transfer = buffer.start_download(TensorView<float>{numbers.data(), {256, 256}});
  transfer.wait();
  CHECK(numbers == std::vector<float>(numbers.size(), 3));

  Buffer other = upload(two_cpus(), 0, Tensor<float>{{1}, {5}});
  buffer = std::move(other);
  CHECK(buffer.download<float>() == Tensor<float>{{1}, {5}});
}

TEST_CASE("targets of another shape or type, and unknown devices, are rejected") {
  const Client client = two_cpus();
  const Buffer buffer = upload(client, 0, Tensor<float>{{2, 3}, {1, 2, 3, 4, 5, 6}});
  Tensor<float> target{Shape{3, 2}};
  CHECK(support::what_throws<dist::ShapeMismatch>([&] {
          static_cast<void>(buffer.start_download(target.view()));
        }).find("its shape is [2, 3], the target's shape is [3, 2]") != std::string::npos);
  CHECK(support::what_throws<dist::InvalidArgument>([&] {
          static_cast<void>(buffer.download<std::int32_t>());
        }).find("not i32") != std::string::npos);
  CHECK_THROWS_AS(static_cast<void>(upload(client, 2, target)), dist::InvalidArgument);
}
