#include <dist/device/cuda/last_work.hpp>

#include <doctest/doctest.h>

#include <string>

namespace {

struct Step {
  float* weights;
};

}  // namespace

TEST_CASE("a kernel's name contains its parameters") {
  const dist::cuda::WorkName& name = dist::cuda::kernel_work<Step, unsigned>;
  CHECK(std::string(name.kind) == "kernel ");
  CHECK(std::string(name.parameters).find("Step, unsigned") != std::string::npos);
  CHECK(name.parameters.front() == '(');
  CHECK(name.parameters.back() == ')');
}

TEST_CASE("the last work of each GPU is recorded") {
  CHECK(dist::cuda::last_work(3) == nullptr);
  dist::cuda::note_work(3, dist::cuda::copy_work);
  dist::cuda::note_work(4, dist::cuda::fill_work);
  CHECK(dist::cuda::last_work(3) == &dist::cuda::copy_work);
  dist::cuda::note_work(3, dist::cuda::kernel_work<int>);
  CHECK(dist::cuda::last_work(3) == &dist::cuda::kernel_work<int>);
  CHECK(dist::cuda::last_work(4) == &dist::cuda::fill_work);
  CHECK(dist::cuda::last_work(0) == nullptr);
}
