#include <dist/data/fashion_mnist.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include <data/sequences.hpp>
#include <io/bytes.hpp>
#include <io/gzip_bytes.hpp>

using dist::FileError;
using dist::Shape;
using dist::data::Cardinality;
using dist::data::fashion_mnist;
using dist::data::Split;
using dist_test::Bytes;
using dist_test::bytes;
using dist_test::gzip;
using dist_test::joined;
using dist_test::TemporaryFolder;

namespace {

Bytes labels(std::initializer_list<unsigned> classes) {
  return joined({bytes({0, 0, 8, 1, 0, 0, 0, static_cast<unsigned>(classes.size())}), bytes(classes)});
}
Bytes images(unsigned count, unsigned side = 28) {
  Bytes content = bytes({0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, side, 0, 0, 0, side});
  for (unsigned i = 0; i < count * side * side; ++i) content.push_back(static_cast<std::byte>(i % 256));
  return content;
}

void refuse(const std::string& directory, const std::string& because) {
  CHECK_THROWS_WITH_AS(static_cast<void>(fashion_mnist(Split::test, directory)), doctest::Contains(because.c_str()),
                       FileError);
}

/// Sets or unsets the environment variable while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* old = std::getenv(name);
    had_ = old != nullptr;
    if (had_) old_ = old;
    set(value);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { set(had_ ? old_.c_str() : nullptr); }

 private:
  void set(const char* value) const {
    if (value != nullptr)
      ::setenv(name_, value, 1);
    else
      ::unsetenv(name_);
  }
  const char* name_;
  std::string old_;
  bool had_;
};

/// Where the real files are, as `fashion_mnist` looks for them.
bool not_installed() {
  const char* directory = std::getenv("DIST_FASHION_MNIST_DIR");
  const std::string file = std::string(directory != nullptr ? directory : "/usr/share/datasets/fashion-mnist") +
                           "/t10k-images-idx3-ubyte.gz";
  return ::access(file.c_str(), R_OK) != 0;
}

std::array<int, 10> per_class(const auto& dataset) {
  std::array<int, 10> counts{};
  for (const auto& example : dataset.epoch(0)) ++counts[static_cast<std::size_t>(example.y[0])];
  return counts;
}

}  // namespace

TEST_CASE("images are scaled to [0, 1] and gain a channel, labels are scalars") {
  TemporaryFolder folder;
  folder.write("t10k-images-idx3-ubyte.gz", gzip(images(2)));
  folder.write("t10k-labels-idx1-ubyte", labels({9, 0}));
  const auto dataset = fashion_mnist(Split::test, folder.path());
  CHECK(dataset.cardinality() == Cardinality::known(2));
  const auto examples = dist_test::collect(dataset);
  CHECK(examples[0].x.shape() == Shape{28, 28, 1});
  CHECK(examples[0].x[0] == 0.0F);
  CHECK(examples[0].x[51] == 0.2F);
  CHECK(examples[0].x[255] == 1.0F);
  CHECK(examples[1].x[0] == static_cast<float>(784 % 256) / 255);
  CHECK(examples[0].y.shape() == Shape{});
  CHECK(examples[0].y[0] == 9);
  CHECK(examples[1].y[0] == 0);
}

TEST_CASE("the directory is the argument, else the variable") {
  TemporaryFolder folder;
  folder.write("train-images-idx3-ubyte", images(1));
  folder.write("train-labels-idx1-ubyte", labels({3}));
  const Variable variable{"DIST_FASHION_MNIST_DIR", folder.path().c_str()};
  CHECK(fashion_mnist(Split::train).cardinality() == Cardinality::known(1));
  refuse("", "File '" + folder.path() + "/t10k-images-idx3-ubyte.gz' is missing");
  refuse("/nowhere", "apt install dataset-fashion-mnist, or set DIST_FASHION_MNIST_DIR");
}

TEST_CASE("files that do not fit are refused by name") {
  const auto with = [](const Bytes& image_file, const Bytes& label_file, const std::string& because) {
    TemporaryFolder folder;
    const std::string image_path = folder.write("t10k-images-idx3-ubyte.gz", gzip(image_file));
    const std::string label_path = folder.write("t10k-labels-idx1-ubyte.gz", gzip(label_file));
    std::string text = because;
    for (const auto& [name, path] : {std::pair{"IMAGES", image_path}, std::pair{"LABELS", label_path}})
      if (const std::size_t at = text.find(name); at != std::string::npos) text.replace(at, 6, "'" + path + "'");
    refuse(folder.path(), text);
  };
  with(images(2), labels({1, 2, 3}), "File IMAGES does not fit LABELS (2 images, 3 labels)");
  with(images(2), labels({1, 10}), "File LABELS has a label that is no class (label 1 is 10, expected 0 to 9)");
  with(images(2, 27), labels({1, 2}), "File IMAGES does not hold images of 28 x 28 (its shape is [2, 27, 27])");
  with(labels({1, 2}), labels({1, 2}), "File IMAGES does not hold images of 28 x 28 (its shape is [2])");
  with(images(2), images(1), "File LABELS does not hold labels (its shape is [1, 28, 28], expected one axis)");
  with(bytes("text"), labels({1}), "File IMAGES is not an IDX file");
}

TEST_CASE("the real test set: 10000 images, 1000 per class" * doctest::skip(not_installed())) {
  const auto dataset = fashion_mnist(Split::test);
  CHECK(dataset.cardinality() == Cardinality::known(10'000));
  std::array<int, 10> thousand{};
  thousand.fill(1000);
  CHECK(per_class(dataset) == thousand);
  const auto examples = dist_test::collect(dataset);
  std::vector<int> first;
  for (std::size_t i = 0; i < 10; ++i) first.push_back(examples[i].y[0]);
  CHECK(first == std::vector<int>{9, 2, 1, 1, 6, 1, 4, 6, 5, 7});
}

TEST_CASE("the real training set: 60000 images, 6000 per class, mean 0.2860" * doctest::skip(not_installed())) {
  const auto dataset = fashion_mnist(Split::train);
  CHECK(dataset.cardinality() == Cardinality::known(60'000));
  std::array<int, 10> six_thousand{};
  six_thousand.fill(6000);
  CHECK(per_class(dataset) == six_thousand);
  double sum = 0;
  float largest = 0;
  for (const auto& example : dataset.epoch(0))
    for (const float pixel : example.x.elements()) {
      sum += static_cast<double>(pixel);
      largest = pixel > largest ? pixel : largest;
    }
  // The published normalisation constant of the training images.
  CHECK(sum / (60'000.0 * 784) == doctest::Approx(0.2860).epsilon(0.0005));
  CHECK(largest == 1.0F);
}
