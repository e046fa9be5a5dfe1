// Trains a network on rows of a CSV file to predict one of the columns.
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>

#include <dist/data.hpp>
#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/train.hpp>

#include "backend.hpp"
#include "check.hpp"

namespace {

namespace nn = dist::nn;
namespace data = dist::data;

constexpr std::size_t rows = 2000;

// [row]
/// A row of the file. Each member holds a column.
struct Car {
  float weight = 0;       // kg
  float power = 0;        // kW
  std::string fuel;       // "petrol", "diesel" or "electric"
  float consumption = 0;  // MJ per km, to be predicted
};

/// Scales the features to similar magnitudes.
auto to_example(const Car& car) {
  const bool petrol = car.fuel == "petrol", diesel = car.fuel == "diesel";
  dist::Tensor<float> x{{4}, {(car.weight - 1500) / 400, (car.power - 100) / 40, petrol ? 1.0F : 0, diesel ? 1.0F : 0}};
  return data::Example{x, car.consumption};
}
// [/row]

/// Writes a table of random cars, whose consumption follows a formula with 2 % noise.
void write_cars(const std::string& file) {
  std::FILE* const out = std::fopen(file.c_str(), "w");
  check(out != nullptr, "the file can be written");
  const dist::RandomStream random{/*seed=*/7};
  const char* const fuels[] = {"petrol", "diesel", "electric"};
  const double factors[] = {1, 0.8, 0.3};
  std::fputs("weight,power,fuel,consumption\n", out);
  for (std::size_t row = 0; row < rows; ++row) {
    const double weight = 900 + 1200 * random.uniform<double>(4 * row);
    const double power = 40 + 120 * random.uniform<double>(4 * row + 1);
    const std::size_t fuel = random.below(3, 4 * row + 2);
    const double noise = 1 + 0.02 * random.normal<double>(4 * row + 3);
    const double consumption = factors[fuel] * (0.6 + weight / 1000 + power / 200) * noise;
    std::fprintf(out, "%.0f,%.0f,%s,%.4f\n", weight, power, fuels[fuel], consumption);
  }
  std::fclose(out);
}

}  // namespace

int main() try {
  const std::string file = (std::filesystem::temp_directory_path() / "dist_example_27.csv").string();
  write_cars(file);

  // [fit]
  auto cars = data::csv(file, data::column("weight", &Car::weight), data::column("power", &Car::power),
                        data::column("fuel", &Car::fuel), data::column("consumption", &Car::consumption));
  auto train = cars | data::take(1600) | data::map(to_example) | data::cache() | data::shuffle(1600, /*seed=*/1) |
               data::batch(32);
  auto test = cars | data::skip(1600) | data::map(to_example) | data::batch(32);

  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  using Net = nn::Sequential<nn::Input<4>, nn::Dense<32, nn::Relu>, nn::Dense<1>>;
  nn::Network<Net, Backend> net{strategy, /*seed=*/1};
  nn::Model model{strategy, net, nn::Adam{.learning_rate = 1e-2F}, nn::MeanSquaredError{},
                  nn::MeanOf{nn::MeanAbsoluteError{}}};

  model.fit(train, {.epochs = 10, .validation = test, .verbose = 2}, nn::callbacks::EarlyStopping{{.patience = 3}});
  const nn::Logs logs = model.evaluate(test, {.verbose = 0});
  const dist::Tensor<float> predictions = model.predict(test, {.verbose = 0});  // [400, 1]
  std::printf("mean absolute error %.3f, first prediction %.3f\n", logs["mean_absolute_error"],
              static_cast<double>(predictions[0]));
  // [/fit]

  check(predictions.rows() == rows - 1600, "every row of the test part has a prediction");
  check(logs["mean_absolute_error"] < 0.1,
        "the network has learnt the formula; the mean of all cars has an error of 0.6");
  std::filesystem::remove(file);
} catch (const dist::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return dist::exit_code(error);
}
