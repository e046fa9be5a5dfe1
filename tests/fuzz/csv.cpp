// Parses any bytes as CSV: records, which are the same after writing them with every cell in quotes, or a FileError.
#include <dist/io/csv.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <dist/core/error.hpp>

namespace {

using Records = std::vector<std::vector<std::string>>;

Records read(std::span<const std::byte> bytes) {
  dist::io::CsvReader reader{dist::io::MemorySource{bytes}, ',', 1000};
  dist::io::CsvRecord record;
  Records records;
  while (reader.next(record)) {
    auto& cells = records.emplace_back();
    for (std::size_t i = 0; i < record.size(); ++i) cells.emplace_back(record[i]);
  }
  return records;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Records records;
  try {
    records = read(std::as_bytes(std::span{data, size}));
  } catch (const dist::FileError&) {
    return 0;
  }
  std::string written;
  for (const auto& cells : records) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      written += i == 0 ? "\"" : ",\"";
      for (const char byte : cells[i]) written.append(byte == '"' ? 2 : 1, byte);
      written += '"';
    }
    written += '\n';
  }
  if (read(std::as_bytes(std::span{written.data(), written.size()})) != records) std::abort();
  return 0;
}
