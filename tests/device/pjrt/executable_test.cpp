#include <dist/device/pjrt/executable.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dist/core/tensor.hpp>
#include <support/sanitizers.hpp>
#include <support/what_throws.hpp>

using dist::Tensor;
using dist::pjrt::Buffer;
using dist::pjrt::Client;
using dist::pjrt::Executable;

namespace {

Client cpu(std::size_t devices) { return Client{{.values = {{"cpu_device_count", std::int64_t(devices)}}}}; }

/// Each replica's sum of x over all replicas, and x + x, in the donated memory of x.
std::string sum_and_double(const std::string& replicas, const std::string& all) {
  return "module @m attributes {mhlo.num_replicas = " + replicas +
         " : i32, mhlo.num_partitions = 1 : i32} {\n"
         "func.func @main(%x: tensor<3xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<3xf32>, tensor<3xf32>) {\n"
         "%0 = \"stablehlo.all_reduce\"(%x) ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
         "  %s = stablehlo.add %a, %b : tensor<f32>\n  stablehlo.return %s : tensor<f32> }) {replica_groups = "
         "dense<[[" +
         all + "]]> : tensor<1x" + replicas +
         "xi64>} : (tensor<3xf32>) -> tensor<3xf32>\n"
         "%1 = stablehlo.add %x, %x : tensor<3xf32>\n"
         "return %0, %1 : tensor<3xf32>, tensor<3xf32> } }";
}

constexpr const char* identity = "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> { return %x : tensor<3xf32> }";

}  // namespace

TEST_CASE("replicas run one program on separate devices, and use its collectives") {
  for (const std::size_t replicas : {std::size_t{2}, std::size_t{4}}) {
    CAPTURE(replicas);
    const Client client = cpu(4);
    const Executable program{client, sum_and_double(std::to_string(replicas), replicas == 2 ? "0, 1" : "0, 1, 2, 3"),
                             replicas};
    CHECK(program.replicas() == replicas);
    CHECK(program.results() == 2);
    std::vector<Buffer> x;
    std::vector<std::vector<const Buffer*>> arguments;
    for (std::size_t replica = 0; replica < replicas; ++replica) {
      const float r = static_cast<float>(replica);
      x.push_back(upload(client, replica, Tensor<float>{{3}, {r, 10 * r, 1}}));
    }
    for (const Buffer& each : x) arguments.push_back({&each});
    const std::vector<std::vector<Buffer>> results = program.execute(arguments);
    const float sum = replicas == 2 ? 1 : 6;
    for (std::size_t replica = 0; replica < replicas; ++replica) {
      const float r = static_cast<float>(replica);
      CHECK(results[replica][0].download<float>() == Tensor<float>{{3}, {sum, 10 * sum, static_cast<float>(replicas)}});
      CHECK(results[replica][1].download<float>() == Tensor<float>{{3}, {2 * r, 20 * r, 2}});
      CHECK(x[replica].is_donated());
      CHECK(support::what_throws<dist::InvalidArgument>([&] {
              static_cast<void>(x[replica].download<float>());
            }).find("a program has reused its memory for a result") != std::string::npos);
    }
  }
}

TEST_CASE("a serialised program computes the same in another client") {
  std::vector<std::byte> bytes;
  {
    const Client client = cpu(2);
    bytes = Executable{client, sum_and_double("2", "0, 1"), 2}.serialized();
  }
  const Client client = cpu(2);
  const Executable program = Executable::deserialized(client, bytes, 2);
  CHECK(program.results() == 2);
  const Buffer first = upload(client, 0, Tensor<float>{{3}, {1, 2, 3}});
  const Buffer second = upload(client, 1, Tensor<float>{{3}, {10, 20, 30}});
  const std::vector<const Buffer*> arguments[] = {{&first}, {&second}};
  CHECK(program.execute(arguments)[1][0].download<float>() == Tensor<float>{{3}, {11, 22, 33}});

  bytes.resize(bytes.size() / 2);
  CHECK_THROWS_AS(static_cast<void>(Executable::deserialized(client, bytes, 2)), dist::PjrtError);
}

