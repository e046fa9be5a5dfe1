#include <dist/nn/onednn/error.hpp>

#include <string>

#include <doctest/doctest.h>

TEST_CASE("OneDnnError names the primitive, its geometry and the status") {
  const dist::nn::OneDnnError error{"a product", "2 x 3", dnnl_out_of_memory, "no memory"};
  CHECK(error.status() == dnnl_out_of_memory);
  CHECK(std::string(error.what()).find("oneDNN failed in a product") != std::string::npos);
  CHECK(std::string(error.what()).find("2 x 3; status 1, no memory") != std::string::npos);
  CHECK(std::string(error.what()).find("Use a smaller batch") != std::string::npos);
}
