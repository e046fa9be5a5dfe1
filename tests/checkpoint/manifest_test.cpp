#include <dist/checkpoint/manifest.hpp>

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <support/temporary_folder.hpp>
#include <support/what_throws.hpp>

using dist::detail::Manifest;
using dist::detail::parse_manifest;
using support::what_throws;

namespace {

const Manifest two_files{.id = 0x123456789abcdef,
                         .serial = 7,
                         .files = {{.name = "data-1.safetensors", .bytes = 1234, .header_checksum = 0x00c0ffee},
                                   {.name = "data-2.safetensors", .bytes = 0, .header_checksum = 0xffffffff}}};

Manifest read(std::string_view all) { return parse_manifest("folder/manifest.json", all); }
std::string refused(std::string_view all) {
  return what_throws<dist::FileError>([&] { static_cast<void>(read(all)); });
}
/// A foreign manifest with a valid checksum.
std::string sealed(const std::string& line) {
  return line + "\ncrc32c " + dist::detail::hexadecimal(dist::detail::checksum_of(line)) + "\n";
}
std::string with_file(const std::string& name) {
  return sealed(R"({"format":"dist checkpoint","version":1,"id":1,"serial":1,"files":[{"name":")" + name +
                R"(","bytes":1,"header_crc32c":"00000001"}]})");
}

}  // namespace

TEST_CASE("a manifest is read as written") {
  const std::string all = written(two_files);
  const Manifest again = read(all);
  CHECK(again.id == two_files.id);
  CHECK(again.serial == 7);
  REQUIRE(again.files.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(again.files[i].name == two_files.files[i].name);
    CHECK(again.files[i].bytes == two_files.files[i].bytes);
    CHECK(again.files[i].header_checksum == two_files.files[i].header_checksum);
  }
  CHECK(all ==
        "{\"format\":\"dist checkpoint\",\"version\":1,\"id\":81985529216486895,\"serial\":7,\"files\":["
        "{\"name\":\"data-1.safetensors\",\"bytes\":1234,\"header_crc32c\":\"00c0ffee\"},"
        "{\"name\":\"data-2.safetensors\",\"bytes\":0,\"header_crc32c\":\"ffffffff\"}]}\ncrc32c " +
            all.substr(all.size() - 9));
}

TEST_CASE("truncated, changed and extended manifests are rejected") {
  const std::string all = written(two_files);
  for (std::size_t length = 0; length < all.size(); ++length)
    CHECK(refused(all.substr(0, length)).starts_with("File 'folder/manifest.json' is not a valid checkpoint manifest"));
  std::size_t accepted = 0;
  for (std::size_t place = 0; place < all.size(); ++place)
    for (unsigned change = 1; change < 256; ++change) {
      std::string changed = all;
      changed[place] = static_cast<char>(static_cast<unsigned char>(changed[place]) ^ change);
      accepted += refused(changed) == "nothing was thrown";
    }
  CHECK(accepted == 0);
  for (const char* more : {"\n", " ", "x"}) {
    CHECK(refused(all + more) != "nothing was thrown");
    CHECK(refused(more + all) != "nothing was thrown");
  }
}

TEST_CASE("files must be in the folder of the manifest") {
  CHECK(refused(with_file("data.safetensors")) == "nothing was thrown");
  for (const char* name : {"", "..", ".", "../data", "/etc/passwd", "a/b", "a/", ".hidden", "a\\u0000b"}) {
    CAPTURE(name);
    CHECK(refused(with_file(name)) != "nothing was thrown");
  }
  CHECK(refused(with_file("../data")) ==
        "File 'folder/manifest.json' is not a valid checkpoint manifest (it names a file that is not in its folder: "
        "'../data'). Restore another checkpoint: this one is damaged, or its copy is incomplete.");
}

TEST_CASE("the errors of a later version and of another format differ") {
  CHECK(refused(sealed(R"({"format":"dist checkpoint","version":2,"shape":"new"})")) ==
        "File 'folder/manifest.json' has another version of the checkpoint format (it has version 2, but this program "
        "reads version 1). Restore it with the version of the library that saved it, or a later one.");
  CHECK(refused(sealed(R"({"format":"another checkpoint","version":1})")).find("it has another format") !=
        std::string::npos);
}

TEST_CASE("missing parts of a manifest are named") {
  const auto says = [](const std::string& line, std::string_view why) {
    CAPTURE(line);
    const std::string said = refused(sealed(line));
    CAPTURE(said);
    CHECK(said.find(why) != std::string::npos);
  };
  says("{}", "it has no string 'format'");
  says("[]", "it has no string 'format'");
  says("7", "it has no string 'format'");
  says("{", "line 1");
  says("", "line 1");
  says(R"({"format":7})", "it has no string 'format'");
  const std::string head = R"({"format":"dist checkpoint","version":1,)";
  says(R"({"format":"dist checkpoint"})", "it has no number 'version'");
  says(head + R"("id":-1})", "it has no number 'id'");
  says(head + R"("id":1.5})", "it has no number 'id'");
  says(head + R"("id":1,"id":1})", "duplicate");
  says(head + R"("id":1})", "it has no number 'serial'");
  says(head + R"("id":1,"serial":1})", "it has no list of files");
  says(head + R"("id":1,"serial":1,"files":{}})", "it has no list of files");
  says(head + R"("id":1,"serial":1,"files":[7]})", "it has no string 'name'");
  says(head + R"("id":1,"serial":1,"files":[{"name":"a"}]})", "it has no number 'bytes'");
  says(head + R"("id":1,"serial":1,"files":[{"name":"a","bytes":1}]})", "it has no string 'header_crc32c'");
  for (const char* digits : {"", "0", "000000001"})
    says(head + R"("id":1,"serial":1,"files":[{"name":"a","bytes":1,"header_crc32c":")" + digits + R"("}]})",
         "a checksum does not have eight digits");
  for (const char* digits : {"0000000g", "0000000A"})
    says(head + R"("id":1,"serial":1,"files":[{"name":"a","bytes":1,"header_crc32c":")" + digits + R"("}]})",
         "a checksum has characters other than hexadecimal digits");
}

TEST_CASE("a folder with a manifest is a checkpoint") {
  const support::TemporaryFolder folder;
  const std::string path = folder.path("one");
  CHECK(!dist::detail::is_checkpoint(path));
  const auto reading = [&] {
    return what_throws<dist::FileError>([&] { static_cast<void>(dist::detail::read_manifest(path)); });
  };
  const std::string none = "File '" + path +
                           "' is not a checkpoint (it has no manifest.json). Use the path that was passed to "
                           "Checkpoint::save; latest_checkpoint finds the newest one in a folder.";
  CHECK(reading() == none);
  folder.write("one/data-1", "x");
  CHECK(reading() == none);
  folder.write("one/manifest.json", written(two_files));
  CHECK(dist::detail::is_checkpoint(path));
  CHECK(dist::detail::read_manifest(path).id == two_files.id);
  // A huge file is not read into memory, and a folder is not a manifest.
  REQUIRE(truncate((path + "/manifest.json").c_str(), off_t{1} << 40) == 0);
  CHECK(reading().find("it names") == std::string::npos);
  CHECK(reading() != "nothing was thrown");
  REQUIRE(unlink((path + "/manifest.json").c_str()) == 0);
  REQUIRE(mkdir((path + "/manifest.json").c_str(), 0700) == 0);
  CHECK(reading() != "nothing was thrown");
}
