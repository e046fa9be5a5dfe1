/// Finds sentences that are hard to read at first sight in comments, messages, pages and test names: clauses in place
/// of nouns, pronouns of people for code, negated nouns, comments that continue the sentence of another comment.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gates {

/// A group of phrases, and the advice if a sentence contains one. A phrase is a list of words; `a/b` matches one of two
/// words, `*` any word.
struct Pattern {
  std::string_view name;
  std::string_view advice;
  bool opens_sentence;  ///< True if the phrases count only at the beginning of a sentence.
  std::vector<std::string_view> phrases;
};

inline const std::vector<Pattern>& patterns() {
  static const std::vector<Pattern> all{
      {"question",
       "begin with a noun or a verb: Returns, Holds, True if",
       true,
       {"what/whether/where/how/who/whoever/why"}},
      {"of", "begin with the subject", true, {"of", "that/those of"}},
      {"person", "name the code: the caller that", false, {"who/whoever/whom/nobody/anybody/somebody/everybody"}},
      {"negated noun",
       "write 'is not a', or 'if x is out of range'",
       false,
       {"is/are/was/were/be no *", "that there is/are/was/were", "there is none", "where there is/are none"}},
      {"pronoun", "repeat the noun", false, {"that/those of", "those that", "that which", "the one/ones that"}},
      {"fragment", "each comment is understood alone", true, {"the same", "likewise/and/also/besides", "of these"}},
      {"quantity", "name the limit", false, {"so many/much/far/often", "as many/much/often as", "so long as"}},
      {"preposition",
       "write after, in addition to, except, its own, instead of",
       false,
       {"behind/beside/besides", "but for", "of its/their/his own", "in the place of"}},
      {"passive",
       "use the active voice",
       false,
       {"waited/asked/looked/cared/called/taken/dealt/told/spoken/relied/counted/begun/gone/come "
        "for/at/of/up/to/on/with/by/after"}},
      {"sentence", "write 'for a readable error'", false, {"for/in sentence/sentences", "for/in a sentence/sentences"}},
  };
  return all;
}

/// Returns the words of a text in lower case and its punctuation marks, in order.
inline std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> tokens;
  bool in_word = false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = std::isalnum(byte) != 0 || c == '_' || c == '\'' || byte >= 128;
    if (letter && in_word) {
      tokens.back() += static_cast<char>(std::tolower(byte));
    } else if (letter || std::isspace(byte) == 0) {
      tokens.emplace_back(1, static_cast<char>(std::tolower(byte)));
    }
    in_word = letter;
  }
  return tokens;
}

/// True if the phrase matches the tokens from index `at` on.
inline bool matches(std::string_view phrase, const std::vector<std::string>& tokens, std::size_t at) {
  for (; !phrase.empty(); ++at) {
    const std::size_t end = std::min(phrase.find(' '), phrase.size());
    std::string_view words = phrase.substr(0, end);
    phrase.remove_prefix(std::min(end + 1, phrase.size()));
    if (at >= tokens.size()) return false;
    bool found = words == "*" && std::isalnum(static_cast<unsigned char>(tokens[at].front())) != 0;
    while (!found && !words.empty()) {
      const std::size_t bar = std::min(words.find('/'), words.size());
      found = words.substr(0, bar) == tokens[at];
      words.remove_prefix(std::min(bar + 1, words.size()));
    }
    if (!found) return false;
  }
  return true;
}

