#include <dist/comm/nccl/api.hpp>

#include <doctest/doctest.h>

#include <string>

#include <support/fake_nccl/machine.hpp>
#include <support/what_throws.hpp>

TEST_CASE("an error contains NCCL's message, the caller and a remedy") {
  fake_nccl::restart();
  const dist::NcclError error = dist::nccl::error_of(ncclSystemError, "ncclAllReduce", "replica 1 on GPU 3");
  CHECK(error.code() == ncclSystemError);
  const std::string text = error.what();
  CHECK(text.find("NCCL refuses 'ncclAllReduce' of replica 1 on GPU 3 (unhandled system error") == 0);
  CHECK(text.find("NCCL_SOCKET_IFNAME") != std::string::npos);
  for (const ncclResult_t code : {ncclUnhandledCudaError, ncclInvalidUsage})
    CHECK(std::string(dist::nccl::error_of(code, "f", "w").what()).find("Mirrored<DirectAllReduce, Cuda>") !=
          std::string::npos);
}

TEST_CASE("a library version other than the header's throws an error with both versions") {
  fake_nccl::restart({.version = 21805});
  const std::string text = support::what_throws<dist::NcclError>([] { dist::nccl::require_version(); });
  CHECK(text.find("libnccl is 2.18.5, the program was compiled with nccl.h of " +
                  dist::nccl::version_text(NCCL_VERSION_CODE)) != std::string::npos);
  fake_nccl::restart();
  dist::nccl::require_version();
}
