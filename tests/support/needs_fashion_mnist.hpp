/// For test programs that require the Fashion-MNIST files.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include <dist/core/error.hpp>
#include <dist/data/fashion_mnist.hpp>
#include <support/skipped.hpp>

namespace testing {

/// As a constant at namespace scope, exits the program as skipped before any test if a file is missing in the folder of
/// `dist::data::fashion_mnist`.
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
