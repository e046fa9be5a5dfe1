#include "gates/prose.hpp"

#include <doctest/doctest.h>

#include <map>
#include <sstream>

#include "gates/files.hpp"

namespace {

std::string name_of(const gates::Pattern* pattern) { return std::string(pattern == nullptr ? "" : pattern->name); }

std::vector<std::string> texts(const std::vector<gates::Prose>& prose) {
  std::vector<std::string> texts;
  for (const gates::Prose& each : prose) texts.push_back(each.text);
  return texts;
}

/// The sentences of one kind of text, and the sentences that match a pattern.
struct Count {
  std::size_t sentences = 0;
  std::vector<std::string> offending = {};

  void add(const std::string& file, const std::vector<gates::Prose>& prose, bool whole = false) {
    for (const gates::Prose& each : prose)
      for (const std::string& sentence : gates::sentences_of(each.text)) {
        ++sentences;
        if (const gates::Pattern* pattern = gates::pattern_in(sentence, whole))
          offending.push_back(file + ":" + std::to_string(each.line) + ": " + sentence + " [" +
                              std::string(pattern->name) + ": " + std::string(pattern->advice) + "]");
      }
  }
};

/// Returns the names of test cases among the literals of a test.
std::vector<gates::Prose> test_names(const std::string& text) {
  std::vector<gates::Prose> names;
  std::size_t line = 1;
  std::istringstream lines{text};
  for (std::string each; std::getline(lines, each); ++line) {
    if (!each.starts_with("TEST_CASE")) continue;
    const std::size_t begin = each.find('"'), end = each.rfind('"');
    if (begin < end) names.push_back({line, each.substr(begin + 1, end - begin - 1)});
  }
  return names;
}

std::map<std::string, Count> counts_of(const std::filesystem::path& root) {
  std::map<std::string, Count> counts;
  for (const char* const folder : {"include", "tests", "examples", "benchmarks", "cmake"}) {
    const bool library = std::string(folder) == "include", tests = std::string(folder) == "tests";
    for (const auto& [file, text] : gates::read_tree(root / folder, {".hpp", ".ipp", ".cuh", ".cpp", ".cu", ".md"})) {
      const std::string path = std::string(folder) + "/" + file;
      if (path.ends_with(".md")) {
        counts["documents"].add(path, gates::paragraphs_of(text));
        continue;
      }
      const gates::SourceProse prose = gates::prose_of(text);
      counts[library ? "public comments" : tests ? "tests" : "programs"].add(path, prose.public_comments);
      counts[library ? "other comments" : tests ? "tests" : "programs"].add(path, prose.comments);
      if (library) counts["messages"].add(path, prose.messages);
      if (tests) counts["test names"].add(path, test_names(text), true);
    }
  }
  for (const char* const page : {"README.md", "CHANGELOG.md", "CONTRIBUTING.md"})
    counts["documents"].add(page, gates::paragraphs_of(gates::read_file(root / page)));
  return counts;
}

}  // namespace

TEST_CASE("every pattern is found") {
  const auto name = [](const char* sentence) { return name_of(gates::pattern_in(sentence)); };
  CHECK(name("What a handler has to do with.") == "question");
  CHECK(name("What is a replica?") == "");
  CHECK(name("Of the rows, the first one.") == "of");
  CHECK(name("Only who asks for it waits.") == "person");
  CHECK(name("Throws for a name that is no name.") == "negated noun");
  CHECK(name("A root that there is not.") == "negated noun");
  CHECK(name("The size, and that of the others.") == "pronoun");
  CHECK(name("The same, for waiting.") == "fragment");
  CHECK(name("It may happen so often.") == "quantity");
  CHECK(name("A thread of its own.") == "preposition");
  CHECK(name("The answer is waited for.") == "passive");
  CHECK(name("Fails in a sentence.") == "sentence");
  CHECK(name_of(gates::pattern_in("what is lost is sent again", true)) == "question");
}

TEST_CASE("plain sentences match no pattern") {
  for (const char* const sentence :
       {"whose name is used", "and the name", "Returns the number of replicas.",
        "The caller that reads the value waits.", "True if `root` is out of range.", "A sentence about what follows.",
        "The thread also reduces.", "No wait is without a deadline.", "`so` and `many` are words."})
    CHECK(name_of(gates::pattern_in(sentence)) == "");
}

TEST_CASE("a sentence ends with a mark and has at least three words") {
  CHECK(gates::sentences_of("One. Two words. Now three words: and\n four more words") ==
        std::vector<std::string>{"Now three words:", "and four more words"});
}

TEST_CASE("comments, public comments and messages are extracted from a source") {
  const gates::SourceProse prose = gates::prose_of(
      "/// A public\n/// comment.\nnamespace dist {\n// one\n// block\nint a;  ///< of a member\nnamespace detail {\n"
      "/// inside\n}  // namespace detail\n#include \"no message\"\nauto m = \"one \"\n  \"message\";  // end\n"
      "char q = '\"'; /// public again\n}  // namespace dist\n");
  CHECK(texts(prose.public_comments) ==
        std::vector<std::string>{" A public comment.", " of a member", " public again"});
  CHECK(texts(prose.comments) == std::vector<std::string>{" one block", " inside", " end"});
  CHECK(texts(prose.messages) == std::vector<std::string>{"one message"});
  CHECK(prose.messages.front().line == 11);
}

TEST_CASE("paragraphs, items and cells are extracted from a page without code") {
  const auto prose = gates::paragraphs_of("# Title\nOne\ntwo\n\n- item\n  more\n```\ncode\n```\n| a | b c |\n");
  CHECK(texts(prose) == std::vector<std::string>{"Title", "One\ntwo", "item\nmore", " a ", " b c "});
}

TEST_CASE("the prose of the repository keeps the budgets of prose_budgets.txt") {
  const auto counts = counts_of(gates::source_dir());
  std::istringstream budgets{gates::read_file(gates::source_dir() / "tests/gates/prose_budgets.txt")};
  std::size_t kinds = 0;
  for (std::string line; std::getline(budgets, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t colon = line.find(':');
    REQUIRE(colon != std::string::npos);
    const std::string kind = line.substr(0, colon);
    const std::size_t budget = std::stoul(line.substr(colon + 1));
    REQUIRE(counts.contains(kind));
    const Count& count = counts.at(kind);
    CHECK(count.sentences > 100);
    MESSAGE(kind, ": ", count.offending.size(), " of ", count.sentences, " sentences, budget ", budget);
    ++kinds;
    if (count.offending.size() <= budget) continue;
    for (const std::string& sentence : count.offending) MESSAGE(sentence);
    FAIL_CHECK(kind, " have ", count.offending.size(), " sentences that are hard to read, ", budget, " are allowed");
  }
  CHECK(kinds == counts.size());
}
