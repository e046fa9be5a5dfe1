#include <dist/comm/mpi/mpi_all_reduce.hpp>
// ranks: 1

#include <doctest/doctest.h>

#include <cstdint>

namespace {

template <class T>
int size_in_mpi() {
  int bytes = 0;
  MPI_Type_size(dist::mpi::datatype<T>(), &bytes);
  return bytes;
}

}  // namespace

TEST_CASE("datatypes have the size of the C++ types; 16-bit floats are reduced as float") {
  CHECK(size_in_mpi<bool>() == 1);
  CHECK(size_in_mpi<char>() == 1);
  CHECK(size_in_mpi<std::int8_t>() == 1);
  CHECK(size_in_mpi<std::uint16_t>() == 2);
  CHECK(size_in_mpi<std::int32_t>() == 4);
  CHECK(size_in_mpi<long long>() == 8);
  CHECK(size_in_mpi<unsigned long>() == 8);
  CHECK(size_in_mpi<double>() == 8);
  CHECK(dist::mpi::datatype<float>() == MPI_FLOAT);
  CHECK(dist::mpi::datatype<dist::Float16>() == MPI_FLOAT);
  CHECK(dist::mpi::datatype<dist::BFloat16>() == MPI_FLOAT);
  CHECK(dist::mpi::datatype<std::int32_t>() != dist::mpi::datatype<std::uint32_t>());
}
