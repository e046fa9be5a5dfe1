#include <dist/io/csv.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <io/bytes.hpp>

using dist::FileError;
using dist::io::CsvReader;
using dist::io::CsvRecord;
using dist::io::MemorySource;
using dist_test::bytes;

namespace {

using Records = std::vector<std::vector<std::string>>;

template <class Source>
Records all_of(CsvReader<Source> reader) {
  Records all;
  CsvRecord record;
  while (reader.next(record)) {
    auto& cells = all.emplace_back();
    for (std::size_t i = 0; i < record.size(); ++i) cells.emplace_back(record[i]);
  }
  CHECK_FALSE(reader.next(record));
  return all;
}
Records read(const std::string& content, char separator = ',', std::size_t max_bytes = 1000) {
  const auto file = bytes(content);
  const Records all = all_of(CsvReader{MemorySource{file, "file.csv"}, separator, max_bytes});
  // The result is independent of the size of reads.
  CHECK(all_of(CsvReader{dist_test::Trickle{MemorySource{file}, 1}, separator, max_bytes}) == all);
  return all;
}
void refuse(const std::string& content, const std::string& because, std::size_t max_bytes = 1000) {
  CHECK_THROWS_WITH_AS(static_cast<void>(read(content, ',', max_bytes)),
                       doctest::Contains(("File 'file.csv' " + because).c_str()), FileError);
}

}  // namespace

TEST_CASE("csv reads cells and lines with any line ends, and without the last one") {
  const Records expected{{"a", "b"}, {"", "2 "}, {"3", ""}};
  CHECK(read("a,b\n,2 \n3,\n") == expected);
  CHECK(read("a,b\r\n,2 \r\n3,") == expected);
  CHECK(read("a,b\r,2 \r3,\r") == expected);
  CHECK(read("a;b\n;2 \n3;", ';') == expected);
  CHECK(read("a\tb\n\t2 \n3\t", '\t') == expected);
  CHECK(read("") == Records{});
}

TEST_CASE("quoted cells may contain separators, line ends and doubled quotes") {
  CHECK(read("\"a,b\",\"say \"\"hi\"\"\"\n\"line\r\nline\",\"\"\n") ==
        Records{{"a,b", "say \"hi\""}, {"line\r\nline", ""}});
  CHECK(read("\"\"\n\"\"\"\"") == Records{{""}, {"\""}});
}

TEST_CASE("empty lines and a UTF-8 byte order mark are skipped") {
  CHECK(read("\n\r\na\n\n\nb\n\n") == Records{{"a"}, {"b"}});
  CHECK(read("\xEF\xBB\xBF"
             "a,\xC3\xB6\n") == Records{{"a", "\xC3\xB6"}});
  CHECK(read("a\n\xEF\xBB\xBF"
             "b") == Records{{"a"},
                             {"\xEF\xBB\xBF"
                              "b"}});
}

TEST_CASE("a record has its line number") {
  const auto file = bytes("a\n\n\"x\ny\"\nb");
  CsvReader reader{MemorySource{file}};
  CsvRecord record;
  std::vector<std::size_t> lines;
  while (reader.next(record)) lines.push_back(record.line());
  CHECK(lines == std::vector<std::size_t>{1, 3, 5});
}

TEST_CASE("csv reads files larger than its buffer") {
  std::string content;
  Records expected;
  for (int i = 0; i < 20'000; ++i) {
    expected.push_back({std::to_string(i), "x\"y"});
    content += std::to_string(i) + ",\"x\"\"y\"\r\n";
  }
  const auto file = bytes(content);
  CHECK(all_of(CsvReader{MemorySource{file}}) == expected);
}

TEST_CASE("malformed CSV is rejected with line and column") {
  refuse("a,b\nc,d\"e\n", "has a quote within a cell (line 2, column 2: the cell does not begin with one). Put");
  refuse("a\n\"b\"c\n",
         "has a cell that continues after its closing quote (line 2, column 1: the quote is followed by 'c')");
  refuse("a\nb,\"c\nd\n", "ends within quotes (line 4, column 2: the cell began on line 2)");
  refuse("a\n\"", "ends within quotes");
  refuse("a\n\"12345678901", "has a record that is too long (line 2, column 1: it has more than 10 bytes)", 10);
  CHECK(read("1234,567890", ',', 10).size() == 1);
  refuse("1234,5678901", "has a record that is too long (line 1, column 2: it has more than 10 bytes)", 10);
}
