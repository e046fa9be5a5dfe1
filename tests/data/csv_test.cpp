#include <dist/data/csv.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <dist/core/tensor.hpp>
#include <dist/data/auto_shard.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/example.hpp>
#include <dist/data/map.hpp>
#include <dist/data/shuffle.hpp>

#include <data/sequences.hpp>
#include <io/bytes.hpp>
#include <support/temporary_folder.hpp>

namespace data = dist::data;
using data::column;
using data::columns;
using data::csv;
using dist::FileError;
using dist::InvalidArgument;
using dist_test::bytes;
using dist_test::collect;

namespace {

struct Flower {
  float length = 0;
  std::int8_t kind = 0;
  std::string name;
  bool known = false;
  std::optional<double> width;
  std::optional<std::string> note;

  friend bool operator==(const Flower&, const Flower&) = default;
};

auto flowers(std::vector<std::string> files, data::CsvOptions options = {}) {
  return csv(std::move(files), options, column("length", &Flower::length), column("kind", &Flower::kind),
             column("name", &Flower::name), column("known", &Flower::known, true), column("width", &Flower::width),
             column("note", &Flower::note));
}

auto numbers(const std::string& file) { return csv(file, column("n", &Flower::kind)); }

std::vector<int> kinds(const auto& dataset) {
  std::vector<int> all;
  for (const auto& row : dataset.epoch(0)) all.push_back(row.kind);
  return all;
}

}  // namespace

TEST_CASE("csv maps named columns to members, in any order") {
  support::TemporaryFolder folder;
  const std::string file = folder.write("a.csv", bytes("name,note,kind,other,length,width,known\n"
                                                       "\"Iris, wild\", as is ,-128,x,1.5e-1,2,TRUE\n"
                                                       ",,+127,, 3 ,,\n"
                                                       "b,\"\",0,\"\",nan,-1,false\n"));
  const auto dataset = flowers({file});
  CHECK(dataset.cardinality() == data::Cardinality::unknown());
  const auto rows = collect(dataset);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0] == Flower{0.15F, -128, "Iris, wild", true, 2.0, " as is "});
  CHECK(rows[1] == Flower{3, 127, "", true, std::nullopt, std::nullopt});
  CHECK(std::isnan(rows[2].length));
  CHECK(rows[2].known == false);
  CHECK(rows[2].width == -1);
}

TEST_CASE("csv reads several files with different column orders, and another separator") {
  support::TemporaryFolder folder;
  const auto header = [](const std::string& names, const std::string& row) { return bytes(names + "\n" + row + "\n"); };
  const std::string a = folder.write("a.csv", header("length;kind;name;known;width;note", "1;2;a;0;3;"));
  const std::string b = folder.write("b.csv", header("note;width;known;name;kind;length", ";3;1;b;2;1"));
  const auto rows = collect(flowers({a, b, a}, {.separator = ';'}));
  REQUIRE(rows.size() == 3);
  CHECK(rows[0] == Flower{1, 2, "a", false, 3.0, std::nullopt});
  CHECK(rows[1] == Flower{1, 2, "b", true, 3.0, std::nullopt});
  CHECK(rows[2] == rows[0]);
}

TEST_CASE("an empty cell has its declared value, or is rejected") {
  support::TemporaryFolder folder;
  const std::string file = folder.write("a.csv", bytes("n,m\n1,\n ,2\n"));
  CHECK(kinds(csv(file, column("n", &Flower::kind, 9))) == std::vector<int>{1, 9});
  CHECK_THROWS_WITH_AS(kinds(numbers(file)),
                       doctest::Contains(("File '" + file +
                                          "' has an empty cell (line 3, column 1 ('n')). Give "
                                          "column(...) a third argument")
                                             .c_str()),
                       FileError);
}

TEST_CASE("invalid cells are rejected with line, column and name") {
  const auto refuse = [](const std::string& row, const std::string& because) {
    support::TemporaryFolder folder;
    const std::string file =
        folder.write("a.csv", bytes("length,kind,name,known,width,note\n1,2,a,1,1,\n" + row + "\n"));
    CHECK_THROWS_WITH_AS(collect(flowers({file})), doctest::Contains(("File '" + file + "' " + because).c_str()),
                         FileError);
  };
  refuse("1.5x,2,a,1,1,", "has a cell that is not a valid f32 (line 3, column 1 ('length'): '1.5x')");
  refuse("1,2.5,a,1,1,", "has a cell that is not a valid i8 (line 3, column 2 ('kind'): '2.5')");
  refuse("1,128,a,1,1,", "has a cell out of the range of i8 (line 3, column 2 ('kind'): '128')");
  refuse("1e99,2,a,1,1,", "has a cell out of the range of f32 (line 3, column 1 ('length'): '1e99')");
  refuse("1,+-2,a,1,1,", "has a cell that is not a valid i8 (line 3, column 2 ('kind'): '+-2')");
  refuse("1,2,a,yes,1,", "has a cell that is not a valid bool (line 3, column 4 ('known'): 'yes')");
  refuse("1,2,a,1,one,", "has a cell that is not a valid f64 (line 3, column 5 ('width'): 'one')");
  refuse("1,2,a,1,1", "has a row of another length (line 3 has 5 cells, the header row has 6)");
  refuse("1,2,a\"b,1,1,", "has a quote within a cell (line 3, column 3");
}

