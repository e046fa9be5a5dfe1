// Optimizers whose updates run on parameter servers, which store their slots. Lamb needs whole tensors.
#include <conformance/served.hpp>

#include <doctest/doctest.h>

#include <conformance/make_strategy.hpp>
#include <conformance/optimizer.hpp>
#include <conformance/tracked_training.hpp>

using conformance::Make;
using conformance::Served;

TEST_CASE_TEMPLATE_INSTANTIATE(optimizers, Make<Served<1>>);
TEST_CASE_TEMPLATE_INSTANTIATE(tracked_training, Make<Served<2>>);
