"""Timing of a framework's training step: the median of a few windows with a fixed number of steps, once, or on each line of
standard input, so that another program can run contenders in turns."""
import json
import statistics
import sys
import time


def measure(step, units_per_step, description, serve, windows, seconds, **facts):
    """`step(count)` must run `count` steps and return when the results are available.

    Prints a JSON line that includes `facts`. With `serve`, prints {"ready": ...}, and then a line per line of input, until
    standard input ends."""
    step(1)  # warm-up: compilation and allocation
    start = time.perf_counter()
    step(1)
    few = 10 if time.perf_counter() - start < 0.1 else 1
    step(few)
    start = time.perf_counter()
    step(few)
    count = max(1, round(few * seconds / (time.perf_counter() - start)))

    def measured():
        rates = []
        for _ in range(windows):
            start = time.perf_counter()
            step(count)
            rates.append(count * units_per_step / (time.perf_counter() - start))
        return {"per_second": statistics.median(rates), "min": min(rates), "max": max(rates)}

    def say(values):
        print(json.dumps(values), flush=True)

    if not serve:
        say({"contender": description, "windows": windows, **facts, **measured()})
        return
    say({"ready": description})
    for _ in sys.stdin:
        say(measured())


def add_arguments(parser):
    parser.add_argument("--serve", action="store_true", help="measure once per line of standard input")
    parser.add_argument("--windows", type=int, default=4, help="number of windows (the median counts)")
    parser.add_argument("--seconds", type=float, default=0.25, help="seconds per window")
