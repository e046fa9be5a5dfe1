#include <dist/train/callbacks/model_checkpoint.hpp>

#include <string>

#include <doctest/doctest.h>

using dist::nn::Logs;
using dist::nn::callbacks::detail::format_path;

TEST_CASE("placeholders are replaced by numbers, like in Python") {
  Logs logs;
  logs.set("val_loss", 0.123456);
  logs.set("accuracy", 0.5);
  CHECK(format_path("ckpt", 3, std::nullopt, logs) == "ckpt");
  CHECK(format_path("a/ckpt_{epoch}", 3, std::nullopt, logs) == "a/ckpt_3");
  CHECK(format_path("{epoch:02d}-{epoch:03d}-{epoch:d}", 7, std::nullopt, logs) == "07-007-7");
  CHECK(format_path("{epoch}/{batch:04d}", 1, 25, logs) == "1/0025");
  CHECK(format_path("{val_loss:.2f}_{accuracy}", 1, std::nullopt, logs) == "0.12_0.5");
  CHECK(format_path("{{{epoch}}}", 1, std::nullopt, logs) == "{1}");
}

TEST_CASE("other placeholders are rejected") {
  Logs logs;
  logs.set("loss", 1);
  for (const char* pattern : {"{", "}", "{epoch", "{val_loss}", "{batch}", "{epoch:x}", "{epoch:.2f}", "{loss:02d}",
                              "{loss:.f}", "{loss:.999f}", "{epoch:999d}", "{}"}) {
    CAPTURE(pattern);
    CHECK_THROWS_AS(static_cast<void>(format_path(pattern, 1, std::nullopt, logs)), dist::InvalidArgument);
  }
  CHECK_THROWS_WITH_AS(
      static_cast<void>(format_path("ckpt_{val_loss}", 1, std::nullopt, logs)),
      "The path 'ckpt_{val_loss}' of ModelCheckpoint cannot be formatted ({val_loss}: the logs have loss). "
      "Use {epoch}, {batch} where it saves after batches, and names of the logs, with a format such as "
      "{epoch:02d} or {val_loss:.2f}.",
      dist::InvalidArgument);
}
