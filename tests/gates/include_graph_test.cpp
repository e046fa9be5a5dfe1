#include "gates/include_graph.hpp"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "gates/files.hpp"

namespace {

using gates::Tree;

const gates::Rules rules = gates::parse_rules(
    "# a comment\n"
    "[folders]\ncore:\nio: core\ntrain: *\n"
    "[packages]\nzlib.h: io/gzip.hpp\nomp.h dnnl*: nn/onednn/\ncub/*: io/\n"
    "[heavy]\ncore: iostream\n"
    "[free]\ndist.hpp: zlib.h\n");

/// Returns the violations in a tree in which every header has its test.
std::vector<std::string> check(const Tree& headers) {
  Tree tests;
  for (const auto& [header, text] : headers)
    if (header.ends_with(".hpp"))
      tests[header.substr(0, header.rfind('.')) + "_test.cpp"] = "#include <dist/" + header + ">\n#include <vector>\n";
  return gates::violations(headers, tests, rules);
}

using Sentences = std::vector<std::string>;

}  // namespace

TEST_CASE("a tree that follows the rules has no violation") {
  const Tree tree{{"dist.hpp", "#include <dist/core/a.hpp>\n#include <dist/io/b.hpp>\n"},
                  {"core/a.hpp", "#include <vector>\n"},
                  {"io/b.hpp", "#include <dist/core/a.hpp>\n#include <iostream>\n  #  include <cub/cub.cuh>\n"},
                  {"io/gzip.hpp", "#include <zlib.h>\n/// #include <mpi.h> in a comment is no include\n"},
                  {"train/c.hpp", "#include <dist/io/b.hpp>\n"}};
  CHECK(check(tree) == Sentences{});
}

TEST_CASE("an include that the folder table does not list is a violation") {
  CHECK(check({{"core/a.hpp", "#include <dist/io/b.hpp>\n"}, {"io/b.hpp", ""}}) ==
        Sentences{"core/a.hpp includes io/b.hpp: core/ may not include io/"});
}

TEST_CASE("an umbrella header included below itself is a violation") {
  CHECK(check({{"core/a.hpp", "#include <dist/nn.hpp>\n"}, {"nn.hpp", ""}}) ==
        Sentences{"core/a.hpp includes nn.hpp: core/ may not include an umbrella header"});
}

TEST_CASE("a folder that the table does not name is a violation") {
  CHECK(check({{"misc/a.hpp", ""}}) ==
        Sentences{"misc/a.hpp is in the folder misc, which the allow-list does not name"});
}

TEST_CASE("cyclic includes are a violation, also through an umbrella") {
  CHECK(check({{"core/a.hpp", "#include <dist/core/b.hpp>\n"}, {"core/b.hpp", "#include <dist/core/a.hpp>\n"}}) ==
        Sentences{"the headers include each other: core/a.hpp -> core/b.hpp -> core/a.hpp"});
  CHECK(check({{"nn.hpp", "#include <dist/x.hpp>\n"}, {"x.hpp", "#include <dist/nn.hpp>\n"}}) ==
        Sentences{"the headers include each other: nn.hpp -> x.hpp -> nn.hpp"});
}

TEST_CASE("a package outside its header is a violation") {
  CHECK(check({{"io/b.hpp", "#include <zlib.h>\n"}}) ==
        Sentences{"io/b.hpp includes <zlib.h>, which the allow-list does not permit there"});
  CHECK(check({{"io/b.hpp", "#include <dnnl.hpp>\n"}}) ==
        Sentences{"io/b.hpp includes <dnnl.hpp>, which the allow-list does not permit there"});
}

TEST_CASE("a package that the allow-list does not name is a violation") {
  CHECK(check({{"core/a.hpp", "#include <boost/any.hpp>\n"}}) ==
        Sentences{"core/a.hpp includes <boost/any.hpp>, which the allow-list does not permit there"});
}

TEST_CASE("a heavy standard header is a violation") {
  CHECK(check({{"core/a.hpp", "#include <iostream>\n"}}) ==
        Sentences{"core/a.hpp includes <iostream>, which is too heavy for core/"});
}

TEST_CASE("an umbrella that reaches a package is a violation") {
  CHECK(check({{"dist.hpp", "#include <dist/io/gzip.hpp>\n"}, {"io/gzip.hpp", "#include <zlib.h>\n"}}) ==
        Sentences{"dist.hpp must need no package, but reaches <zlib.h> through io/gzip.hpp"});
}

