/// For test programs that are of no use without the files of Fashion-MNIST.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include <dist/core/error.hpp>
#include <dist/data/fashion_mnist.hpp>
#include <support/skipped.hpp>

namespace testing {

/// As a constant at namespace scope, ends the program as skipped when a file is missing, before any test runs. Looks
/// where `dist::data::fashion_mnist` does.
struct NeedsFashionMnist {
  NeedsFashionMnist() {
    try {
      const std::string directory = dist::data::detail::fashion_mnist_directory("");
      for (const char* file :
           {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"})
        static_cast<void>(dist::data::detail::fashion_mnist_file(directory, file));
    } catch (const dist::FileError& missing) {
      std::printf("skipped: %s\n", missing.what());
      std::fflush(stdout);
      std::_Exit(skipped);
    }
  }
};

}  // namespace testing
