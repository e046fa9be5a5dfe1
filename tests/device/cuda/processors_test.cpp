#include <dist/device/cuda/processors.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <support/fake_cuda/machine.hpp>
#include <support/temporary_folder.hpp>

using Numbers = std::vector<std::size_t>;

namespace {

/// 11 GPUs, and the system's information about their location.
class Machine : support::TemporaryFolder {
 public:
  Machine() {
    fake_cuda::Options options;
    options.devices = 11;
    fake_cuda::restart(options);
  }

  void near(const std::string& address, const std::string& processors) const {
    write(address + "/local_cpulist", processors + "\n");
  }
  [[nodiscard]] Numbers processors(const Numbers& devices) const {
    return dist::cuda::processors_near(devices, path());
  }
};

/// The processors that this process may use, in order of preference.
Numbers usable() {
  const Numbers allowed = dist::allowed_processors();
  Numbers processors;
  for (const std::size_t position : dist::Cpu::placement(std::numeric_limits<std::size_t>::max()))
    processors.push_back(allowed[position]);
  return processors;
}

}  // namespace

TEST_CASE("host threads stay on processors near their GPUs") {
  const Machine machine;
  const Numbers all = usable();
  const std::string everywhere = "0-65535", last = std::to_string(all.back());
  machine.near("ffff:00:00.0", everywhere);
  machine.near("ffff:01:00.0", last);
  machine.near("ffff:0a:00.0", "0-65535");
  CHECK(machine.processors({0}) == Numbers{all.front()});
  CHECK(machine.processors({1}) == Numbers{all.back()});
  CHECK(machine.processors({10}) == Numbers{all.front()});
  if (all.size() < 2) return;
  CHECK(machine.processors({0, 1}) == Numbers{all.front(), all.back()});
  CHECK(machine.processors({1, 0}) == Numbers{all.back(), all.front()});
  CHECK(machine.processors({0, 0}) == Numbers{all[0], all[1]});
}

TEST_CASE("the system places the threads if GPU locations are unknown or have too few processors") {
  const Machine machine;
  const Numbers all = usable();
  machine.near("ffff:00:00.0", std::to_string(all.front()));
  machine.near("ffff:01:00.0", "65535");
  machine.near("ffff:02:00.0", "no list");
  CHECK(machine.processors({}).empty());
  CHECK(machine.processors({0, 0}).empty());
  CHECK(machine.processors({1}).empty());
  CHECK(machine.processors({2}).empty());
  CHECK(machine.processors({3}).empty());
  CHECK(machine.processors({0, 3}).empty());
}
