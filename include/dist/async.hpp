/// Networks, optimizers and metrics on parameter servers, which workers train without waiting for each other. With
/// <dist/parameter_server.hpp> and <dist/nn.hpp>, to make them of.
#pragma once

#include <dist/core/config.hpp>  // first: says what a compiler must be

#include <dist/async/server_metric.hpp>
#include <dist/async/server_network.hpp>
#include <dist/async/server_optimizer.hpp>
#include <dist/async/worker_network.hpp>
#include <dist/nn.hpp>
#include <dist/parameter_server.hpp>
