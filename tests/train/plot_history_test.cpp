#include <dist/train/plot_history.hpp>

#include <cctype>
#include <clocale>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <support/temporary_folder.hpp>

namespace nn = dist::nn;

namespace {

/// An element of XML: its name, attributes, text, and the elements within it.
struct Element {
  std::string name;
  std::map<std::string, std::string> attributes{};
  std::string text{};
  std::vector<Element> children{};
};

/// Reads XML as far as SVG needs it, and throws for what is not well-formed.
class Xml {
 public:
  static Element parse(std::string_view document) {
    Xml xml{document};
    Element root = xml.element();
    xml.blanks();
    xml.require(xml.rest_.empty(), "something behind the root");
    return root;
  }

 private:
  explicit Xml(std::string_view document) : rest_(document) {}

  void require(bool holds, const std::string& what) const {
    if (!holds) throw std::runtime_error("no XML: " + what + " before: " + std::string(rest_.substr(0, 40)));
  }
  void take(std::string_view words) {
    require(rest_.starts_with(words), "no " + std::string(words));
    rest_.remove_prefix(words.size());
  }
  void blanks() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  std::string word() {
    std::string name;
    while (!rest_.empty() && (std::isalnum(static_cast<unsigned char>(rest_[0])) || rest_[0] == '-')) {
      name += rest_[0];
      rest_.remove_prefix(1);
    }
    require(!name.empty(), "no name");
    return name;
  }
  /// Characters up to `end`, with entities replaced.
  std::string characters(char end) {
    static const std::map<std::string, char> entities{{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}};
    std::string found;
    while (!rest_.empty() && rest_[0] != end) {
      require(rest_[0] != '<' && (static_cast<unsigned char>(rest_[0]) >= ' ' || rest_[0] == '\n'), "a bad character");
      if (rest_[0] == '&') {
        const std::string entity{rest_.substr(0, rest_.find(';') + 1)};
        require(entities.count(entity) == 1, "an unknown entity");
        found += entities.at(entity);
        rest_.remove_prefix(entity.size());
      } else {
        found += rest_[0];
        rest_.remove_prefix(1);
      }
    }
    return found;
  }
  Element element() {
    take("<");
    Element element{word()};
    for (;;) {
      blanks();
      if (rest_.starts_with("/>")) {
        take("/>");
        return element;
      }
      if (rest_.starts_with(">")) break;
      const std::string name = word();
      take("=\"");
      require(element.attributes.emplace(name, characters('"')).second, "an attribute twice");
      take("\"");
    }
    take(">");
    for (;;) {
      element.text += characters('<');
      if (rest_.starts_with("</")) break;
      element.children.push_back(this->element());
    }
    take("</" + element.name + ">");
    return element;
  }

  std::string_view rest_;
};

/// The elements of a name within a panel.
std::vector<Element> all(const Element& panel, const std::string& name) {
  std::vector<Element> found;
  for (const Element& child : panel.children)
    if (child.name == name) found.push_back(child);
  return found;
}
std::vector<Element> panels(const nn::History& history, nn::PlotSize size = {}) {
  return all(Xml::parse(nn::plot_history(history, size)), "g");
}
std::vector<std::string> labels(const Element& panel) {
  std::vector<std::string> found;
  for (const Element& label : all(panel, "text")) found.push_back(label.text);
  return found;
}
double number(const Element& element, const std::string& attribute) {
  return std::stod(element.attributes.at(attribute));
}
std::vector<std::pair<double, double>> points(const Element& line) {
  std::vector<std::pair<double, double>> found;
  const char* rest = line.attributes.at("points").c_str();
  for (char* end = nullptr; *rest != '\0'; rest = end + (*end == ' ' ? 1 : 0)) {
    const double x = std::strtod(rest, &end);
    REQUIRE(*end == ',');
    const double y = std::strtod(end + 1, &end);
    found.emplace_back(x, y);
  }
  return found;
}

nn::History history_of(const std::vector<std::pair<std::string, std::vector<double>>>& series) {
  nn::History history;
  for (std::size_t epoch = 0; epoch < series.front().second.size(); ++epoch) {
    nn::Logs logs;
    for (const auto& [name, values] : series)
      if (epoch < values.size()) logs.set(name, values[epoch]);
    history.on_epoch_end({.index = epoch, .epochs = 10}, logs);
  }
  return history;
}

using Labels = std::vector<std::string>;

}  // namespace

TEST_CASE("a panel for each metric, with its curve and the one of validation, axes, ticks and a legend") {
  const auto found = panels(history_of({{"loss", {4, 2, 1}},
                                        {"accuracy", {0.5, 0.75, 0.7}},
                                        {"val_loss", {5, 3, 3}},
                                        {"val_accuracy", {0.25, 0.5, 0.6}}}));
  REQUIRE(found.size() == 2);
  CHECK(labels(found[0]) == Labels{"1", "2", "3", "4", "5", "1", "2", "3", "epoch", "loss", "val_loss"});
  CHECK(labels(found[1]) ==
        Labels{"0.3", "0.4", "0.5", "0.6", "0.7", "1", "2", "3", "epoch", "accuracy", "val_accuracy"});
  for (const Element& panel : found) {
    CHECK(all(panel, "polyline").size() == 2);
    CHECK(all(panel, "circle").size() == 6);
    // A grid line for each tick of the values, a mark for each epoch, two axes, two lines of the legend.
    CHECK(all(panel, "line").size() == 5 + 3 + 2 + 2);
  }
}

