#include <dist/data/fashion_mnist.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include <data/sequences.hpp>
#include <io/bytes.hpp>
#include <io/gzip_bytes.hpp>
#include <support/temporary_folder.hpp>

using dist::FileError;
using dist::Shape;
using dist::data::Cardinality;
using dist::data::fashion_mnist;
using dist::data::Split;
using dist_test::Bytes;
using dist_test::bytes;
using dist_test::gzip;
using dist_test::joined;

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

/// Sets or unsets an environment variable while it exists.
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

}  // namespace

TEST_CASE("images are scaled to [0, 1] and gain a channel, labels are scalars") {
  support::TemporaryFolder folder;
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

TEST_CASE("the directory is the argument, or else the environment variable") {
  support::TemporaryFolder folder;
  folder.write("train-images-idx3-ubyte", images(1));
  folder.write("train-labels-idx1-ubyte", labels({3}));
  const Variable variable{"DIST_FASHION_MNIST_DIR", folder.path().c_str()};
  CHECK(fashion_mnist(Split::train).cardinality() == Cardinality::known(1));
  refuse("", "File '" + folder.path() + "/t10k-images-idx3-ubyte.gz' is missing");
  refuse("/nowhere", "apt install dataset-fashion-mnist, or set DIST_FASHION_MNIST_DIR");
}

TEST_CASE("files that do not match are rejected by name") {
  const auto with = [](const Bytes& image_file, const Bytes& label_file, const std::string& because) {
    support::TemporaryFolder folder;
    const std::string image_path = folder.write("t10k-images-idx3-ubyte.gz", gzip(image_file));
    const std::string label_path = folder.write("t10k-labels-idx1-ubyte.gz", gzip(label_file));
    std::string text = because;
    for (const auto& [name, path] : {std::pair{"IMAGES", image_path}, std::pair{"LABELS", label_path}})
      if (const std::size_t at = text.find(name); at != std::string::npos) text.replace(at, 6, "'" + path + "'");
    refuse(folder.path(), text);
  };
  with(images(2), labels({1, 2, 3}), "File IMAGES does not fit LABELS (2 images, 3 labels)");
  with(images(2), labels({1, 10}), "File LABELS has a label that is not a class (label 1 is 10, expected 0 to 9)");
  with(images(2, 27), labels({1, 2}), "File IMAGES does not hold images of 28 x 28 (its shape is [2, 27, 27])");
  with(labels({1, 2}), labels({1, 2}), "File IMAGES does not hold images of 28 x 28 (its shape is [2])");
  with(images(2), images(1), "File LABELS does not hold labels (its shape is [1, 28, 28], expected one axis)");
  with(bytes("text"), labels({1}), "File IMAGES is not an IDX file");
}

TEST_CASE("files that declare more elements than any split are rejected with a suggestion") {
  support::TemporaryFolder folder;
  folder.write("t10k-images-idx3-ubyte", images(1));
  folder.write("t10k-labels-idx1-ubyte", bytes({0, 0, 8, 1, 0, 0x1E, 0x84, 0x81}));  // 2000001
  refuse(folder.path(), "multiply to more than 1000000). Give the files of Fashion-MNIST");
  support::TemporaryFolder other;
  other.write("t10k-images-idx3-ubyte", bytes({0, 0, 8, 3, 0, 0x1E, 0x84, 0x81, 0, 0, 0, 28, 0, 0, 0, 28}));
  other.write("t10k-labels-idx1-ubyte", labels({1}));
  refuse(other.path(), "multiply to more than 784000000). Give the files of Fashion-MNIST");
}
