#include <dist/comm/nccl/gpus_of_workers.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include <support/what_throws.hpp>

using dist::nccl::GpuOfReplica;

TEST_CASE("GPUs are compared by host and PCI address") {
  const std::vector<GpuOfReplica> different{
      {"one 1", "0000:01:00.0"}, {"one 1", "0000:02:00.0"}, {"two 2", "0000:01:00.0"}, {"two 2", "0000:02:00.0"}};
  dist::nccl::require_gpus_of_their_own(different, 2);
  std::vector<GpuOfReplica> shared = different;
  shared.push_back({"two 2", "0000:01:00.0"});
  shared.push_back({"two 2", "0000:03:00.0"});
  const std::string said =
      support::what_throws<dist::InvalidArgument>([&] { dist::nccl::require_gpus_of_their_own(shared, 2); });
  CHECK(said.find("(replica 2 (worker 1) and replica 4 (worker 2) are on GPU 0000:01:00.0 of host two)") !=
        std::string::npos);
}

TEST_CASE("the host key is NCCL_HOSTID if set and else the host name and boot id") {
  unsetenv("NCCL_HOSTID");
  const std::string usual = dist::nccl::host_key();
  CHECK(usual.find(dist::net::host_name() + " ") == 0);
  setenv("NCCL_HOSTID", "rack 7", 1);
  CHECK(dist::nccl::host_key() == "rack 7");
  unsetenv("NCCL_HOSTID");
  CHECK(dist::nccl::host_key() == usual);
}

TEST_CASE("different NCCL versions of workers throw an error that names them") {
  dist::nccl::require_one_version(std::array{22809, 22809});
  const std::string said = support::what_throws<dist::NcclError>([] {
    dist::nccl::require_one_version(std::array{22809, 22809, 22707});
  });
  CHECK(said.find("libnccl of worker 0 is 2.28.9, libnccl of worker 2 is 2.27.7") != std::string::npos);
}
