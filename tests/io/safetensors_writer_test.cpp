#include <dist/io/safetensors_writer.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/float16.hpp>
#include <dist/io/safetensors.hpp>

#include <data/sequences.hpp>
#include <support/temporary_folder.hpp>
#include <support/what_throws.hpp>

using dist::InvalidArgument;
using dist::Shape;
using dist::io::ElementType;
using dist::io::Safetensors;
using dist::io::SafetensorsTensor;
using dist::io::SafetensorsWriter;
using dist_test::values;
using support::what_throws;

namespace {

const std::vector<float> six{0, 1, 2, 3, 4, 5};

}  // namespace

TEST_CASE("the file has the bytes of the format: length, JSON padded to 64 bytes, elements") {
  const support::TemporaryFolder folder;
  SafetensorsWriter file{folder.path("a"), {{"w", ElementType::f32, {2, 1}}, {"n", ElementType::u8, {}}}, {{"k", "v"}}};
  file.append(std::span{six}.subspan(1, 2));
  const std::uint8_t nine[] = {9};
  file.append(std::span{nine});
  CHECK(folder.names().size() == 1);
  CHECK(folder.read("a").empty());  // not before commit
  file.commit();
  std::string header = R"({"__metadata__":{"k":"v"},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                       R"("n":{"dtype":"U8","shape":[],"data_offsets":[8,9]}})";
  REQUIRE(header.size() == 132);
  header.append(184 - 132, ' ');  // 8 + 184 = 3 * 64
  // 1 and 2 are 0x3F800000 and 0x40000000.
  CHECK(folder.read("a") ==
        std::string("\xB8\0\0\0\0\0\0\0", 8) + header + std::string("\0\0\x80\x3F\0\0\0\x40\x09", 9));
}

TEST_CASE("written tensors of every type, with names and texts in any script, can be read") {
  const support::TemporaryFolder folder;
  std::vector<SafetensorsTensor> tensors;
  for (const ElementType type : dist::io::all_element_types)
    tensors.push_back({"träger/\"" + std::string(to_string(type)) + "\"", type, {2, 3}});
  SafetensorsWriter file{folder.path("a"), tensors, {{"größe", "quote \" and line\n"}}};
  for (const ElementType type : dist::io::all_element_types)
    dist::io::with_element_type(type, [&]<class T>() {
      T elements[6];
      for (std::size_t i = 0; i < 6; ++i) elements[i] = static_cast<T>(static_cast<float>(i));
      file.append(std::span<const T>{elements});
    });
  file.commit();
  const Safetensors read{folder.path("a")};
  CHECK(read.metadata() == SafetensorsWriter::Metadata{{"größe", "quote \" and line\n"}});
  REQUIRE(read.entries().size() == tensors.size());
  CHECK(read.entries()[0].offset % 64 == 0);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    CHECK(read.entries()[i].name == tensors[i].name);
    CHECK(read.entries()[i].type == tensors[i].type);
    CHECK(read.entries()[i].shape == Shape{2, 3});
    const bool truths = tensors[i].type == ElementType::boolean;
    CHECK(values(read.read_converted<float>(tensors[i].name)) == (truths ? std::vector<float>{0, 1, 1, 1, 1, 1} : six));
  }
}

TEST_CASE("elements may be appended in parts of any size, as elements or as bytes, and not at all for empty tensors") {
  const support::TemporaryFolder folder;
  SafetensorsWriter file{folder.path("a"),
                         {{"none", ElementType::f32, {0, 4}},
                          {"a", ElementType::f32, {6}},
                          {"nothing", ElementType::i8, {3, 0}},
                          {"b", ElementType::f32, {6}},
                          {"last", ElementType::f64, {0}}}};
  file.append(std::span{six}.first(1));
  file.append(std::span{six}.subspan(1, 0));
  file.append(std::span{six}.subspan(1));
  const auto raw = std::as_bytes(std::span{six});
  for (std::size_t i = 0; i < raw.size(); i += 5) file.append(raw.subspan(i, i + 5 < raw.size() ? 5 : raw.size() - i));
  file.commit();
  const Safetensors read{folder.path("a")};
  CHECK(values(read.read<float>("a")) == six);
  CHECK(values(read.read<float>("b")) == six);
  CHECK(read.read<float>("none").shape() == Shape{0, 4});
  CHECK(read.find("last")->bytes == 0);
}

TEST_CASE("a file without tensors is valid") {
  const support::TemporaryFolder folder;
  SafetensorsWriter{folder.path("a"), {}}.commit();
  CHECK(folder.read("a").size() == 64);
  CHECK(Safetensors{folder.path("a")}.entries().empty());
}

TEST_CASE("other elements than declared are rejected, and the file is unchanged") {
  const support::TemporaryFolder folder;
  SafetensorsWriter file{folder.path("a"), {{"w", ElementType::f32, {6}}, {"b", ElementType::f32, {1}}}};
  const std::string start = "The safetensors file '" + folder.path("a") + "' ";
  const double wide[] = {1};
  CHECK(what_throws<InvalidArgument>([&] { file.append(std::span{wide}); }) ==
        start +
            "received elements of another type for 'w' (they are f64, the tensor was declared as f32). Append the "
            "declared elements, in their order.");
  file.append(std::span{six}.first(4));
  CHECK(what_throws<InvalidArgument>([&] { file.append(std::span{six}); }) ==
        start +
            "received too many elements for 'w' (24 bytes, but the number of missing bytes is 8). Append each tensor "
            "separately.");
  CHECK(what_throws<InvalidArgument>([&] { file.commit(); }) ==
        start +
            "lacks elements of 'w' (8 bytes of it are missing, and 1 more tensors). Append the elements of every "
            "tensor before commit.");
  file.append(std::span{six}.first(2));
  file.append(std::span{six}.first(1));
  CHECK(what_throws<InvalidArgument>([&] { file.append(std::span{six}.first(1)); }) ==
        start +
            "has no room for more elements (its 2 tensors are complete). Name each tensor when you create the writer.");
  file.commit();
  CHECK(values(Safetensors{folder.path("a")}.read<float>("w")) == std::vector<float>{0, 1, 2, 3, 0, 1});
}

TEST_CASE("invalid names are rejected, and no file is left") {
  const support::TemporaryFolder folder;
  const auto refused = [&](std::vector<SafetensorsTensor> tensors, const SafetensorsWriter::Metadata& metadata = {}) {
    const std::string said = what_throws<InvalidArgument>([&] {
      SafetensorsWriter{folder.path("a"), std::move(tensors), metadata};
    });
    CHECK(folder.names().empty());
    return said;
  };
  CHECK(refused({{"a", ElementType::f32, {}}, {"a", ElementType::f32, {}}})
            .find("named 'a' (another tensor has this name") != std::string::npos);
  CHECK(refused({{"__metadata__", ElementType::f32, {}}}).find("named '__metadata__'") != std::string::npos);
  CHECK(refused({{"\xff", ElementType::f32, {}}}).find("cannot hold '\\xff' (the name") != std::string::npos);
  CHECK(refused({{std::string("a\0b", 3), ElementType::f32, {}}}).find("contains the character NUL") !=
        std::string::npos);
  CHECK(refused({}, {{"k", "\xff"}}).find("cannot hold 'k' (the name or its text") != std::string::npos);
  CHECK(refused({}, {{"\xc0", "v"}}).find("cannot hold ") != std::string::npos);
}
