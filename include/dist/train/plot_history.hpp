#pragma once

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/standard_descriptors.hpp>
#include <dist/io/writable_file.hpp>  // what errors suggest
#include <dist/train/history.hpp>

namespace dist::nn {

/// The size of a plot in pixels.
struct PlotSize {
  std::size_t width = 640;
  std::size_t panel_height = 240;  ///< of the panel of each metric, one below the other
};

namespace detail {

/// Text as XML has it.
[[nodiscard]] inline std::string xml_text(std::string_view words) {
  std::string escaped;
  for (const char byte : printable(words, 200)) switch (byte) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += byte;
    }
  return escaped;
}

/// A number with a point, whatever the locale: to so many decimal places, or to six digits.
[[nodiscard]] inline std::string decimal(double number, int places) {
  char digits[400];
  return std::string(digits,
                     std::to_chars(digits, digits + sizeof digits, number, std::chars_format::fixed, places).ptr);
}
[[nodiscard]] inline std::string label(double number) {
  char digits[32];
  return std::string(digits, std::to_chars(digits, digits + sizeof digits, number, std::chars_format::general, 6).ptr);
}

/// An axis from `least` to `greatest`, whose ticks are multiples of `step`.
class PlotAxis {
 public:
  /// `start` and `length` are in pixels; a negative length goes up. At most about `ticks` ticks, at whole numbers if
  /// `whole`.
  PlotAxis(double least, double greatest, double start, double length, double ticks, bool whole)
      : least_(least), greatest_(greatest), start_(start), length_(length) {
    if (least_ == greatest_) {  // nothing to scale: a range around it
      const double around = whole || least_ == 0 ? 1 : std::abs(least_) / 10;
      least_ -= around;
      greatest_ += around;
    }
    const double least_step = greatest_ / ticks - least_ / ticks;
    step_ = std::pow(10, std::floor(std::log10(least_step)));
    if (step_ * 2 >= least_step)
      step_ *= step_ >= least_step ? 1 : 2;
    else
      step_ *= step_ * 5 >= least_step ? 5 : 10;
    if (whole) step_ = std::max(step_, 1.0);
  }

  /// Differences are halved, so that none overflows.
  [[nodiscard]] double place(double value) const {
    return start_ + length_ * ((value / 2 - least_ / 2) / (greatest_ / 2 - least_ / 2));
  }
  [[nodiscard]] std::vector<double> ticks() const {
    std::vector<double> all;
    const double last = std::floor(greatest_ / step_ + 1e-9);
    for (double i = std::ceil(least_ / step_ - 1e-9); i <= last && all.size() < 100; ++i) all.push_back(i * step_);
    return all;
  }

