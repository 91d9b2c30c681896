"""Writers of safetensors and of classic NetCDF for the tests, which also write what is wrong."""
import json
import struct

import numpy as np

SAFETENSORS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U8": "|u1", "U16": "<u2",
               "U32": "<u4", "U64": "<u8", "BOOL": "|b1"}


def write_safetensors(path, tensors, metadata=None, spoil=lambda header: None):
    """tensors: name -> (type, shape, bytes). As the safetensors library writes them, but in the order given."""
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    spoil(header)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def tensor(name, x):
    return name, list(x.shape), x.tobytes()


CDF_TYPES = {"i1": 1, "S1": 2, "i2": 3, "i4": 4, "f4": 5, "f8": 6, "u1": 7, "u2": 8, "u4": 9, "i8": 10, "u8": 11}


class Cdf:
    """A writer of classic NetCDF, after the specification. Variables: name, dimensions, elements, attributes; the record dimension
    is number 0."""

    def __init__(self, version, dimensions, records=0):
        self.version, self.dimensions, self.records, self.variables = version, dimensions, records, []

    def number(self, n):
        return struct.pack(">q" if self.version == 5 else ">i", n)

    def add(self, name, dimensions, x, **attributes):
        self.variables.append((name, dimensions, x, attributes))

    def name_bytes(self, name):
        return self.number(len(name)) + self.pad(name.encode())

    @staticmethod
    def pad(data):
        return data + bytes(-len(data) % 4)

    def items(self, tag, items):
        return (struct.pack(">i", tag if items else 0) + self.number(len(items))) + b"".join(items)

    def attribute(self, name, value):
        if isinstance(value, str):
            return self.name_bytes(name) + struct.pack(">i", 2) + self.number(len(value)) + self.pad(value.encode())
        value = np.atleast_1d(value)
        big = value.astype(value.dtype.newbyteorder(">"))
        return self.name_bytes(name) + struct.pack(">i", CDF_TYPES[value.dtype.str[1:]]) + self.number(len(value)) + self.pad(big.tobytes())

    def header(self, begins, stated, count):
        dimensions = [self.name_bytes(name) + self.number(length) for name, length in self.dimensions]
        variables = [self.name_bytes(name) + self.number(len(ids)) + b"".join(map(self.number, ids))
                     + self.items(12, [self.attribute(*pair) for pair in attributes.items()]) + struct.pack(">i", CDF_TYPES[x.dtype.str[1:]])
                     + (self.number(stated) if self.version == 5 else struct.pack(">I", stated % 2 ** 32))
                     + struct.pack(">i" if self.version == 1 else ">q", begin)
                     for (name, ids, x, attributes), begin in zip(self.variables, begins)]
        return b"CDF" + bytes([self.version]) + count + self.items(10, dimensions) + self.items(12, [self.attribute("title", "a test")]) \
            + self.items(11, variables)

    def write(self, path, streaming=False, stated=12345, far=0):
        """streaming: the number of records is left to the file's size; stated: what vsize says; far: bytes before the data."""
        count = (b"\xff" * (8 if self.version == 5 else 4)) if streaming else self.number(self.records)
        at = len(self.header([0] * len(self.variables), stated, count)) + far
        fixed = [variable for variable in self.variables if 0 not in variable[1]]
        records = [variable for variable in self.variables if 0 in variable[1]]
        sizes = {name: x[0].nbytes if 0 in ids else x.nbytes for name, ids, x, _ in self.variables}
        begins = {}
        for name, *_ in fixed + records:
            begins[name] = at
            at += -(-sizes[name] // 4) * 4
        data = b"".join(self.pad(self.big(x)) for _, _, x, _ in fixed)
        pad = self.pad if len(records) != 1 else bytes
        data += b"".join(pad(self.big(x[i])) for i in range(self.records) for _, _, x, _ in records)
        with open(path, "wb") as file:
            file.write(self.header([begins[name] for name, *_ in self.variables], stated, count))
            file.seek(far, 1)
            file.write(data)

    @staticmethod
    def big(x):
        return np.ascontiguousarray(x).astype(x.dtype.newbyteorder(">")).tobytes()
