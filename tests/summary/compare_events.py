"""Compares the summaries in a folder of event files, written by tensorboard_test.cpp, with messages that the package
tensorboard makes from the same numbers. Prints the tag if they are equal, otherwise both messages."""
import glob
import sys

from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto import event_pb2
from tensorboard.plugins.histogram import summary_v2 as histogram
from tensorboard.plugins.hparams import api_pb2, plugin_data_pb2
from tensorboard.plugins.hparams import summary_v2 as hparams
from tensorboard.plugins.scalar import summary_v2 as scalar
from tensorboard.plugins.text import summary_v2 as text

SETTINGS = {"rate": 0.25, "flip": True, "optimizer": "adam"}
VARIED = [hparams.HParam("rate", hparams.RealInterval(0.125, 0.5)),
          hparams.HParam("optimizer", hparams.Discrete(["adam", "sgd"]))]
METRICS = [hparams.Metric("epoch_accuracy", group="validation"), hparams.Metric("epoch_loss")]


def content(value):
    return plugin_data_pb2.HParamsPluginData.FromString(value.metadata.plugin_data.content)


def reference(value, step):
    """Returns tensorboard's message for the tag of `value`, with our times and name of the trial."""
    if value.tag == "epoch_loss":
        return scalar.scalar_pb(value.tag, 2.0 ** (-step / 5))
    if value.tag == "weights":
        return histogram.histogram_pb(value.tag, [0, 0.5, 1, 1, 2, 4], buckets=4)
    if value.tag == "note":
        return text.text_pb(value.tag, "Größe")
    if value.tag == "_hparams_/experiment":
        return hparams.hparams_config_pb(VARIED, METRICS, content(value).experiment.time_created_secs)
    if value.tag == "_hparams_/session_start_info":
        start = content(value).session_start_info
        return hparams.hparams_pb(SETTINGS, start.group_name, start.start_time_secs)
    return None


def plain(value):
    """Returns the message with the plugin's content parsed, because its fields may be serialised in any order."""
    copy = type(value)()
    copy.CopyFrom(value)
    inner = None
    if value.metadata.plugin_data.plugin_name == "hparams":
        inner = content(value)
        copy.metadata.plugin_data.content = b""
    return copy, inner


(path,) = glob.glob(sys.argv[1] + "/*")
for record in RawEventFileLoader(path).Load():
    event = event_pb2.Event.FromString(record)
    for value in event.summary.value:
        expected = reference(value, event.step)
        if expected is not None:
            same = plain(value) == plain(expected.value[0])
            print(value.tag if same else f"ours: {plain(value)}\ntensorboard's: {plain(expected.value[0])}")