TEST_CASE("a header that reaches a forbidden header is a violation") {
  gates::Rules strict = rules;
  strict.free["core/a.hpp"] = {"dist/core/messages/*"};
  const Tree files{{"core/a.hpp", "#include <dist/core/b.hpp>\n"},
                   {"core/b.hpp", "#include <dist/core/messages/c.hpp>\n"},
                   {"core/messages/c.hpp", ""}};
  Tree tests;
  for (const auto& [header, text] : files)
    tests[header.substr(0, header.rfind('.')) + "_test.cpp"] = "#include <dist/" + header + ">\n";
  CHECK(gates::violations(files, tests, strict) == Sentences{"core/a.hpp must not reach <dist/core/messages/c.hpp>"});
}

TEST_CASE("quoted includes and includes of missing headers are violations") {
  CHECK(check({{"core/a.hpp", "#include \"b.hpp\"\n"}}) ==
        Sentences{"core/a.hpp includes \"b.hpp\": write <dist/...>"});
  CHECK(check({{"core/a.hpp", "#include <dist/core/z.hpp>\n"}}) ==
        Sentences{"core/a.hpp includes <dist/core/z.hpp>, which does not exist"});
}

TEST_CASE("a header without a test that includes it first is a violation") {
  CHECK(gates::violations({{"core/a.hpp", ""}, {"dist.hpp", ""}}, {}, rules) ==
        Sentences{"core/a.hpp has no test: tests/core/a_test.cpp is missing"});
  CHECK(gates::violations({{"core/a.hpp", ""}},
                          {{"core/a_test.cpp", "#include <vector>\n#include <dist/core/a.hpp>\n"}},
                          rules) == Sentences{"tests/core/a_test.cpp must include <dist/core/a.hpp> first"});
}

TEST_CASE("a file of definitions belongs to its header") {
  const Tree tree{{"core/a.hpp", "#ifndef DIST_COMPILED\n#include <dist/core/a.ipp>\n#endif\n"},
                  {"core/a.ipp", "#include <dist/core/a.hpp>\n"},
                  {"compiled.ipp", "#include <dist/core/a.ipp>\n"}};
  CHECK(check(tree) == Sentences{});
  Tree backwards = tree;
  backwards["core/a.ipp"] += "#include <dist/io/b.hpp>\n#include <zlib.h>\n";
  backwards["io/b.hpp"] = "#include <dist/core/a.hpp>\n";
  CHECK(check(backwards) == Sentences{"core/a.hpp includes io/b.hpp: core/ may not include io/",
                                      "core/a.hpp includes <zlib.h>, which the allow-list does not permit there",
                                      "the headers include each other: core/a.hpp -> io/b.hpp -> core/a.hpp",
                                      "the folders core and io include each other: core/a.hpp includes io/b.hpp, and "
                                      "io/b.hpp includes core/a.hpp"});
}

TEST_CASE("definitions that are not compiled or have no header are violations") {
  CHECK(check({{"core/a.hpp", "#include <dist/core/a.ipp>\n"}, {"core/a.ipp", ""}}) ==
        Sentences{"core/a.ipp must be included by one compiled*.ipp, besides its header"});
  CHECK(check({{"core/a.hpp", ""}, {"core/a.ipp", ""}, {"compiled.ipp", "#include <dist/core/a.ipp>\n"}}) ==
        Sentences{"core/a.hpp does not include core/a.ipp"});
  CHECK(check({{"core/a.ipp", ""}}) == Sentences{"core/a.ipp defines what no core/a.hpp declares"});
}

TEST_CASE("definitions in a part whose components they do not need are a violation") {
  gates::Rules with_needs = rules;
  with_needs.needs = {{"io/gzip", {"gzip"}}, {"compiled_gzip", {"gzip"}}, {"compiled_gzip_json", {"gzip", "json"}}};
  const auto is_refused = [&](const std::string& part) {
    const Sentences all = gates::violations({{"io/gzip.hpp", "#include <dist/io/gzip.ipp>\n"},
                                             {"io/gzip.ipp", "#include <dist/io/gzip.hpp>\n"},
                                             {part, "#include <dist/io/gzip.ipp>\n"}},
                                            {}, with_needs);
    return std::ranges::count(all, part + " must not include io/gzip.ipp, which needs gzip") == 1;
  };
  CHECK_FALSE(is_refused("compiled_gzip.ipp"));
  CHECK(is_refused("compiled_gzip_json.ipp"));
  CHECK(is_refused("compiled.ipp"));
}

