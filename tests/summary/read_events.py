"""Prints the values that the package tensorboard reads from a folder of event files, one per line."""
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto import graph_pb2
from tensorboard.plugins.hparams import metadata, plugin_data_pb2
from tensorboard.util import tensor_util

accumulator = EventAccumulator(sys.argv[1], size_guidance={"tensors": 0})
accumulator.Reload()
print("version", accumulator.file_version)
for tag in sorted(accumulator.Tags()["tensors"]):
    plugin = accumulator.SummaryMetadata(tag).plugin_data
    if plugin.plugin_name == metadata.PLUGIN_NAME:
        data = plugin_data_pb2.HParamsPluginData.FromString(plugin.content)
        which = data.WhichOneof("data")
        message = getattr(data, which)
        if which == "experiment":
            for info in message.hparam_infos:
                domain = ([v.string_value or v.number_value for v in info.domain_discrete.values]
                          or [info.domain_interval.min_value, info.domain_interval.max_value])
                print("experiment", info.name, info.type, *domain)
            for info in message.metric_infos:
                print("metric", info.name.group or "-", info.name.tag)
        elif which == "session_start_info":
            for name in sorted(message.hparams):
                value = message.hparams[name]
                print("session", name, getattr(value, value.WhichOneof("kind")))
            print("group", message.group_name, message.start_time_secs > 1.6e9)
        else:
            print("end", message.status)
        continue
    for event in accumulator.Tensors(tag):
        array = tensor_util.make_ndarray(event.tensor_proto)
        values = [v.hex() if isinstance(v, bytes) else float(v) for v in array.ravel()]
        print(plugin.plugin_name, tag, event.step, event.wall_time > 1.6e9, array.dtype, list(array.shape), *values)
if accumulator.Tags()["graph"]:
    graph = graph_pb2.GraphDef.FromString(accumulator.Graph().SerializeToString())
    for node in graph.node:
        print("node", node.name, node.op, *node.input)
