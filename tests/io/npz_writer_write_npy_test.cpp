#include <dist/io/npz_writer.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dist/core/error.hpp>

#include <data/sequences.hpp>
#include <io/bytes.hpp>
#include <io/numpy_files.hpp>
#include <support/temporary_folder.hpp>

using dist::FileError;
using dist::Shape;
using dist::Tensor;
using dist::TensorView;
using dist::io::read_npy;
using dist::io::write_npy;
using dist_test::values;

TEST_CASE("write_npy writes the same bytes as numpy.save") {
  const support::TemporaryFolder folder;
  write_npy(folder.path("x.npy"), Tensor<float>{{2, 3}, {0, 1, 2, 3, 4, 5}});
  const std::string written = folder.read("x.npy");
  // The first member in the archive of numpy.savez has 152 bytes at offset 61.
  const std::string archive{reinterpret_cast<const char*>(dist_test::numpy_savez.data()),
                            dist_test::numpy_savez.size()};
  CHECK(written == archive.substr(61, 152));
}

TEST_CASE("written arrays of every type and rank can be read again") {
  const support::TemporaryFolder folder;
  const auto again = [&]<class T>(const Tensor<T>& array) {
    write_npy(folder.path("x.npy"), array);
    CHECK(folder.read("x.npy").size() % 64 == array.size() * sizeof(T) % 64);
    const Tensor<T> read = read_npy<T>(folder.path("x.npy"));
    CHECK(read.shape() == array.shape());
    CHECK(values(read) == values(array));
  };
  again(Tensor<bool>{{3}, {true, false, true}});
  again(Tensor<std::uint8_t>{{2}, {0, 255}});
  again(Tensor<std::int8_t>{{2}, {-128, 127}});
  again(Tensor<std::uint16_t>{{1, 2}, {1, 65'535}});
  again(Tensor<std::int16_t>{{1, 2, 1}, {-32'768, 1}});
  again(Tensor<std::uint32_t>{{1}, {4'294'967'295}});
  again(Tensor<std::int32_t>{{1}, {-2'147'483'647}});
  again(Tensor<std::uint64_t>{{1}, {18'446'744'073'709'551'615U}});
  again(Tensor<std::int64_t>{{}, {-9'223'372'036'854'775'807}});
  again(Tensor<float>{{1, 1, 1, 1, 1, 2}, {0.1F, -1e30F}});
  again(Tensor<double>{{2, 2}, {0.1, 1e300, -1, 0}});
  again(Tensor<float>{Shape{0, 5}});
  again(Tensor<std::uint8_t>{Shape{1000, 0, 1000}});
  write_npy(folder.path("x.npy"), Tensor<dist::Float16>{{1}, {dist::Float16(1.5F)}});
  CHECK(read_npy<dist::Float16>(folder.path("x.npy"))[0].bits() == 0x3E00);
}

TEST_CASE("write_npy writes views, replaces an older file, and names the file in errors") {
  const support::TemporaryFolder folder;
  Tensor<int> array{{3, 2}, {1, 2, 3, 4, 5, 6}};
  write_npy(folder.path("x.npy"), array);
  write_npy(folder.path("x.npy"), TensorView<int>{array}.rows(1, 2));
  CHECK(values(read_npy<int>(folder.path("x.npy"))) == std::vector<int>{3, 4, 5, 6});
  CHECK(folder.names().size() == 1);
  CHECK_THROWS_WITH_AS(write_npy(folder.path("b/x.npy"), array),
                       doctest::Contains("b/x.npy' cannot be written (No such file or directory"), FileError);
}
