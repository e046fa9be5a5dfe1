#include "refusal.hpp"

#include <cstdio>
#include <cstdlib>

namespace fake_cuda {

void refuse(std::string_view sentence) noexcept {
  std::fprintf(stderr, "fake CUDA: %.*s\n", static_cast<int>(sentence.size()), sentence.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace fake_cuda
