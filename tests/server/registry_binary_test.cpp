#include <dist/server/registry.hpp>

#include <dist/server/registry.ipp>

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "support/temporary_folder.hpp"
#include "support/what_throws.hpp"

namespace {

int here() { return 1; }

}  // namespace

TEST_CASE("the identity of a program is its build id, the same on every call") {
  const std::string& identity = dist::binary_identity();
  CHECK(identity.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(identity.size() >= 16);
  CHECK(&dist::binary_identity() == &identity);
}

TEST_CASE("a build id is found after other notes, but not in damaged ones") {
  using namespace std::string_view_literals;
  const auto id_in = [](std::string_view notes, std::size_t alignment) {
    return dist::detail::build_id_in(std::as_bytes(std::span{notes}), alignment);
  };
  // Length of name, length of content, type, name, content.
  constexpr auto property = "\x04\0\0\0\x08\0\0\0\x05\0\0\0GNU\0abcdefgh"sv;
  constexpr auto build_id = "\x04\0\0\0\x03\0\0\0\x03\0\0\0GNU\0\x01\xab\xff\0"sv;
  const std::string both = std::string{property} + std::string{build_id};
  CHECK(id_in(build_id, 4) == "01abff");
  CHECK(id_in(both, 4) == "01abff");
  CHECK(id_in(property, 4).empty());
  CHECK(id_in("", 4).empty());
  for (std::size_t size = 0; size + 1 < build_id.size(); ++size) CHECK(id_in(build_id.substr(0, size), 4).empty());
  CHECK(id_in("\xff\xff\xff\xff\xff\xff\xff\xff\x03\0\0\0GNU\0"sv, 4).empty());
}

TEST_CASE("a program without a build id has the checksum of its file") {
  const support::TemporaryFolder folder;
  const std::string file = folder.path("program");
  std::ofstream{file} << "123456789";
  const auto identity = [](const std::string& path) { return dist::detail::identity_of({0, path, ""}); };
  CHECK(identity(file) == "crc32c 839206e3 of 9 bytes");
  std::ofstream{file} << "123456780";
  CHECK(identity(file) != "crc32c 839206e3 of 9 bytes");
  CHECK(dist::detail::identity_of({0, file, "ab12"}) == "ab12");
  CHECK(support::what_throws<dist::FileError>([&] { static_cast<void>(identity("/nowhere/program")); }) ==
        "File '/nowhere/program' cannot be read to identify this program (No such file or directory). Link the program "
        "with a build id (-Wl,--build-id).");
}

TEST_CASE("functions of a program and of a library have different modules in their numbers") {
  const dist::FunctionId mine = dist::detail::code_place_of(reinterpret_cast<std::uintptr_t>(&here));
  const dist::FunctionId of_main =
      dist::detail::code_place_of(reinterpret_cast<std::uintptr_t>(&dist::binary_identity));
  // Not malloc, which sanitizers define in the program.
  const dist::FunctionId of_library =
      dist::detail::code_place_of(reinterpret_cast<std::uintptr_t>(dlsym(RTLD_DEFAULT, "gnu_get_libc_version")));
  CHECK(mine.module == of_main.module);
  CHECK(mine.offset != of_main.offset);
  CHECK(mine.offset < (std::uint64_t{1} << 32));
  CHECK(of_library.module != mine.module);
  CHECK(of_library.offset < (std::uint64_t{1} << 32));
}

TEST_CASE("an address outside all modules has no number") {
  int on_stack = 0;
  CHECK(support::what_throws<dist::InvalidArgument>(
            [&] { static_cast<void>(dist::detail::code_place_of(reinterpret_cast<std::uintptr_t>(&on_stack))); }) ==
        "A function cannot be identified in other processes (its address is not in a program or library). Register "
        "functions of the program, not code that is generated at run time.");
  CHECK_THROWS_AS(static_cast<void>(dist::detail::code_place_of(0)), dist::InvalidArgument);
}
