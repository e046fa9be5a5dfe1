// Input from files: examples from CSV files, interleaved records of TFRecord files, and a user-defined dataset.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <dist/data.hpp>
#include <dist/dist.hpp>
#include <dist/io/tfrecord.hpp>

#include "check.hpp"

namespace {

namespace data = dist::data;

/// The squares of 0 to count - 1, computed again in each epoch.
class Squares : public data::DatasetRange<Squares> {
 public:
  using Element = float;

  explicit Squares(std::size_t count) : count_(count) {}

  class Iterator {
   public:
    explicit Iterator(std::size_t count) : count_(count) {}
    bool next(float& element) {  // overwrites the element; returns false at the end
      if (at_ == count_) return false;
      element = static_cast<float>(at_ * at_);
      ++at_;
      return true;
    }

   private:
    std::size_t count_, at_ = 0;
  };
  [[nodiscard]] Iterator iterate(std::uint64_t /*epoch*/) const { return Iterator{count_}; }
  [[nodiscard]] data::Cardinality cardinality() const { return data::Cardinality::known(count_); }

 private:
  std::size_t count_;
};

void write(const std::string& path, std::string_view content) {
  std::ofstream file{path, std::ios::binary};
  file << content;
}

/// Serializes a bytes field of a protocol buffer.
std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number * 8 + 2), static_cast<char>(bytes.size())} + bytes;
}
/// Serializes a tf.train.Example with one feature, "label", an integer from 0 to 127.
std::string example_with_label(int label) {
  const std::string integers = field(3, field(1, std::string{static_cast<char>(label)}));
  return field(1, field(1, field(1, "label") + field(2, integers)));
}

}  // namespace

int main() {
  const std::string folder = std::filesystem::temp_directory_path() / "dist_example_29";
  std::filesystem::create_directories(folder);
  const std::string first = folder + "/a.csv", second = folder + "/b.csv";
  write(first, "kind,length,width\nrose,5,2\ntulip,3,1\nrose,6,2\n");
  write(second, "length,width,kind\n2,1,tulip\n");

  // [csv]
  struct Flower {
    float length, width;
    std::string kind;
  };
  const auto flowers = data::csv({first, second}, data::column("length", &Flower::length),
                                 data::column("width", &Flower::width), data::column("kind", &Flower::kind));
  const auto to_example = [](const Flower& flower) {
    dist::Tensor<float> x{{2}};
    x[0] = flower.length;
    x[1] = flower.width;
    return data::Example{std::move(x), std::int32_t{flower.kind == "rose"}};
  };
  const auto train = flowers | data::map(to_example) | data::cache() | data::shuffle(1'000, /*seed=*/1) |
                     data::batch(2) | data::prefetch(2);
  // [/csv]

  // [distribute]
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  auto batches = strategy.distribute_dataset(train);  // once, before the loop over epochs
  std::int32_t roses = 0;
  for (int epoch = 0; epoch < 3; ++epoch)
    for (auto&& batch : batches) {  // each loop is a new epoch in another order
      const auto found = strategy.run(
          [](auto&, const auto& part) {  // the rows of this replica: x [rows, 2], y [rows]
            std::int32_t count = 0;
            for (std::size_t row = 0; row < part.y.rows(); ++row) count += part.y[row];
            return count;
          },
          batch);
      roses += strategy.reduce(dist::sum, found);
    }
  // [/distribute]
  std::printf("%d roses in 3 epochs\n", roses);
  check(roses == 6, "every epoch has each row once");

  std::vector<std::string> paths;
  for (int file = 0; file < 2; ++file) {
    std::string content;
    for (int record = 0; record < 3; ++record)
      dist::io::append_tfrecord(content, example_with_label(10 * file + record));
    paths.push_back(folder + "/part-" + std::to_string(file) + ".tfrecord");
    write(paths.back(), content);
  }
  // [tfrecord]
  const auto labels =
      data::files(paths) |
      data::interleave([](const std::string& path) { return data::tfrecord(path); }, /*cycle_length=*/2) |
      data::map([](const std::string& record) {
        const data::TfExample example{record};
        return example.ints("label")[0];
      });
  // [/tfrecord]
  std::vector<std::int64_t> in_order;
  for (const std::int64_t label : labels.epoch(0)) in_order.push_back(label);
  check(in_order == std::vector<std::int64_t>{0, 10, 1, 11, 2, 12}, "the records of the files alternate");

  float sum = 0;
  const auto squares = Squares{5} | data::batch(2);
  for (const auto& batch : squares.epoch(0))
    for (std::size_t row = 0; row < batch.rows(); ++row) sum += batch[row];
  check(sum == 0 + 1 + 4 + 9 + 16, "the dataset is batched like any other");
  std::filesystem::remove_all(folder);
}
