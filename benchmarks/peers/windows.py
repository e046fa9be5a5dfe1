"""How a framework's training step is timed: the median of a few windows of a fixed number of steps, once, or whenever a
line comes on standard input, so that another program can let contenders take turns."""
import json
import statistics
import sys
import time


def measure(step, images_per_step, description, serve, windows, seconds, **facts):
    """`step(count)` runs that many steps and returns when their results are there.

    Prints a line of JSON, with `facts` in it; or, to serve, the line {"ready": ...}, and then one per line read, until
    standard input ends."""
    step(10)  # compiles what is compiled, allocates what is kept
    start = time.perf_counter()
    step(10)
    count = max(1, round(10 * seconds / (time.perf_counter() - start)))

    def measured():
        rates = []
        for _ in range(windows):
            start = time.perf_counter()
            step(count)
            rates.append(count * images_per_step / (time.perf_counter() - start))
        return {"images_per_second": statistics.median(rates), "min": min(rates), "max": max(rates)}

    def say(values):
        print(json.dumps(values), flush=True)

    if not serve:
        say({"contender": description, "windows": windows, **facts, **measured()})
        return
    say({"ready": description})
    for _ in sys.stdin:
        say(measured())


def add_arguments(parser):
    parser.add_argument("--serve", action="store_true", help="measure whenever a line comes on standard input")
    parser.add_argument("--windows", type=int, default=4, help="how many, of which the median counts")
    parser.add_argument("--seconds", type=float, default=0.25, help="the length of a window")