 private:
  double least_;
  double greatest_;
  double start_;
  double length_;
  double step_;
};

/// The curves of one metric: its own, and the one of validation.
using Curves = std::vector<const History::Series*>;

/// The metrics in the order of the logs, each with the curve of its name behind "val_", if there is one.
[[nodiscard]] inline std::vector<Curves> panels_of(const History& history) {
  constexpr std::string_view validation = "val_";
  const auto metric_of = [&](const History::Series& series) {
    const std::string_view name = series.name;
    return name.starts_with(validation) ? name.substr(validation.size()) : name;
  };
  std::vector<Curves> panels;
  for (const History::Series& series : history.series()) {
    auto panel = std::find_if(panels.begin(), panels.end(),
                              [&](const Curves& curves) { return metric_of(*curves.front()) == metric_of(series); });
    if (panel == panels.end()) panel = panels.emplace(panel);
    panel->push_back(&series);
  }
  return panels;
}

/// Appends an SVG element of text.
inline void add_label(std::string& svg, double x, double y, std::string_view anchor, std::string_view words) {
  svg += text("<text x=\"", decimal(x, 2), "\" y=\"", decimal(y, 2), "\" text-anchor=\"", anchor, "\">",
              xml_text(words), "</text>\n");
}
/// Appends a straight line.
inline void add_line(std::string& svg, double x_0, double y_0, double x_1, double y_1, std::string_view colour) {
  svg += text("<line x1=\"", decimal(x_0, 2), "\" y1=\"", decimal(y_0, 2), "\" x2=\"", decimal(x_1, 2), "\" y2=\"",
              decimal(y_1, 2), "\" stroke=\"", colour, "\"/>\n");
}

/// Appends a curve: a line through the values that are finite, broken at others, and a dot for each value where they are
/// few.
inline void add_curve(std::string& svg, const History::Series& series, const PlotAxis& epochs, const PlotAxis& values,
                      std::string_view colour) {
  constexpr std::size_t few = 50;
  std::string points;
  std::string dots;
  const auto end_line = [&] {
    if (!points.empty())
      svg += text("<polyline points=\"", points, "\" fill=\"none\" stroke=\"", colour, "\" stroke-width=\"1.5\"/>\n");
    points.clear();
  };
  for (std::size_t i = 0; i < series.values.size(); ++i) {
    if (!std::isfinite(series.values[i])) {
      end_line();
      continue;
    }
    const std::string x = decimal(epochs.place(static_cast<double>(series.epochs[i] + 1)), 2);
    const std::string y = decimal(values.place(series.values[i]), 2);
    points += text(points.empty() ? "" : " ", x, ",", y);
    if (series.values.size() <= few)
      dots += text("<circle cx=\"", x, "\" cy=\"", y, "\" r=\"2.5\" fill=\"", colour, "\"/>\n");
  }
  end_line();
  svg += dots;
}

/// Appends the panel of one metric, which begins `top` pixels from the top.
inline void add_panel(std::string& svg, const Curves& curves, const PlotSize& size, double top) {
  constexpr double left = 70;
  constexpr double right = 20;
  constexpr double above = 30;
  constexpr double below = 40;
  constexpr std::string_view ink = "#333333";
  constexpr std::string_view grid = "#dddddd";
  constexpr std::string_view colours[] = {"#1f77b4", "#ff7f0e"};

  double least = std::numeric_limits<double>::infinity();
  double greatest = -least;
  double first = std::numeric_limits<double>::infinity();
  double last = 0;
  for (const History::Series* const series : curves) {
    for (const double value : series->values)
      if (std::isfinite(value)) {
        least = std::min(least, value);
        greatest = std::max(greatest, value);
      }
    for (const std::size_t epoch : series->epochs) {
      first = std::min(first, static_cast<double>(epoch + 1));
      last = std::max(last, static_cast<double>(epoch + 1));
    }
  }
  if (least > greatest) least = greatest = 0;  // no value is finite

  const double width = static_cast<double>(size.width) - left - right;
  const double height = static_cast<double>(size.panel_height) - above - below;
  const double bottom = top + above + height;
  const PlotAxis epochs{first, last, left, width, 10, true};
  const PlotAxis values{least, greatest, bottom, -height, 7, false};
  svg += "<g>\n";
  for (const double tick : values.ticks()) {
    add_line(svg, left, values.place(tick), left + width, values.place(tick), grid);
    add_label(svg, left - 6, values.place(tick) + 4, "end", label(tick));
  }
  for (const double tick : epochs.ticks()) {
    add_line(svg, epochs.place(tick), bottom, epochs.place(tick), bottom + 4, ink);
    add_label(svg, epochs.place(tick), bottom + 18, "middle", label(tick));
  }
  add_line(svg, left, bottom, left + width, bottom, ink);
  add_line(svg, left, bottom, left, bottom - height, ink);
  add_label(svg, left + width / 2, bottom + 34, "middle", "epoch");
  double x = left + 10;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const std::string_view colour = colours[curves[i]->name.starts_with("val_") ? 1 : 0];
    add_curve(svg, *curves[i], epochs, values, colour);
    add_line(svg, x, top + 15, x + 20, top + 15, colour);  // the legend, above the panel
    add_label(svg, x + 26, top + 19, "start", curves[i]->name);
    x += width / 2;
  }
  svg += "</g>\n";
}

}  // namespace detail

/// The history as a picture, a file of SVG: a panel for each metric, with the curve of validation beside its own. Epochs
/// are counted from 1, as the progress bar counts them; a value that is not finite leaves a gap. Throws InvalidArgument for
/// a history without values, and for a size that has no room.
[[nodiscard]] inline std::string plot_history(const History& history, PlotSize size = {}) {
  if (history.series().empty())
    throw InvalidArgument("There is nothing to plot", "the history has no epoch", "Plot what fit returns");
  if (size.width < 200 || size.panel_height < 120)
    throw InvalidArgument("A plot has no room", text(size.width, " x ", size.panel_height, " pixels for a panel"),
                          "Use 200 x 120 or more");
  const std::vector<detail::Curves> panels = detail::panels_of(history);
  const std::size_t height = panels.size() * size.panel_height;
  std::string svg = text("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", size.width, "\" height=\"", height,
                         "\" viewBox=\"0 0 ", size.width, " ", height,
                         "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
                         "fill=\"white\"/>\n");
  for (std::size_t i = 0; i < panels.size(); ++i)
    detail::add_panel(svg, panels[i], size, static_cast<double>(i * size.panel_height));
  return svg += "</svg>\n";
}

/// Writes the picture to a file, over what was there. Throws FileError when the system refuses.
inline void plot_history(const History& history, const std::string& path, PlotSize size = {}) {
  const std::string svg = plot_history(history, size);
  const auto fail = [&] {
    throw FileError(path, "cannot be written", std::strerror(errno), io::detail::writing_suggestion(errno));
  };
  fill_standard_descriptors();
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) fail();
  const bool is_written = std::fwrite(svg.data(), 1, svg.size(), file) == svg.size();
  const int error = errno;
  if (std::fclose(file) != 0) fail();
  errno = error;
  if (!is_written) fail();
}

}  // namespace dist::nn
