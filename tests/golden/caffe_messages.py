# SPDX-License-Identifier: Apache-2.0
"""Caffe's Datum and Caffe2's TensorProtos, defined from the field numbers of caffe.proto and
caffe2.proto, for the scripts that make and check LMDB files with Google's protobuf."""
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FIELD = descriptor_pb2.FieldDescriptorProto
ONE, MANY = FIELD.LABEL_OPTIONAL, FIELD.LABEL_REPEATED


def _message(file, name, fields):
    message = file.message_type.add(name=name)
    for field, number, kind, label in fields:
        row = message.field.add(name=field, number=number, label=label)
        if isinstance(kind, str):
            row.type, row.type_name = FIELD.TYPE_MESSAGE, kind
        else:
            row.type = kind
        row.options.packed = label == MANY and field in ("float_data", "int32_data")
        if not row.options.packed:
            row.ClearField("options")


def _classes():
    file = descriptor_pb2.FileDescriptorProto(name="images.proto", package="images", syntax="proto2")
    _message(file, "Datum", [
        ("channels", 1, FIELD.TYPE_INT32, ONE), ("height", 2, FIELD.TYPE_INT32, ONE),
        ("width", 3, FIELD.TYPE_INT32, ONE), ("data", 4, FIELD.TYPE_BYTES, ONE),
        ("label", 5, FIELD.TYPE_INT32, ONE), ("float_data", 6, FIELD.TYPE_FLOAT, MANY),
        ("encoded", 7, FIELD.TYPE_BOOL, ONE)])
    _message(file, "TensorProto", [
        ("dims", 1, FIELD.TYPE_INT64, MANY), ("data_type", 2, FIELD.TYPE_INT32, ONE),
        ("float_data", 3, FIELD.TYPE_FLOAT, MANY), ("int32_data", 4, FIELD.TYPE_INT32, MANY),
        ("byte_data", 5, FIELD.TYPE_BYTES, ONE), ("string_data", 6, FIELD.TYPE_BYTES, MANY),
        ("name", 7, FIELD.TYPE_STRING, ONE)])
    _message(file, "TensorProtos", [("protos", 1, ".images.TensorProto", MANY)])
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return [message_factory.GetMessageClass(pool.FindMessageTypeByName("images." + name))
            for name in ("Datum", "TensorProtos")]


Datum, TensorProtos = _classes()
FLOAT, INT32, BYTE, STRING = 1, 2, 3, 4