TEST_CASE("a namespace that does not belong to the folder is a violation") {
  CHECK(check({{"io/a.hpp", "namespace dist {\nnamespace io {\n}  // namespace io\n}  // namespace dist\n"}}) ==
        Sentences{"io/a.hpp opens namespace dist::io, which is not one of io/"});
  gates::Rules named = rules;
  named.namespaces["io"] = {"dist::io"};
  const Tree files{{"io/a.hpp", "namespace dist::io::detail {\n}  // namespace dist::io::detail\n"},
                   {"io/files/b.hpp", "namespace dist {\n}  // namespace dist\n"}};
  Tree tests;
  for (const auto& [header, text] : files)
    tests[header.substr(0, header.rfind('.')) + "_test.cpp"] = "#include <dist/" + header + ">\n";
  CHECK(gates::violations(files, tests, named) ==
        Sentences{"io/files/b.hpp opens namespace dist, which is not one of io/files/"});
}

TEST_CASE("folders that include each other are a violation") {
  CHECK(check({{"core/a/a.hpp", "#include <dist/core/b/b.hpp>\n"},
               {"core/b/b.hpp", ""},
               {"core/b/c.hpp", "#include <dist/core/a/d.hpp>\n"},
               {"core/a/d.hpp", "#include <dist/core/e.hpp>\n"},
               {"core/e.hpp", "#include <dist/core/a/f.hpp>\n"},
               {"core/a/f.hpp", ""}}) ==
        Sentences{
            "the folders core/a and core/b include each other: core/a/a.hpp includes core/b/b.hpp, and core/b/c.hpp "
            "includes core/a/d.hpp"});
}

TEST_CASE("the map lists folders from the highest to the lowest") {
  CHECK(gates::map_of({{"core", {}}, {"io", {"core"}}, {"net", {"core", "io"}}, {"nn", {"core"}}, {"train", {"*"}}}) ==
        "train        everything\nnet          io\nio           core\nnn           core\ncore\n");
}

TEST_CASE("a component table that differs from the includes is a violation") {
  gates::Rules named = rules;
  named.needs = gates::parse_needs("# a comment\ngzip: io/gzip io/zip/\n: io/zip/core\ngzip json: io/both io/gone\n");
  CHECK(gates::needs_of(named.needs, "io/gzip.hpp") == std::vector<std::string>{"gzip"});
  CHECK(gates::needs_of(named.needs, "io/zip/a/b.hpp") == std::vector<std::string>{"gzip"});
  CHECK(gates::needs_of(named.needs, "io/zip/core.ipp").empty());
  CHECK(gates::needs_of(named.needs, "core/gzip.hpp").empty());
  const Tree files{{"io/gzip.hpp", "#include <zlib.h>\n"},
                   {"io/zip/a.hpp", "#include <dist/io/gzip.hpp>\n"},
                   {"io/zip/core.hpp", ""},
                   {"io/both.hpp", "#include <dist/io/zip/a.hpp>\n"},
                   {"io/other.hpp", "#include <dist/io/both.hpp>\n#include <dist/io/zip/core.hpp>\n"}};
  Tree tests;
  for (const auto& [header, text] : files)
    tests[header.substr(0, header.rfind('.')) + "_test.cpp"] = "#include <dist/" + header + ">\n";
  CHECK(gates::violations(files, tests, named) ==
        Sentences{"cmake/headers.txt lacks that io/other.hpp needs gzip, because it includes io/both.hpp",
                  "cmake/headers.txt lacks that io/other.hpp needs json, because it includes io/both.hpp",
                  "cmake/headers.txt says that io/both.hpp needs json, and nothing that it includes does",
                  "cmake/headers.txt names io/gone, which does not exist"});
}

TEST_CASE("an unreadable rule is an error") {
  CHECK_THROWS(gates::parse_rules("[folders]\ncore\n"));
  CHECK_THROWS(gates::parse_rules("[folder]\ncore:\n"));
  CHECK_THROWS(gates::parse_rules("core: io\n"));
}

TEST_CASE("include/dist follows include_allow_list.txt, and cmake/headers.txt matches the includes") {
  const auto root = gates::source_dir();
  const auto headers = gates::read_tree(root / "include/dist", {".hpp", ".ipp", ".cuh"});
  REQUIRE(!headers.empty());
  const auto tests = gates::read_tree(root / "tests", {"_test.cpp"});
  auto allowed = gates::parse_rules(gates::read_file(root / "tests/gates/include_allow_list.txt"));
  allowed.needs = gates::parse_needs(gates::read_file(root / "cmake/headers.txt"));
  for (const auto& sentence : gates::violations(headers, tests, allowed)) FAIL_CHECK(sentence);
  const std::string map = gates::map_of(allowed.folders);
  if (gates::read_file(root / "include/dist/README.md").find("```\n" + map + "```\n") == std::string::npos)
    FAIL_CHECK("include/dist/README.md does not show the folders as they are:\n```\n", map, "```");
}
