#include <dist/device/cuda/visible.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

using dist::cuda::visible_devices;

TEST_CASE("the description lists the visible GPUs and their entries") {
  CHECK(visible_devices(1, nullptr) == "this process sees /gpu:0; CUDA_VISIBLE_DEVICES is not set");
  CHECK(visible_devices(2, nullptr) == "this process sees /gpu:0, /gpu:1; CUDA_VISIBLE_DEVICES is not set");
  CHECK(visible_devices(2, "3, 1") ==
        "this process sees /gpu:0 (entry '3'), /gpu:1 (entry '1'); CUDA_VISIBLE_DEVICES='3, 1'");
  CHECK(visible_devices(1, "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6") ==
        "this process sees /gpu:0 (entry 'GPU-8932f937-d72c-4106-c12f-20bd9faed9f6'); "
        "CUDA_VISIBLE_DEVICES='GPU-8932f937-d72c-4106-c12f-20bd9faed9f6'");
}

TEST_CASE("an invalid entry hides itself and all later ones") {
  CHECK(visible_devices(1, "3,x,0") ==
        "this process sees /gpu:0 (entry '3'); CUDA_VISIBLE_DEVICES='3,x,0', in which CUDA ignores all entries from "
        "'x' on");
  CHECK(visible_devices(1, "MIG-a/1/0,MIG-a/2/0") ==
        "this process sees /gpu:0 (entry 'MIG-a/1/0'); CUDA_VISIBLE_DEVICES='MIG-a/1/0,MIG-a/2/0', in which CUDA "
        "ignores all entries from 'MIG-a/2/0' on");
  CHECK(visible_devices(0, "-1") ==
        "this process sees no GPU; CUDA_VISIBLE_DEVICES='-1', in which CUDA ignores all entries from '-1' on");
  CHECK(visible_devices(0, "0,,1") ==
        "this process sees no GPU; CUDA_VISIBLE_DEVICES='0,,1', in which CUDA ignores all entries from '0' on");
  CHECK(visible_devices(1, "0,,1").ends_with("from '' on"));
}

TEST_CASE("without visible GPUs, the description names the variable or the machine") {
  CHECK(visible_devices(0, "") == "this process sees no GPU; CUDA_VISIBLE_DEVICES='' hides all");
  CHECK(visible_devices(0, nullptr) == "this process sees no GPU; CUDA_VISIBLE_DEVICES is not set");
}

TEST_CASE("a variable that was changed after CUDA read it is not used as an explanation") {
  CHECK(visible_devices(2, "5") ==
        "this process sees /gpu:0, /gpu:1; CUDA_VISIBLE_DEVICES='5', which was changed after CUDA had read it");
  CHECK(visible_devices(1, "").ends_with("='', which was changed after CUDA had read it"));
}

TEST_CASE("descriptions of many GPUs or unprintable text stay short") {
  std::string many;
  for (int i = 0; i < 200; ++i) many += "GPU-\x1b[2J,";
  const std::string said = visible_devices(200, many.c_str());
  CHECK(said.find(" and 184 more") != std::string::npos);
  CHECK(said.find('\x1b') == std::string::npos);
  CHECK(said.size() < 1000);
}

TEST_CASE("visible_variable reads the environment") {
  setenv("CUDA_VISIBLE_DEVICES", "2", 1);
  CHECK(std::string{dist::cuda::visible_variable()} == "2");
  unsetenv("CUDA_VISIBLE_DEVICES");
  CHECK(dist::cuda::visible_variable() == nullptr);
}
