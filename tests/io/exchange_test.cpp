// Exchange of files with NumPy and the package safetensors, in both directions.
#include <dist/io/npz.hpp>
#include <dist/io/npz_writer.hpp>
#include <dist/io/safetensors.hpp>
#include <dist/io/safetensors_writer.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <dist/core/float16.hpp>
#include <dist/core/tensor.hpp>

#include <data/sequences.hpp>
#include <support/python.hpp>
#include <support/temporary_folder.hpp>

using dist::BFloat16;
using dist::Float16;
using dist::Shape;
using dist::Tensor;
using dist::io::ElementType;
using dist_test::values;

namespace {

const testing::NeedsPython needs_safetensors{"safetensors.numpy"};

const Tensor<float> f32{{2, 3}, {0.5F, -1, 3, 0, 0.125F, 1e9F}};
const Tensor<double> f64{{2}, {0.1, 1e300}};
const Tensor<Float16> f16{{1, 2}, {Float16(1.5F), Float16(65504.0F)}};
const Tensor<bool> truths{{3}, {true, false, true}};
const Tensor<std::uint8_t> u8{{}, {255}};
const Tensor<std::int64_t> i64{{2, 1}, {-1, std::int64_t{1} << 62}};
const Tensor<std::int32_t> none{Shape{0, 3}};
const Tensor<BFloat16> bf16{{2}, {BFloat16(1.5F), BFloat16(-2.0F)}};

void write_ours(const support::TemporaryFolder& folder) {
  using namespace dist::io;
  NpzWriter npz{folder.path("ours.npz")};
  SafetensorsWriter safetensors{folder.path("ours.safetensors"),
                                {{"f64", ElementType::f64, {2}},
                                 {"f32", ElementType::f32, {2, 3}},
                                 {"f16", ElementType::f16, {1, 2}},
                                 {"bool", ElementType::boolean, {3}},
                                 {"u8", ElementType::u8, {}},
                                 {"i64", ElementType::i64, {2, 1}},
                                 {"größe", ElementType::i32, {0, 3}},
                                 {"bf16", ElementType::bf16, {2}}},
                                {{"note", "größe"}}};
  const auto write = [&](const std::string& name, const auto& array) {
    write_npy(folder.path(name + ".npy"), array);
    npz.add(name, array);
    safetensors.append(array.elements());
  };
  write("f64", f64);
  write("f32", f32);
  write("f16", f16);
  write("bool", truths);
  write("u8", u8);
  write("i64", i64);
  npz.add("größe", none);
  npz.commit();
  safetensors.append(bf16.elements());
  safetensors.commit();
}

/// The output of NumPy and safetensors for our arrays, without the kind of the file and the name.
constexpr const char* said_f32 = " float32 [2, 3] [0.5, -1.0, 3.0, 0.0, 0.125, 1000000000.0]\n";
constexpr const char* said_f64 = " float64 [2] [0.1, 1e+300]\n";
constexpr const char* said_f16 = " float16 [1, 2] [1.5, 65504.0]\n";
constexpr const char* said_bool = " bool [3] [True, False, True]\n";
constexpr const char* said_u8 = " uint8 [] [255]\n";
constexpr const char* said_i64 = " int64 [2, 1] [-1, 4611686018427387904]\n";
constexpr const char* said_none = " int32 [0, 3] []\n";

template <class File>
void check_theirs(const File& file) {
  CHECK(file.template read<float>("f32").shape() == Shape{2, 2});
  CHECK(values(file.template read<float>("f32")) == std::vector<float>{0.5F, -1, 3, 1e30F});
  CHECK(values(file.template read<double>("f64/x")) == std::vector<double>{0.1, 1e300});
  CHECK(values(file.template read_converted<float>("f16")) == std::vector<float>{1.5F, 65504});
  CHECK(values(file.template read<bool>("bool")) == std::vector<bool>{true, false, true});
  CHECK(file.template read<std::uint8_t>("u8").shape() == Shape{});
  CHECK(file.template read<std::uint8_t>("u8")[0] == 255);
  CHECK(values(file.template read<std::int64_t>("i64")) == std::vector<std::int64_t>{-1, std::int64_t{1} << 62});
  CHECK(file.template read<std::int32_t>("größe").shape() == Shape{0, 3});
}

}  // namespace

TEST_CASE("NumPy and safetensors read our files, and we read theirs") {
  using std::string;
  const support::TemporaryFolder folder;
  write_ours(folder);
  const string said = testing::python_output("io/exchange_arrays.py", folder.path());
  CHECK(said == string("npy f32") + said_f32 + "npy f64" + said_f64 + "npy f16" + said_f16 + "npy bool" + said_bool +
                    "npy u8" + said_u8 + "npy i64" + said_i64 + "npz f64" + said_f64 + "npz f32" + said_f32 +
                    "npz f16" + said_f16 + "npz bool" + said_bool + "npz u8" + said_u8 + "npz i64" + said_i64 +
                    "npz größe" + said_none + "metadata {'note': 'größe'}\n" + "safetensors bool" + said_bool +
                    "safetensors f16" + said_f16 + "safetensors f32" + said_f32 + "safetensors f64" + said_f64 +
                    "safetensors größe" + said_none + "safetensors i64" + said_i64 + "safetensors u8" + said_u8 +
                    // As bfloat16, 1.5 and -2 are 0x3FC0 and 0xC000.
                    "safetensors bf16 BF16 [2] c03f00c0\n");

  CHECK(values(dist::io::read_npy<float>(folder.path("theirs.npy"))) == std::vector<float>{0.5F, -1, 3, 1e30F});
  check_theirs(dist::io::Npz{folder.path("theirs.npz")});
  check_theirs(dist::io::Npz{folder.path("theirs_compressed.npz")});
  check_theirs(dist::io::Safetensors{folder.path("theirs.safetensors")});
}
