#include <dist/io/npz_writer.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/io/npz.hpp>

#include <data/sequences.hpp>
#include <support/temporary_folder.hpp>
#include <support/what_throws.hpp>

using dist::InvalidArgument;
using dist::Shape;
using dist::Tensor;
using dist::TensorView;
using dist::io::Npz;
using dist::io::NpzWriter;
using dist_test::values;

TEST_CASE("written arrays are read by name, with verified checksums") {
  const support::TemporaryFolder folder;
  {
    NpzWriter file{folder.path("a.npz")};
    file.add("network/dense_1/kernel", Tensor<float>{{2, 3}, {0, 1, 2, 3, 4, 5}});
    Tensor<std::int64_t> counts{{2}, {7, -8}};
    file.add("größe", TensorView<std::int64_t>{counts});
    file.add("none", Tensor<double>{Shape{0, 3}});
    file.commit();
  }
  const Npz npz{folder.path("a.npz")};
  CHECK(npz.names() == std::vector<std::string>{"network/dense_1/kernel", "größe", "none"});
  const auto kernel = npz.read<float>("network/dense_1/kernel");
  CHECK(kernel.shape() == Shape{2, 3});
  CHECK(values(kernel) == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK(values(npz.read<std::int64_t>("größe")) == std::vector<std::int64_t>{7, -8});
  CHECK(npz.read<double>("none").shape() == Shape{0, 3});

  std::string changed = folder.read("a.npz");
  changed[changed.find("NUMPY") + 127] ^= 1;  // the first byte of the first element
  folder.write("changed.npz", changed);
  CHECK_THROWS_WITH_AS(static_cast<void>(Npz{folder.path("changed.npz")}.read<float>("network/dense_1/kernel")),
                       doctest::Contains("its CRC-32 is"), dist::FileError);
}

TEST_CASE("names must be unique and not empty, and no file is left without commit") {
  const support::TemporaryFolder folder;
  {
    NpzWriter file{folder.path("a.npz")};
    const Tensor<float> one{{1}, {1}};
    file.add("w", one);
    CHECK(support::what_throws<InvalidArgument>([&] { file.add("w", one); }) ==
          "The archive '" + folder.path("a.npz") +
              "' cannot hold a file named 'w.npy' (another file has this name). Give each file its own name.");
    CHECK_THROWS_WITH_AS(file.add("", one), doctest::Contains("(the name is empty)"), InvalidArgument);
  }
  CHECK(folder.names().empty());
}
