/// Training by one call: Model with fit and evaluate, its history and its progress bar. With <dist/nn.hpp>, to make
/// it of.
#pragma once

#include <dist/core/config.hpp>  // first: says what a compiler must be

#include <dist/core/error.hpp>  // what callers catch
#include <dist/nn.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/history.hpp>
#include <dist/train/logs.hpp>
#include <dist/train/model.hpp>
#include <dist/train/plot_history.hpp>
#include <dist/train/progress_bar.hpp>
