#include "gates/probes.hpp"

#include <doctest/doctest.h>

#include "gates/files.hpp"

using Sentences = std::vector<std::string>;

TEST_CASE("concepts, constraints and comments are not probes") {
  CHECK(gates::probes({{"a.hpp",
                        "template <class C>\nconcept Sized = requires(const C c) {\n  c.size();\n"
                        "  requires requires(typename C::Part part) { part.size(); };\n};\n"
                        "template <class C>\ninline constexpr bool is_open = requires {\n  requires C::is_open;\n};\n"
                        "template <class C>\n  requires(Sized<C> && !Other<C>)\nvoid count(const C&);\n"
                        "// if constexpr (requires { c.size(); })\n"
                        "const char* text = \"requires { c.size(); }\";\n"
                        "template <std::same_as<Options> O> void use(O) { SelfCollectives alone; }\n"
                        "auto& state() requires(count > 0) { return state_; }\n"
                        "int size() const noexcept requires(Sized<C>) { return 1; }\n"}}) == Sentences{});
}

TEST_CASE("a requires-expression outside a concept is a probe") {
  const std::string sentence = " asks for a member without a concept that names it";
  CHECK(gates::probes({{"a.hpp", "void f() {\n  if constexpr (requires { c.lower(); }) c.lower();\n}\n"}}) ==
        Sentences{"a.hpp:2" + sentence});
  CHECK(gates::probes({{"a.hpp", "constexpr bool has = requires(const C& c) {\n  c.lower();\n};\n"}}) ==
        Sentences{"a.hpp:1" + sentence});
  CHECK(gates::probes({{"a.hpp",
                        "concept Sized = true;\ntemplate <class C>\n  requires requires(C c) { c.size(); }\n"
                        "void count(C);\n"}}) == Sentences{"a.hpp:3" + sentence});
  CHECK(gates::probes({{"a.hpp", "void count(C c) requires requires { c.size(); } {}\n"}}) ==
        Sentences{"a.hpp:1" + sentence});
}

TEST_CASE("a comparison with the group of one is a probe") {
  const std::string sentence = " compares with a group of one: the concepts are GroupOfOne and CollectivesOfOne";
  CHECK(gates::probes({{"a.hpp", "\nif constexpr (std::same_as<std::remove_cvref_t<W>, SelfCollectives>) return;"}}) ==
        Sentences{"a.hpp:2" + sentence});
  CHECK(gates::probes({{"a.hpp", "constexpr bool alone = std::is_same_as<C, SelfCommunicator>;"}}) ==
        Sentences{"a.hpp:1" + sentence});
}

TEST_CASE("headers test capabilities by named concepts") {
  std::size_t headers = 0;
  for (const std::string folder :
       {"comm", "context", "data", "device", "io", "net", "nn", "strategy", "train", "variable"}) {
    const auto tree = gates::read_tree(gates::source_dir() / "include/dist" / folder, {".hpp", ".ipp", ".cuh"});
    headers += tree.size();
    for (const auto& sentence : gates::probes(tree)) FAIL_CHECK((folder + "/" + sentence));
  }
  CHECK(headers > 200);
}
