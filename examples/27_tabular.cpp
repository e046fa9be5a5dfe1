// Trains a network on rows of a CSV file to predict one of the columns. A second process, which this one starts,
// predicts the column from the other columns of another file.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <dist/checkpoint/checkpoint.hpp>
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
/// A row of the file. Each member holds a column, or several.
struct Car {
  std::array<float, 2> size{};  // weight in kg, power in kW
  std::string fuel;             // "petrol", "diesel" or "electric"
  float consumption = 0;        // MJ per km, to be predicted
};

/// The rows of a file.
auto cars_of(const std::string& file) {
  return data::csv(file, data::columns({"weight", "power"}, &Car::size), data::column("fuel", &Car::fuel),
                   data::column("consumption", &Car::consumption));
}

/// Makes the features of a car: scaled numbers, and a 1 at the place of its fuel. Place 0 is for other fuels.
struct Features {
  data::Normalization size;
  data::StringLookup fuel;

  void adapt(const auto& cars) {
    size.adapt(cars | data::map([](const Car& car) { return car.size; }));
    fuel.adapt(cars | data::map([](const Car& car) { return car.fuel; }));
  }
  void track(auto& visit) {
    visit("size", size);
    visit("fuel", fuel);
  }
  dist::Tensor<float> operator()(const Car& car) const {
    return data::features(size(car.size), data::one_hot<4>(fuel(car.fuel)));
  }
};

using Net = nn::Sequential<nn::Input<6>, nn::Dense<32, nn::Relu>, nn::Dense<1>>;
// [/row]

/// Writes a table of random cars, whose consumption follows a formula with 2 % noise.
void write_cars(const std::string& file, std::uint64_t seed, std::size_t count) {
  std::FILE* const out = std::fopen(file.c_str(), "w");
  check(out != nullptr, "the file can be written");
  const dist::RandomStream random{seed};
  const char* const fuels[] = {"petrol", "diesel", "electric"};
  const double factors[] = {1, 0.8, 0.3};
  std::fputs("weight,power,fuel,consumption\n", out);
  for (std::size_t row = 0; row < count; ++row) {
    const double weight = 900 + 1200 * random.uniform<double>(4 * row);
    const double power = 40 + 120 * random.uniform<double>(4 * row + 1);
    const std::size_t fuel = random.below(3, 4 * row + 2);
    const double noise = 1 + 0.02 * random.normal<double>(4 * row + 3);
    const double consumption = factors[fuel] * (0.6 + weight / 1000 + power / 200) * noise;
    std::fprintf(out, "%.0f,%.0f,%s,%.4f\n", weight, power, fuels[fuel], consumption);
  }
  std::fclose(out);
}

/// The other program. Prints a prediction for each row.
void predict(const std::string& folder, const std::string& file) {
  // [predict]
  dist::Default strategy;
  nn::Network<Net, Backend> net{strategy};
  Features features;
  dist::Checkpoint{strategy}.add("network", net).add("features", features).restore(folder);

  const auto cars = data::csv(file, data::columns({"weight", "power"}, &Car::size), data::column("fuel", &Car::fuel));
  nn::Model model{strategy, net, nn::SGD{}, nn::MeanSquaredError{}};
  const dist::Tensor<float> predictions =
      model.predict(cars | data::map([&](const Car& car) { return features(car); }) | data::batch(32), {.verbose = 0});
  // [/predict]
  for (const float prediction : predictions.elements()) std::printf("%.4f\n", static_cast<double>(prediction));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 3) return predict(argv[1], argv[2]), 0;
  const std::string folder = (std::filesystem::temp_directory_path() / "dist_example_27").string();
  std::filesystem::create_directories(folder);
  const std::string file = folder + "/cars.csv";
  write_cars(file, /*seed=*/7, rows);

  // [fit]
  const auto cars = cars_of(file);
  Features features;
  features.adapt(cars | data::take(1600));  // learns scales and words from the rows for training
  const auto to_example = [&](const Car& car) { return data::Example{features(car), car.consumption}; };
  auto train = cars | data::take(1600) | data::map(to_example) | data::cache() | data::shuffle(1600, /*seed=*/1) |
               data::batch(32);
  auto test = cars | data::skip(1600) | data::map(to_example) | data::batch(32);

  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  nn::Network<Net, Backend> net{strategy, /*seed=*/1};
  nn::Model model{strategy, net, nn::Adam{.learning_rate = 1e-2F}, nn::MeanSquaredError{},
                  nn::MeanOf{nn::MeanAbsoluteError{}}};

  model.fit(train, {.epochs = 10, .validation = test, .verbose = 2}, nn::callbacks::EarlyStopping{{.patience = 3}});
  const nn::Logs logs = model.evaluate(test, {.verbose = 0});
  std::printf("mean absolute error %.3f\n", logs["mean_absolute_error"]);
  dist::Checkpoint{strategy}.add("network", net).add("features", features).save(folder + "/model");
  // [/fit]
  check(logs["mean_absolute_error"] < 0.1,
        "the network has learnt the formula; the mean of all cars has an error of 0.6");

  const std::string new_cars = folder + "/new.csv", output = folder + "/predictions.txt";
  write_cars(new_cars, /*seed=*/8, 100);
  const std::string command = std::string{argv[0]} + " " + folder + "/model " + new_cars + " > " + output;
  check(std::system(command.c_str()) == 0, "the other program predicts");
  std::FILE* const predictions = std::fopen(output.c_str(), "r");
  check(predictions != nullptr, "the other program has an output");
  double error = 0, prediction = 0;
  std::size_t count = 0;
  auto new_rows = cars_of(new_cars);
  for (const Car& car : new_rows) {
    check(std::fscanf(predictions, "%lf", &prediction) == 1, "each row has a prediction");
    error += std::fabs(prediction - static_cast<double>(car.consumption)) / 100;
    ++count;
  }
  std::fclose(predictions);
  std::printf("%zu new cars, mean absolute error %.3f\n", count, error);
  check(count == 100 && error < 0.1, "the predictions of the other program are as good");
  std::filesystem::remove_all(folder);
} catch (const dist::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return dist::exit_code(error);
}