TEST_CASE("points lie where ticks of their value lie") {
  const auto panel =
      panels(history_of({{"loss", {4, 2, 1}}, {"val_loss", {5, 3, 3}}}), {.width = 590, .panel_height = 270})[0];
  // 590 pixels without 70 on the left and 20 on the right, 270 without 30 above and 40 below, for values from 1 to 5.
  const auto curves = all(panel, "polyline");
  REQUIRE(curves.size() == 2);
  using Points = std::vector<std::pair<double, double>>;
  CHECK(points(curves[0]) == Points{{70, 80}, {320, 180}, {570, 230}});
  CHECK(points(curves[1]) == Points{{70, 30}, {320, 130}, {570, 130}});
  CHECK(curves[0].attributes.at("stroke") != curves[1].attributes.at("stroke"));
  const auto legend = all(panel, "line");
  CHECK(legend[legend.size() - 2].attributes.at("stroke") == curves[0].attributes.at("stroke"));
  CHECK(legend.back().attributes.at("stroke") == curves[1].attributes.at("stroke"));
  CHECK(number(all(panel, "line")[0], "y1") == 230);  // the tick at 1
  CHECK(number(all(panel, "line")[4], "y1") == 30);   // and at 5
}

TEST_CASE("epochs that had no value have no point, and values that are not finite leave a gap") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  nn::History history = history_of({{"loss", {1, nan, 3, 2, infinity}}});
  nn::Logs logs;
  logs.set("val_loss", 2);
  history.on_epoch_end({.index = 8, .epochs = 9}, logs);
  const auto panel = panels(history)[0];
  const auto curves = all(panel, "polyline");
  REQUIRE(curves.size() == 3);
  CHECK(points(curves[0]).size() == 1);
  CHECK(points(curves[1]).size() == 2);
  CHECK(points(curves[2])[0].first == 620);  // epoch 9, the last one
  CHECK(points(curves[1])[0].first == doctest::Approx(70 + 550 * 2 / 8.0).epsilon(1e-4));
}

TEST_CASE("one epoch, equal values, no finite value, and values of any size have axes, too") {
  for (const std::vector<double>& values : {std::vector<double>{3},
                                            {0},
                                            {-2, -2},
                                            {std::numeric_limits<double>::quiet_NaN()},
                                            {1e-300, 2e-300},
                                            {-1.7e308, 1.7e308},
                                            {1, 1 + 1e-15},
                                            std::vector<double>(2000, 0.5)}) {
    const auto panel = panels(history_of({{"loss", values}}))[0];
    const std::size_t ticks = labels(panel).size() - 2;
    CHECK(ticks >= 2);
    CHECK(ticks <= 40);
    for (const Element& line : all(panel, "line"))
      for (const char* attribute : {"x1", "y1", "x2", "y2"}) {
        CHECK(number(line, attribute) >= 0);
        CHECK(number(line, attribute) <= 640);
      }
  }
}

TEST_CASE("names are escaped") {
  const std::string name = "a<b>&\"c\"\x01\xFF";
  const auto panel = panels(history_of({{name, {1, 2}}}))[0];
  CHECK(labels(panel).back() == "a<b>&\"c\"\\x01\\xff");
}

TEST_CASE("a locale with commas changes nothing") {
  const auto history = history_of({{"loss", {0.25, 0.5, 0.75}}});
  const std::string before = nn::plot_history(history);
  const char* const old = std::setlocale(LC_NUMERIC, nullptr);
  const std::string kept = old == nullptr ? "C" : old;
  if (std::setlocale(LC_NUMERIC, "de_DE.UTF-8") != nullptr) CHECK(nn::plot_history(history) == before);
  std::setlocale(LC_NUMERIC, kept.c_str());
}

TEST_CASE("a file is written over, and one that cannot be is named") {
  const support::TemporaryFolder folder;
  const auto history = history_of({{"loss", {4, 2, 1}}});
  folder.write("plot.svg", std::string(100'000, 'x'));
  nn::plot_history(history, folder.path("plot.svg"));
  CHECK(folder.read("plot.svg") == nn::plot_history(history));
  CHECK_THROWS_WITH_AS(nn::plot_history(history, folder.path("nowhere/plot.svg")),
                       doctest::Contains("nowhere/plot.svg' cannot be written (No such file or directory)"),
                       dist::FileError);
  CHECK_THROWS_WITH_AS(nn::plot_history(history, "/dev/full"),
                       doctest::Contains("File '/dev/full' cannot be written (No space left on device). Make room"),
                       dist::FileError);
}

TEST_CASE("no epochs and no room are refused") {
  CHECK_THROWS_AS(static_cast<void>(nn::plot_history(nn::History{})), dist::InvalidArgument);
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::plot_history(history_of({{"loss", {1}}}), {.width = 100})),
                       doctest::Contains("100 x 240 pixels"), dist::InvalidArgument);
}