TEST_CASE("numbers too small for their type are rounded") {
  support::TemporaryFolder folder;
  const std::string file = folder.write("a.csv", bytes("length,width\n1e-50,-1e-400\n1e-40,5e-324\n"));
  const auto rows = collect(csv(file, column("length", &Flower::length), column("width", &Flower::width)));
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].length == 0);
  CHECK(std::signbit(*rows[0].width));
  CHECK(*rows[0].width == 0);
  CHECK(rows[1].length == 1e-40F);
  CHECK(*rows[1].width == 5e-324);
}

TEST_CASE("missing and duplicate columns are rejected by name") {
  support::TemporaryFolder folder;
  const std::string file = folder.write("a.csv", bytes("m;n;m\n1;2;3\n"));
  CHECK_THROWS_WITH_AS(
      kinds(numbers(file)),
      doctest::Contains("has no column 'n' (its header row has: m;n;m). Name one of these, or choose the "
                        "separator"),
      FileError);
  CHECK_THROWS_WITH_AS(kinds(csv(file, data::CsvOptions{.separator = ';'}, column("m", &Flower::kind))),
                       doctest::Contains("has two columns called 'm' (columns 1 and 3 of its header row)"), FileError);
  CHECK(kinds(csv(file, data::CsvOptions{.separator = ';'}, column("n", &Flower::kind))) == std::vector<int>{2});
  CHECK_THROWS_WITH_AS(kinds(numbers(folder.write("empty.csv", ""))),
                       doctest::Contains("empty.csv' has no header row (it is empty)"), FileError);
  CHECK_THROWS_WITH_AS(kinds(numbers(folder.path("nowhere.csv"))), doctest::Contains("nowhere.csv' cannot be opened"),
                       FileError);
}

TEST_CASE("csv rejects an empty list of files, and invalid separators") {
  CHECK_THROWS_AS(static_cast<void>(flowers({})), InvalidArgument);
  CHECK_THROWS_WITH_AS(static_cast<void>(flowers({"a"}, {.separator = '"'})),
                       doctest::Contains("the separator is '\"'"), InvalidArgument);
}

TEST_CASE("csv maps columns to the elements of array members") {
  struct Example {
    std::array<float, 3> x{};
    std::array<std::optional<int>, 2> notes;
    std::string name;
    std::array<std::int8_t, 1> y{};
  };
  support::TemporaryFolder folder;
  const std::string file = folder.write("a.csv", bytes("y,c,a,name,b,n1,n0\n7,3,1,one,2,,5\n-8,,4,two,5,6,\n"));
  const auto dataset = csv(file, columns({"a", "b", "c"}, &Example::x, 9),
                           columns(std::vector<std::string>{"n0", "n1"}, &Example::notes),
                           column("name", &Example::name), columns({"y"}, &Example::y));
  const auto rows = collect(dataset);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].x == std::array{1.0F, 2.0F, 3.0F});
  CHECK(rows[1].x == std::array{4.0F, 5.0F, 9.0F});
  CHECK(rows[0].notes == std::array<std::optional<int>, 2>{5, std::nullopt});
  CHECK(rows[1].notes == std::array<std::optional<int>, 2>{std::nullopt, 6});
  CHECK(rows[0].name == "one");
  CHECK(rows[1].y[0] == -8);
  CHECK_THROWS_WITH_AS(collect(csv(file, columns({"a", "b", "c"}, &Example::x))),
                       doctest::Contains("has an empty cell (line 3, column 2 ('c'))"), FileError);
  CHECK_THROWS_WITH_AS(collect(csv(file, columns({"a", "q", "c"}, &Example::x))), doctest::Contains("no column 'q'"),
                       FileError);
  CHECK_THROWS_WITH_AS(static_cast<void>(columns(std::vector<std::string>{"n0"}, &Example::notes)),
                       doctest::Contains("1 names given, the array has 2 elements"), InvalidArgument);
}

TEST_CASE("csv is sharded by file or by row") {
  support::TemporaryFolder folder;
  std::vector<std::string> files;
  for (const char* name : {"a", "b", "c"})
    files.push_back(
        folder.write(name, bytes("n\n" + std::to_string(files.size()) + "\n1" + std::to_string(files.size()))));
  const auto all = csv(files, column("n", &Flower::kind));
  CHECK(kinds(all) == std::vector<int>{0, 10, 1, 11, 2, 12});
  CHECK(kinds(data::auto_shard(all, data::AutoShardPolicy::automatic, 2, 0)) == std::vector<int>{0, 10, 2, 12});
  CHECK(kinds(data::auto_shard(all, data::AutoShardPolicy::automatic, 2, 1)) == std::vector<int>{1, 11});
  CHECK(kinds(data::auto_shard(all, data::AutoShardPolicy::data, 2, 1)) == std::vector<int>{10, 11, 12});
  CHECK_THROWS_AS(static_cast<void>(data::auto_shard(all, data::AutoShardPolicy::file, 4, 1)), InvalidArgument);
}

TEST_CASE("rows can be mapped to examples and batched") {
  support::TemporaryFolder folder;
  const std::string file = folder.write("a.csv", bytes("length,width,kind\n1,2,3\n4,5,6\n7,8,9\n"));
  const auto batches =
      csv(file, column("length", &Flower::length), column("width", &Flower::width), column("kind", &Flower::kind)) |
      data::map([](const Flower& flower) {
        return data::Example{dist::Tensor<float>{{2}, {flower.length, static_cast<float>(flower.width.value_or(0))}},
                             std::int32_t{flower.kind}};
      }) |
      data::batch(2);
  const auto all = collect(batches);
  REQUIRE(all.size() == 2);
  CHECK(dist_test::values(all[0].x) == std::vector<float>{1, 2, 4, 5});
  CHECK(dist_test::values(all[1].y) == std::vector<std::int32_t>{9});
}
