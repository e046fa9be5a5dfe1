/// Training by one call: Model with fit, evaluate and predict, its history, progress bar and callbacks. Include
/// <dist/nn.hpp> for its network.
#pragma once

#include <dist/core/config.hpp>  // first: checks the compiler

#include <dist/core/error.hpp>  // the errors that callers catch
#include <dist/nn.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/callbacks/csv_logger.hpp>
#include <dist/train/callbacks/early_stopping.hpp>
#include <dist/train/callbacks/lambda.hpp>
#include <dist/train/callbacks/learning_rate_scheduler.hpp>
#include <dist/train/callbacks/reduce_lr_on_plateau.hpp>
#include <dist/train/history.hpp>
#include <dist/train/logs.hpp>
#include <dist/train/model.hpp>
#include <dist/train/progress_bar.hpp>
