#include <dist/checkpoint/checkpoint_reader.hpp>

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dist/io/safetensors_writer.hpp>

#include <doctest/doctest.h>
#include <support/temporary_folder.hpp>
#include <support/what_throws.hpp>

#include "saved_folder.hpp"

using checkpoint_tests::complete;
using checkpoint_tests::write_checkpoint;
using dist::detail::CheckpointReader;
using support::what_throws;

namespace {

/// Returns the error of a reader that opens and verifies the checkpoint.
std::string refused(const std::string& path) {
  return what_throws<dist::FileError>([&] { CheckpointReader{path}.verify(); });
}
bool says(const std::string& said, const std::string& part) {
  CAPTURE(said);
  const bool found = said.find(part) != std::string::npos;
  CHECK_MESSAGE(found, part);
  return found;
}

}  // namespace

TEST_CASE("tensors are found by key in the files of all processes") {
  const support::TemporaryFolder folder;
  for (const std::size_t processes : {1U, 2U, 5U}) {
    const std::string name = std::to_string(processes);
    write_checkpoint(folder, name, processes, 40 + processes);
    CheckpointReader reader{folder.path(name)};
    CHECK(reader.folder() == folder.path(name));
    CHECK(reader.manifest().serial == 40 + processes);
    CHECK(reader.keys() == std::vector<std::string>{"a", "b", "c"});
    REQUIRE(reader.find("a") != nullptr);
    CHECK(reader.find("a")->shape == dist::Shape{10, 100});
    CHECK(reader.find("aa") == nullptr);
    CHECK(reader.find("") == nullptr);
    reader.verify();
    const auto a = reader.read<float>("a");
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == static_cast<float>(i) / 8);
    CHECK(reader.read<double>("c")[0] == 2.5);
    // Conversion to types that fit the numbers.
    CHECK(reader.read<double>("a")[999] == 999.0 / 8);
    CHECK(reader.read<std::int64_t>("b")[2] == 200);
    CHECK(says(what_throws<dist::FileError>([&] { static_cast<void>(reader.read<std::int8_t>("b")); }), "200"));
    CHECK(what_throws<dist::FileError>([&] { static_cast<void>(reader.read<float>("d")); }) ==
          "File '" + folder.path(name) +
              "' is a checkpoint without 'd' (it holds 'a', 'b', 'c'). Restore it into the parts that were saved.");
  }
}

TEST_CASE("missing, truncated, foreign and invalid files are named") {
  const support::TemporaryFolder folder;
  const std::vector<std::string> files = write_checkpoint(folder, "one");
  write_checkpoint(folder, "two", 2, 2);
  const std::string first = "one/" + files[0];
  const std::string content = folder.read(first);
  const std::string named = "File '" + folder.path(first) + "'";
  for (const std::size_t length : {std::size_t{0}, std::size_t{7}, content.size() / 2, content.size() - 1}) {
    folder.write(first, content.substr(0, length));
    says(refused(folder.path("one")), named + " differs from the file that was saved (it has " +
                                          std::to_string(length) + " bytes, but " + std::to_string(content.size()) +
                                          " were written). Restore another checkpoint");
  }
  REQUIRE(unlink(folder.path(first).c_str()) == 0);
  says(refused(folder.path("one")), named + " cannot be opened (No such file");
  // Replaced by the other file of the checkpoint.
  folder.write(first, folder.read("one/" + files[1]));
  says(refused(folder.path("one")), named);
  REQUIRE(unlink(folder.path(first).c_str()) == 0);
  REQUIRE(symlink("/dev/null", folder.path(first).c_str()) == 0);
  says(refused(folder.path("one")), named);
  REQUIRE(unlink(folder.path(first).c_str()) == 0);
  folder.write(first, content);
  CHECK(refused(folder.path("one")) == "nothing was thrown");
  // Symbolic links are supported.
  const std::string elsewhere = folder.path("elsewhere");
  REQUIRE(rename(folder.path(first).c_str(), elsewhere.c_str()) == 0);
  REQUIRE(symlink(elsewhere.c_str(), folder.path(first).c_str()) == 0);
  CHECK(refused(folder.path("one")) == "nothing was thrown");
}

TEST_CASE("duplicate tensors, and tensors without checksum, are rejected") {
  const support::TemporaryFolder folder;
  const std::vector<std::string> files = write_checkpoint(folder, "one", 1);
  folder.write("one/again.safetensors", folder.read("one/" + files[0]));
  complete(folder, "one", {files[0], "again.safetensors"});
  says(refused(folder.path("one")), "/manifest.json' lists two files that contain the same tensor ('a')");
  dist::io::SafetensorsWriter bare{folder.path("one/bare.safetensors"), {{"d", dist::io::ElementType::f32, {2}}}};
  const float numbers[2] = {1, 2};
  bare.append(std::span<const float>{numbers});
  bare.commit();
  complete(folder, "one", {"bare.safetensors"});
  says(refused(folder.path("one")), "/bare.safetensors' differs from the file that was saved (the checksum of 'd'");
}

TEST_CASE("a checkpoint is verified once, and each tensor again when it is read") {
  const support::TemporaryFolder folder;
  const std::string file = "one/" + write_checkpoint(folder, "one", 1)[0];
  CheckpointReader reader{folder.path("one")};
  reader.verify();
  std::string content = folder.read(file);
  content.back() = static_cast<char>(content.back() ^ 1);
  folder.write(file, content);
  reader.verify();
  says(what_throws<dist::FileError>([&] {
         for (const std::string& key : reader.keys()) static_cast<void>(reader.read<double>(key));
       }),
       "differs from the file that was saved (the checksum of ");
  says(refused(folder.path("one")), "differs from the file that was saved (the checksum of ");
}

TEST_CASE("every changed byte is detected, and the error names its file") {
  const support::TemporaryFolder folder;
  const std::vector<std::string> shards = write_checkpoint(folder, "one");
  std::vector<std::string> files{"manifest.json"};
  files.insert(files.end(), shards.begin(), shards.end());
  std::uint64_t random = 1;
  const auto draw = [&](std::size_t below) {
    random = random * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    return static_cast<std::size_t>(random >> 33) % below;
  };
  std::size_t accepted = 0;
  std::size_t unnamed = 0;
  for (std::size_t corruption = 0; corruption < 600; ++corruption) {
    const std::string file = "one/" + files[corruption % files.size()];
    const std::string content = folder.read(file);
    std::string changed = content;
    // Half of them in the header of the file.
    const std::size_t place = draw(corruption % 2 == 0 ? std::min<std::size_t>(content.size(), 400) : content.size());
    changed[place] = static_cast<char>(static_cast<unsigned char>(changed[place]) ^ (1 + draw(255)));
    folder.write(file, changed);
    const std::string said = refused(folder.path("one"));
    accepted += said == "nothing was thrown";
    unnamed += said.find("File '" + folder.path(file) + "'") == std::string::npos;
    folder.write(file, content);
  }
  CHECK(accepted == 0);
  CHECK(unnamed == 0);
  CHECK(refused(folder.path("one")) == "nothing was thrown");
}
