#include <dist/device/cuda/stream.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include <support/fake_cuda/machine.hpp>
#include <support/what_throws.hpp>

using dist::cuda::Stream;
using dist::cuda::StreamRef;

TEST_CASE("a stream is owned by one, and others refer to it") {
  fake_cuda::Options two;
  two.devices = 2;
  fake_cuda::restart(two);
  {
    Stream a{1};
    const StreamRef ref = a.ref();
    CHECK(ref.device() == 1);
    CHECK(fake_cuda::live().streams == 1);
    Stream b = std::move(a);
    CHECK(b.ref().get() == ref.get());
    Stream c{0};
    c = std::move(b);
    CHECK(c.ref().device() == 1);
    CHECK(fake_cuda::live().streams == 2);
    c.ref().wait();
  }
  CHECK(fake_cuda::live().streams == 0);
  const cudaStream_t released = Stream{0}.release();
  CHECK(fake_cuda::live().streams == 1);
  { const Stream again = Stream::from_native_handle(0, released); }
  CHECK(fake_cuda::live().streams == 0);
  static_assert(!std::is_constructible_v<StreamRef, int, std::nullptr_t>);
  static_assert(!std::is_copy_constructible_v<Stream>);
}

TEST_CASE("a stream says when all that was put there is done") {
  fake_cuda::Options lazy;
  lazy.schedule = fake_cuda::Schedule::lazy;
  fake_cuda::restart(lazy);
  const Stream stream{0};
  CHECK(stream.ref().is_done());
  int ran = 0;
  for (int i = 0; i < 2; ++i)
    REQUIRE(cudaLaunchHostFunc(
                stream.ref().get(), [](void* count) { ++*static_cast<int*>(count); }, &ran) == cudaSuccess);
  CHECK_FALSE(stream.ref().is_done());
  stream.ref().wait();
  CHECK(stream.ref().is_done());
  CHECK(ran == 2);
  fake_cuda::fail_call("cudaStreamQuery", cudaErrorLaunchFailure);
  CHECK_THROWS_AS(static_cast<void>(stream.ref().is_done()), dist::CudaError);
}

TEST_CASE("the error of a stream names its GPU, not that of the thread") {
  fake_cuda::Options two;
  two.devices = 2;
  fake_cuda::restart(two);
  const Stream stream{1};
  const auto refused = [&](auto call) {
    fake_cuda::fail_call("cudaStreamQuery", cudaErrorInvalidValue);
    return support::what_throws<dist::CudaError>(call).find(", on GPU 1 in ") != std::string::npos;
  };
  CHECK(refused([&] { static_cast<void>(stream.ref().is_done()); }));
  CHECK(refused([&] { static_cast<void>(stream.ref().is_done()); }));
}

TEST_CASE("a stream that cannot be made or waited for is an error, one that cannot be destroyed is not") {
  fake_cuda::restart({});
  fake_cuda::fail_call("cudaStreamCreateWithFlags", cudaErrorMemoryAllocation);
  CHECK_THROWS_AS(Stream{0}, dist::OutOfMemory);
  const Stream stream{0};
  fake_cuda::fail_call("cudaStreamQuery", cudaErrorLaunchFailure);
  CHECK_THROWS_AS(stream.ref().wait(), dist::CudaError);
  fake_cuda::fail_call("cudaStreamDestroy", cudaErrorLaunchFailure);
  { const Stream left{0}; }
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}
