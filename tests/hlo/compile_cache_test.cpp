#include <dist/hlo/compile_cache.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <tuple>

#include <dist/hlo/collectives.hpp>
#include <hlo/run.hpp>
#include <support/temporary_folder.hpp>

namespace hlo = dist::hlo;
using dist::Tensor;
using Floats = hlo::Traced<float, 2>;

namespace {

hlo::Function<std::tuple<Floats>(Floats)> times(float factor, std::size_t replicas = 1) {
  return hlo::trace<Floats>(replicas, [=](Floats x) { return hlo::all_reduce(dist::sum, factor * x); });
}

/// Redirects the standard error to this file during its lifetime. Does not fork, because the plugin has threads.
class Stderr {
 public:
  explicit Stderr(const std::string& path) : before_(dup(STDERR_FILENO)) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
    dup2(file, STDERR_FILENO);
    close(file);
  }
  Stderr(const Stderr&) = delete;
  Stderr& operator=(const Stderr&) = delete;
  ~Stderr() {
    dup2(before_, STDERR_FILENO);
    close(before_);
  }

 private:
  int before_;
};

/// Returns the result of replica 0 if all replicas have the argument (1, 2).
Tensor<float> result_of(const hlo::Program<std::tuple<Floats>(Floats)>& program) {
  const std::size_t replicas = program.executable().replicas();
  return program(hlo::PerReplica<Floats>{program.executable().client(), replicas, Tensor<float>{{2}, {1, 2}}}).on(0);
}

}  // namespace

TEST_CASE("a program is compiled once per folder and loaded by later caches, and other programs have their own files") {
  const support::TemporaryFolder folder;
  const dist::pjrt::Client client = testing::cpus(2);
  {
    hlo::CompileCache cache{folder.path("new/cache")};
    CHECK(result_of(cache.compile(client, times(3))) == Tensor<float>{{2}, {3, 6}});
    CHECK(cache.compiled() == 1);
    CHECK(cache.loaded() == 0);
  }
  hlo::CompileCache cache{folder.path("new/cache")};
  CHECK(result_of(cache.compile(testing::cpus(2), times(3))) == Tensor<float>{{2}, {3, 6}});
  CHECK(cache.compiled() == 0);
  CHECK(cache.loaded() == 1);
  CHECK(result_of(cache.compile(client, times(4))) == Tensor<float>{{2}, {4, 8}});
  CHECK(result_of(cache.compile(client, times(4, 2))) == Tensor<float>{{2}, {8, 16}});
  CHECK(cache.compiled() == 2);
  CHECK(folder.names("new/cache").size() == 3);
  // A program that only differs in its source locations.
  const auto eightfold = hlo::trace<Floats>(2, [](Floats x) { return hlo::all_reduce(dist::sum, 4.0F * x); });
  CHECK(result_of(cache.compile(client, eightfold)) == Tensor<float>{{2}, {8, 16}});
  CHECK(cache.loaded() == 2);
}

TEST_CASE("a file that is damaged, truncated or of another program is recompiled and replaced") {
  const support::TemporaryFolder folder;
  const dist::pjrt::Client client = testing::cpus(1);
  hlo::CompileCache cache{folder.path()};
  static_cast<void>(cache.compile(client, times(3)));
  const std::string name = folder.names().at(0);
  const std::string whole = folder.read(name);
  static_cast<void>(cache.compile(client, times(5)));
  const std::string other_name = folder.names().at(0) == name ? folder.names().at(1) : folder.names().at(0);

  std::string damaged = whole;
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  for (const std::string& content :
       {damaged, whole.substr(0, whole.size() / 2), std::string{}, folder.read(other_name)}) {
    folder.write(name, content);
    const std::size_t compiled = cache.compiled();
    CHECK(result_of(cache.compile(client, times(3))) == Tensor<float>{{2}, {3, 6}});
    CHECK(cache.compiled() == compiled + 1);
    CHECK(folder.read(name).size() == whole.size());
  }
  const std::size_t loaded = cache.loaded();
  static_cast<void>(cache.compile(client, times(3)));
  CHECK(cache.loaded() == loaded + 1);
}

TEST_CASE("a program that cannot be stored is compiled anyway, with a warning") {
  const support::TemporaryFolder folder;
  const dist::pjrt::Client client = testing::cpus(1);
  hlo::CompileCache cache{folder.path()};
  static_cast<void>(cache.compile(client, times(3)));
  const std::string path = folder.path(folder.names().at(0));
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  {
    const Stderr file{folder.path("said")};
    CHECK(result_of(cache.compile(client, times(3))) == Tensor<float>{{2}, {3, 6}});
  }
  const std::string said = folder.read("said");
  CHECK(said.find("dist: A compiled program was not cached: ") != std::string::npos);
  CHECK(said.find(path) != std::string::npos);

  const std::string file = folder.write("file", "");
  CHECK_THROWS_AS(hlo::CompileCache{file + "/cache"}, dist::FileError);
}
