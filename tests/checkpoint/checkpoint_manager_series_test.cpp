#include <dist/checkpoint/checkpoint_manager.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <support/temporary_folder.hpp>

#include "saved_folder.hpp"

using checkpoint_tests::write_checkpoint;
using dist::detail::CheckpointSeries;
using Numbers = std::vector<std::uint64_t>;

TEST_CASE("a number belongs to exactly one name") {
  const CheckpointSeries series{.folder = "f", .options = {.name = "ckpt"}};
  CHECK(series.path_of(12) == "f/ckpt-12");
  CHECK(series.number_of("ckpt-12") == 12);
  for (const char* other : {"ckpt", "ckpt-", "ckpt-0", "ckpt-1x", "ckpt--1", "ckpt-+1", "ckpt_1", "xckpt-1", "ckpt-x",
                            "ckpt-99999999999999999999", ""}) {
    CAPTURE(other);
    CHECK(!series.number_of(other));
  }
}

TEST_CASE("the newest checkpoints and those selected by keep_every are kept") {
  const support::TemporaryFolder folder;
  for (unsigned i = 1; i <= 12; ++i) write_checkpoint(folder, "ckpt-" + std::to_string(i), 1, i);
  write_checkpoint(folder, "other-1", 1, 1);
  folder.write("ckpt-13/data-1-00000-of-00001.safetensors", "a save that goes on");
  folder.write("ckpt-10/here", "somebody's");
  CheckpointSeries series{.folder = folder.path(), .options = {.max_to_keep = 3, .keep_every = 4}};
  CHECK(series.numbers() == Numbers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  series.remove_old();
  CHECK(series.numbers() == Numbers{4, 8, 10, 11, 12});
  series.options = {.max_to_keep = 0};
  series.remove_old();
  CHECK(series.numbers() == Numbers{4, 8, 10, 11, 12});
  series.options = {.max_to_keep = 1};
  series.remove_old();
  CHECK(series.numbers() == Numbers{12});
  CHECK(dist::detail::is_checkpoint(folder.path("other-1")));
  CHECK(dist::detail::names_in(folder.path("ckpt-13")).size() == 1);
}

TEST_CASE("incomplete saves older than the newest checkpoint are removed") {
  const support::TemporaryFolder folder;
  folder.write("ckpt-3/data-1-00000-of-00001.safetensors", "left");
  folder.write("ckpt-3/data-1-00001-of-00002.safetensors.failed", "");
  folder.write("ckpt-5/data-1-00000-of-00001.safetensors", "left");
  write_checkpoint(folder, "ckpt-4", 1, 1);
  CheckpointSeries{.folder = folder.path(), .options = {}}.remove_old();
  CHECK(dist::detail::names_in(folder.path("")) == std::vector<std::string>{"ckpt-4", "ckpt-5"});
}