TEST_CASE("a program that XLA cannot compile is rejected with XLA's message") {
  const Client client = cpu(1);
  const std::string said = support::what_throws<dist::ProgramRefused>([&] {
    Executable{client, "module @m { func.func @main() -> tensor<2xf32> { return } }"};
  });
  CHECK(said.find("refuses to compile a program") != std::string::npos);
  CHECK(said.find("'func.return' op has 0 operands, but enclosing function (@main) returns 1") != std::string::npos);
}

TEST_CASE("a wait for a result times out, and the result arrives later") {
  const auto client_with = [](std::chrono::nanoseconds timeout) {
    return Client{{.values = {{"cpu_device_count", std::int64_t{1}}}, .timeout = timeout}};
  };
  const char* const square =
      "module @m { func.func @main(%x: tensor<600x600xf32>) -> tensor<600x600xf32> {\n"
      "%0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : "
      "(tensor<600x600xf32>, tensor<600x600xf32>) -> tensor<600x600xf32>\n"
      "return %0 : tensor<600x600xf32> } }";
  Tensor<float> ones{{600, 600}};
  for (float& each : ones.elements()) each = 1;
  const auto run = [&](std::chrono::nanoseconds timeout, auto&& look) {
    const Client client = client_with(timeout);
    const Executable program{client, square};
    const Buffer x = start_upload(client, 0, dist::TensorView<const float>{ones}).buffer;
    const std::vector<const Buffer*> arguments[] = {{&x}};
    look(program.execute(arguments)[0][0]);
  };
  run(std::chrono::microseconds{1}, [](const Buffer& late) {
    CHECK(support::what_throws<dist::DeadlineExceeded>([&] {
            late.wait();
          }).find("Work was not done in time: a result on platform cpu") != std::string::npos);
  });
  run(std::chrono::minutes{1}, [](const Buffer& product) { CHECK(product.download<float>()[7] == 600); });
}

#ifndef DIST_TEST_ADDRESS_SANITIZER  // it terminates programs that request so much
TEST_CASE("a program without enough memory throws OutOfMemory") {
  const Client client = cpu(1);
  const Executable program{
      client,
      "module @m { func.func @main(%x: tensor<f32>) -> tensor<1000000000000000xf32> {\n"
      "%0 = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> tensor<1000000000000000xf32>\n"
      "return %0 : tensor<1000000000000000xf32> } }"};
  const Buffer x = upload(client, 0, Tensor<float>{{}, {1}});
  const std::vector<const Buffer*> arguments[] = {{&x}};
  CHECK_THROWS_AS(program.execute(arguments)[0][0].wait(), dist::OutOfMemory);
}
#endif

TEST_CASE("too few devices and a wrong number of arguments are rejected") {
  const Client client = cpu(2);
  CHECK(support::what_throws<dist::InvalidArgument>([&] {
          Executable{client, identity, 3};
        }).find("Device 2 does not exist (the platform 'cpu' has 2") != std::string::npos);
  CHECK_THROWS_AS((Executable{client, identity, 0}), dist::InvalidArgument);

  const Executable program{client, "module @m { " + std::string{identity} + " }", 2};
  const Buffer x = upload(client, 0, Tensor<float>{{3}, {1, 2, 3}});
  const std::vector<const Buffer*> one[] = {{&x}};
  CHECK(support::what_throws<dist::InvalidArgument>([&] {
          static_cast<void>(program.execute(one));
        }).find("it has 2 replicas, but arguments are given for 1") != std::string::npos);
  const std::vector<const Buffer*> uneven[] = {{&x}, {}};
  CHECK(support::what_throws<dist::InvalidArgument>([&] {
          static_cast<void>(program.execute(uneven));
        }).find("replica 0 has 1 arguments, but replica 1 has 0") != std::string::npos);
  const std::vector<const Buffer*> none[] = {{}, {}};
  CHECK_THROWS_AS(static_cast<void>(program.execute(none)), dist::PjrtError);
}
