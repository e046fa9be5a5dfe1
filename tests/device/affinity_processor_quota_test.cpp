#include <dist/device/affinity.hpp>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "support/temporary_folder.hpp"

namespace {

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

/// A file system with control groups.
class Root {
 public:
  Root& put(const std::string& file, const std::string& words) {
    const std::filesystem::path path = folder_.path() + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream{path} << words << '\n';
    return *this;
  }
  [[nodiscard]] std::size_t quota() const { return dist::processor_quota(folder_.path()); }

 private:
  support::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a process without control groups or without a limit has no quota") {
  CHECK(Root{}.quota() == no_limit);
  CHECK(Root{}.put("/proc/self/cgroup", "0::/job").quota() == no_limit);
  CHECK(Root{}.put("/proc/self/cgroup", "0::/job").put("/sys/fs/cgroup/job/cpu.max", "max 100000").quota() == no_limit);
  CHECK(Root{}
            .put("/proc/self/cgroup", "3:cpu,cpuacct:/job\n2:memory:/other")
            .put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1")
            .put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000")
            .quota() == no_limit);
  CHECK(Root{}.put("/proc/self/cgroup", "no lines\n:\n0:").put("/sys/fs/cgroup/cpu.max", "2 1").quota() == no_limit);
}

TEST_CASE("a cgroup v2 quota is rounded down to whole processors, at least one") {
  const auto quota = [](const char* words) {
    return Root{}.put("/proc/self/cgroup", "0::/").put("/sys/fs/cgroup/cpu.max", words).quota();
  };
  CHECK(quota("200000 100000") == 2);
  CHECK(quota("350000 100000") == 3);
  CHECK(quota("50000 100000") == 1);
  CHECK(quota("40000 10000") == 4);
  CHECK(quota("0 100000") == no_limit);
  CHECK(quota("200000 0") == no_limit);
}

TEST_CASE("the lowest limit of a group and its ancestors applies") {
  Root root;
  root.put("/proc/self/cgroup", "0::/pod/container")
      .put("/sys/fs/cgroup/pod/cpu.max", "600000 100000")
      .put("/sys/fs/cgroup/pod/container/cpu.max", "800000 100000");
  CHECK(root.quota() == 6);
  root.put("/sys/fs/cgroup/pod/container/cpu.max", "300000 100000");
  CHECK(root.quota() == 3);
}

TEST_CASE("a cgroup v1 quota is read if the container's own group is mounted as the root") {
  CHECK(Root{}
            .put("/proc/self/cgroup", "5:memory:/docker/17\n4:cpu,cpuacct:/docker/17\n0::/")
            .put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000")
            .put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000")
            .quota() == 2);
}
