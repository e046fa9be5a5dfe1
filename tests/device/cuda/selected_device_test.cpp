#include <dist/device/cuda/selected_device.hpp>

#include <doctest/doctest.h>

#include <string>

#include <support/fake_cuda/machine.hpp>
#include <support/what_throws.hpp>

namespace {

int selected() {
  int device = -1;
  REQUIRE(cudaGetDevice(&device) == cudaSuccess);
  return device;
}

}  // namespace

TEST_CASE("a device is selected for a scope") {
  fake_cuda::Options three;
  three.devices = 3;
  fake_cuda::restart(three);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  {
    const dist::cuda::SelectedDevice outer{2};
    CHECK(selected() == 2);
    const dist::cuda::SelectedDevice inner{0};
    CHECK(selected() == 0);
  }
  CHECK(selected() == 1);
  CHECK_THROWS_AS(dist::cuda::SelectedDevice{3}, dist::CudaError);
  CHECK(support::what_throws<dist::CudaError>([] { dist::cuda::select_device(3); }).find("'cudaSetDevice(3)'") !=
        std::string::npos);
  CHECK(selected() == 1);
}
