// Written by keras_fixtures.py.
#pragma once

#include <string_view>
#include <utility>

namespace keras {

// Calls of hooks.
constexpr std::string_view fit_with_validation =
    "train_begin epoch_begin0 train_batch_begin0 train_batch_end0 train_batch_begin1 train_batch_end1 "
    "train_batch_begin2 train_batch_end2 test_begin test_batch_begin0 test_batch_end0 test_end epoch_end0 epoch_begin1 "
    "train_batch_begin0 train_batch_end0 train_batch_begin1 train_batch_end1 train_batch_begin2 train_batch_end2 "
    "test_begin test_batch_begin0 test_batch_end0 test_end epoch_end1 train_end";
constexpr std::string_view fit_that_stops =
    "train_begin epoch_begin0 train_batch_begin0 train_batch_end0 train_batch_begin1 train_batch_end1 epoch_end0 "
    "train_end";
constexpr std::string_view evaluate =
    "test_begin test_batch_begin0 test_batch_end0 test_batch_begin1 test_batch_end1 test_batch_begin2 test_batch_end2 "
    "test_end";
constexpr std::string_view predict =
    "predict_begin predict_batch_begin0 predict_batch_end0 predict_batch_begin1 predict_batch_end1 "
    "predict_batch_begin2 predict_batch_end2 predict_end";

// Logs. For a fit, the logs of the last epoch.
constexpr std::pair<std::string_view, double> fitted[] = {{"accuracy", 0.4166666666666667},
                                                          {"loss", 1.389718483618563},
                                                          {"sparse_categorical_crossentropy", 1.010704351722591},
                                                          {"val_accuracy", 0.5833333333333334},
                                                          {"val_loss", 1.22442501172321},
                                                          {"val_sparse_categorical_crossentropy", 0.979540009378568},
                                                          {"val_weighted_accuracy", 0.4666666666666667},
                                                          {"weighted_accuracy", 0.36363636363636365}};
constexpr std::pair<std::string_view, double> evaluated[] = {{"accuracy", 0.4166666666666667},
                                                             {"loss", 1.5189464481038588},
                                                             {"sparse_categorical_crossentropy", 1.2151571584830871},
                                                             {"weighted_accuracy", 0.36666666666666664}};
constexpr std::pair<std::string_view, double> trained_on_batch[] = {
    {"accuracy", 0.4166666666666667},
    {"loss", 1.5189464481038588},
    {"sparse_categorical_crossentropy", 1.2151571584830871},
    {"weighted_accuracy", 0.36666666666666664}};
constexpr std::pair<std::string_view, double> trained_by_class[] = {
    {"accuracy", 0.4166666666666667},
    {"loss", 1.7620603845791178},
    {"sparse_categorical_crossentropy", 1.2814984615120857},
    {"weighted_accuracy", 0.36363636363636365}};
constexpr std::pair<std::string_view, double> tested_on_batch[] = {
    {"accuracy", 0.4166666666666667},
    {"loss", 1.5189464481038588},
    {"sparse_categorical_crossentropy", 1.2151571584830871},
    {"weighted_accuracy", 0.36666666666666664}};

}  // namespace keras
