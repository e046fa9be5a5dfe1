#include <dist/strategy/one_device.hpp>

#include <stdexcept>
#include <thread>

#include <dist/device/cpu.hpp>

#include <doctest/doctest.h>
#include <conformance/strategy.hpp>

using OneCpu = dist::OneDevice<dist::Cpu>;

TEST_CASE_TEMPLATE_INSTANTIATE(strategies, conformance::Make<OneCpu>);

TEST_CASE("OneDevice runs in the calling thread, on its device (spec A20)") {
  OneCpu strategy;
  CHECK(strategy.run([](auto&) { return std::this_thread::get_id(); }) == std::this_thread::get_id());
  CHECK_THROWS_AS(strategy.run([](auto&) { throw std::out_of_range("row 9"); }), std::out_of_range);
  CHECK(strategy.describe() == "OneDevice<Cpu>: 1 replica on /cpu:0");
}
