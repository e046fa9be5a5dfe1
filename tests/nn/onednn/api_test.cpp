#include <dist/nn/onednn/api.hpp>

#include <string>

#include <doctest/doctest.h>

namespace nn = dist::nn;

TEST_CASE("oneDNN exceptions become errors that name the primitive, its geometry and the status") {
  const nn::onednn::Label label{"the matmul of nn::Dense", [] { return std::string("7 inputs, 9 units"); }};
  CHECK(nn::onednn::translated(label, [] { return 3; }) == 3);
  std::string message;
  dnnl_status_t status = dnnl_success;
  try {
    nn::onednn::translated(label, [] { throw dnnl::error(dnnl_unimplemented, "no such thing"); });
  } catch (const nn::OneDnnError& error) {
    message = error.what();
    status = error.status();
  }
  CHECK(status == dnnl_unimplemented);
  CHECK(message.find("the matmul of nn::Dense") != std::string::npos);
  CHECK(message.find("7 inputs, 9 units; status 3, no such thing") != std::string::npos);
  CHECK(message.find("nn::Reference") != std::string::npos);
}