/// Returns the first pattern that the sentence matches, or null. Questions may begin with a question word. Phrases at
/// the beginning of a sentence count only after a capital letter, unless `whole` is true: a message may continue the
/// one before it.
inline const Pattern* pattern_in(std::string_view sentence, bool whole = false) {
  const std::vector<std::string> tokens = tokens_of(sentence);
  const bool question = sentence.ends_with('?');
  std::size_t opening = 0;
  while (opening < tokens.size() && std::isalnum(static_cast<unsigned char>(tokens[opening].front())) == 0) ++opening;
  const std::size_t first_letter =
      std::min(sentence.find_first_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"), sentence.size());
  const bool begins = whole || (first_letter < sentence.size() &&
                                std::isupper(static_cast<unsigned char>(sentence[first_letter])) != 0);
  for (const Pattern& pattern : patterns()) {
    if (pattern.opens_sentence && !begins) continue;
    if (question && pattern.name == "question") continue;
    const std::size_t last = pattern.opens_sentence ? opening + 1 : tokens.size();
    for (std::size_t at = pattern.opens_sentence ? opening : 0; at < last; ++at)
      for (const std::string_view phrase : pattern.phrases)
        if (matches(phrase, tokens, at)) return &pattern;
  }
  return nullptr;
}

/// A piece of prose and the number of its first line in the file.
struct Prose {
  std::size_t line;
  std::string text;
};

/// Returns the sentences of a text that have more than two words.
inline std::vector<std::string> sentences_of(std::string_view text) {
  std::vector<std::string> sentences(1);
  std::size_t words = 0;
  const auto end_sentence = [&] {
    std::string& last = sentences.back();
    if (words > 2) {
      sentences.emplace_back();
    } else {
      last.clear();
    }
    words = 0;
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find_first_not_of(" \t\n", at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(text.find_first_of(" \t\n", begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    sentences.back() += (sentences.back().empty() ? "" : " ") + std::string(word);
    ++words;
    if (std::string_view{".!?:"}.find(word.back()) != std::string_view::npos) end_sentence();
    at = end;
  }
  if (words <= 2) sentences.pop_back();
  return sentences;
}

/// Comments and string literals of a C++ source.
struct SourceProse {
  std::vector<Prose> public_comments;  ///< of `// from `///` outside of detail namespaces
  std::vector<Prose> comments;         ///< all others; consecutive lines form one comment
  std::vector<Prose> messages;         ///< consecutive literals form one message
};

inline SourceProse prose_of(std::string_view source) {
  SourceProse prose;
  std::vector<bool> detail{false};  // true for each open namespace within a detail namespace
  std::vector<Prose>* last_kind = nullptr;
  std::size_t last_line = 0;     // of the last comment
  bool message_goes_on = false;  // only whitespace since the last literal
  std::size_t line = 1;
  bool code_in_line = false;
  for (std::size_t at = 0; at < source.size();) {
    const char c = source[at];
    if (c == '\n') {
      ++line;
      code_in_line = false;
      ++at;
    } else if (source.substr(at, 2) == "//") {
      std::size_t begin = source.find_first_not_of("/!<", at);
      const std::size_t end = std::min(source.find('\n', at), source.size());
      begin = std::min(begin, end);
      const std::string_view text = source.substr(begin, end - begin);
      if (text.starts_with(" namespace") && source.substr(0, at).ends_with("}  ")) {
        if (detail.size() > 1) detail.pop_back();
      } else {
        const bool documents = source.substr(at, 3) == "///" && !detail.back();
        std::vector<Prose>* kind = documents ? &prose.public_comments : &prose.comments;
        if (kind == last_kind && last_line + 1 == line && !code_in_line) {
          kind->back().text += text;
        } else {
          kind->push_back({line, std::string(text)});
        }
        last_kind = code_in_line ? nullptr : kind;
        last_line = line;
      }
      at = end;
    } else if (c == '"') {
      std::size_t end = at + 1;
      while (end < source.size() && source[end] != '"') end += source[end] == '\\' ? 2U : 1U;
      end = std::min(end, source.size());
      const std::string_view text = source.substr(at + 1, end - at - 1);
      if (message_goes_on) {
        prose.messages.back().text += text;
      } else {
        prose.messages.push_back({line, std::string(text)});
      }
      line += static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
      message_goes_on = true;
      code_in_line = true;
      at = end + 1;
    } else if (c == '\'' && at + 2 < source.size() && (source[at + 1] == '\\' || source[at + 2] == '\'') &&
               !(at > 0 && std::isalnum(static_cast<unsigned char>(source[at - 1])) != 0)) {
      at = std::min(source.find('\'', at + (source[at + 1] == '\\' ? 3U : 2U)), source.size() - 1) + 1;
      code_in_line = true;
      message_goes_on = false;
    } else {
      if (!code_in_line && source.substr(at).starts_with("namespace ")) {
        const std::string_view opened = source.substr(at, std::min(source.find('\n', at), source.size()) - at);
        if (opened.ends_with("{")) detail.push_back(detail.back() || opened.find("detail") != std::string_view::npos);
      }
      if (!code_in_line && source.substr(at).starts_with("#include")) {
        at = std::min(source.find('\n', at), source.size());
        continue;
      }
      if (c != ' ' && c != '\t') {
        code_in_line = true;
        message_goes_on = false;
      }
      ++at;
    }
  }
  return prose;
}

/// Returns the paragraphs, list items and table cells of a Markdown page, without code blocks.
inline std::vector<Prose> paragraphs_of(std::string_view page) {
  std::vector<Prose> paragraphs;
  bool code = false, goes_on = false;
  std::size_t line = 0;
  while (!page.empty()) {
    ++line;
    const std::size_t end = std::min(page.find('\n'), page.size());
    std::string_view text = page.substr(0, end);
    page.remove_prefix(std::min(end + 1, page.size()));
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    if (text.starts_with("```")) code = !code;
    if (code || text.empty() || text.starts_with("```") || text.starts_with("<!--")) {
      goes_on = false;
    } else if (text.starts_with("|")) {
      for (std::size_t at = 1; at < text.size();) {
        const std::size_t bar = std::min(text.find('|', at), text.size());
        paragraphs.push_back({line, std::string(text.substr(at, bar - at))});
        at = bar + 1;
      }
      goes_on = false;
    } else {
      const bool item = text.starts_with("- ") || text.starts_with("* ") || text.starts_with("#");
      if (goes_on && !item) {
        paragraphs.back().text += "\n" + std::string(text);
      } else {
        paragraphs.push_back({line, std::string(text.substr(item ? text.find(' ') + 1 : 0))});
      }
      goes_on = !text.starts_with("#");
    }
  }
  return paragraphs;
}

}  // namespace gates
