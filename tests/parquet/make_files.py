"""Writes the small Parquet files in tests/parquet/files, whose values are functions of column and row, and
the smaller ones in tests/fuzz/corpus/parquet, with which the fuzz target starts.

  python3 tests/parquet/make_files.py      needs pyarrow, polars, duckdb and fastparquet

tests/parquet/test_reader.c contains the same formulas. Some files come from the usual writers, with settings
that use each encoding. The other files are built byte by byte below, because no writer produces them: old
forms, unusual but valid forms, invalid files that must be rejected, and false sizes.
"""
import gzip
import os
import shutil
import struct
import zlib

import duckdb
import fastparquet
import polars
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 300
HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "files")
SEEDS = os.path.join(HERE, "..", "fuzz", "corpus", "parquet")


def path(name):
    return os.path.join(FOLDER, name + ".parquet")


# ---------------------------------------------------------------------------------------- formulas

def mixed(i):
    return i * 7919 % 1009


def is_null(i):
    return i % 7 in (3, 4)


FORMULAS = {
    "flag": (pa.bool_(), lambda i: mixed(i) % 3 == 0),
    "i32": (pa.int32(), lambda i: mixed(i) - 500),
    "u32": (pa.uint32(), lambda i: 4000000000 + mixed(i)),
    "i64": (pa.int64(), lambda i: (mixed(i) - 500) * 10 ** 12),
    "step": (pa.int64(), lambda i: i % 110),
    "f32": (pa.float32(), lambda i: (mixed(i) - 500) / 8),
    "f64": (pa.float64(), lambda i: (mixed(i) - 500) / 16),
    "few": (pa.float64(), lambda i: i % 5 / 4),
    "text": (pa.string(), lambda i: "id-%d" % (mixed(i) % 23)),
    "track": (pa.string(), lambda i: str(138000 + i // 40)),
    "raw": (pa.binary(4), lambda i: bytes([mixed(i) & 255, mixed(i) >> 8, 0, 255])),
    "list": (pa.list_(pa.float64()), lambda i: [i + j / 4 for j in range(i % 4)]),
}
for name in ("flag", "i32", "f64", "text"):
    kind, make = FORMULAS[name]
    FORMULAS[name + "_null"] = (kind, lambda i, make=make: None if is_null(i) else make(i))


def table(names, rows=ROWS):
    return pa.table({n: pa.array([FORMULAS[n][1](i) for i in range(rows)], FORMULAS[n][0])
                     for n in names})


ALL = list(FORMULAS)
FLAT = [n for n in ALL if n != "list"]
FULL = [n for n in FLAT if not n.endswith("_null")]


def required(t):
    return t.cast(pa.schema([f.with_nullable(False) for f in t.schema]))


def write(name, t, **settings):
    pq.write_table(t, path(name), store_schema=False, **settings)


def by_writers():
    write("arrow_default", table(ALL))
    write("arrow_v1_plain", table(ALL), compression="none", use_dictionary=False)
    write("arrow_v2_zstd", table(ALL), compression="zstd", data_page_version="2.0")
    write("arrow_format1", table(FLAT), version="1.0", compression="gzip")
    deltas = {**{n: "DELTA_BINARY_PACKED" for n in ("i32", "u32", "i64", "step", "i32_null")},
              **{n: "BYTE_STREAM_SPLIT" for n in ("f32", "f64", "few", "f64_null")},
              **{n: "DELTA_BYTE_ARRAY" for n in ("text", "track", "raw")},
              "text_null": "DELTA_LENGTH_BYTE_ARRAY", "flag": "RLE", "flag_null": "RLE"}
    write("arrow_deltas_v2", table(FLAT), use_dictionary=False, column_encoding=deltas,
          data_page_version="2.0", compression="gzip")
    splits = {**{n: "BYTE_STREAM_SPLIT" for n in ("i32", "u32", "i64", "f32", "f64", "raw",
                                                  "i32_null", "f64_null")},
              "step": "DELTA_BINARY_PACKED", "text": "DELTA_LENGTH_BYTE_ARRAY",
              "text_null": "DELTA_BYTE_ARRAY"}
    write("arrow_splits_v1", table(FLAT), use_dictionary=False, column_encoding=splits)
    write("arrow_fallback", table(ALL), dictionary_pagesize_limit=200, data_page_size=300,
          write_batch_size=16, row_group_size=170, write_page_checksum=True)
    write("arrow_required", required(table([n for n in FULL] + ["list"])))
    write("arrow_empty", table(ALL, 0))
    write("arrow_one_row", table(FULL + ["list"], 1))
    write("arrow_items", table(["list"]), use_compliant_nested_type=False, data_page_size=200,
          write_batch_size=8, data_page_version="2.0")
    exact = table(["list"]).cast(pa.schema([pa.field("list", pa.list_(
        pa.field("value", pa.float64(), nullable=False)), nullable=False)]))
    write("arrow_exact_lists", exact, use_compliant_nested_type=False, compression="zstd")
    coded = table(["text", "track"])
    write("arrow_categories", pa.table({n: coded[n].dictionary_encode()
                                        for n in coded.column_names}), row_group_size=100)
    some = polars.from_arrow(table([n for n in ALL if n != "raw"]))
    some.write_parquet(path("polars_default"))
    some.write_parquet(path("polars_small"), compression="snappy", row_group_size=120,
                       data_page_size=400)
    made = table(ALL)                                   # the statements below use this name
    connection = duckdb.connect()
    connection.register("made", made)
    connection.execute(f"COPY made TO '{path('duckdb_default')}' (FORMAT parquet)")
    connection.execute(f"COPY made TO '{path('duckdb_v2')}' (FORMAT parquet, COMPRESSION zstd, "
                       "PARQUET_VERSION V2)")
    frame = table([n for n in FLAT if n not in ("raw", "flag_null", "i32_null")]).to_pandas()
    fastparquet.write(path("fastparquet_default"), frame)


# --------------------------------------------------------------------------------- hand-made bytes

def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def zigzag(n):
    return varint(n << 1 if n >= 0 else (-n << 1) - 1)


class Struct(dict):
    """A Thrift struct: {field number: value}. An int is an i32, ("i64", n) an i64."""

    def pack(self):
        out, last = b"", 0
        for number, value in sorted(self.items()):
            kind, data = pack(value)
            out += bytes([number - last << 4 | kind]) + data
            last = number
        return out + b"\0"


def pack(value):
    if isinstance(value, bool):
        return (1 if value else 2), b""
    if isinstance(value, int):
        return 5, zigzag(value)
    if isinstance(value, tuple):
        return 6, zigzag(value[1])
    if isinstance(value, (str, bytes)):
        data = value.encode() if isinstance(value, str) else value
        return 8, varint(len(data)) + data
    if isinstance(value, Struct):
        return 12, value.pack()
    kind = pack(value[0])[0] if value else 12           # a list
    head = bytes([len(value) << 4 | kind]) if len(value) < 15 else \
        bytes([240 | kind]) + varint(len(value))
    return 9, head + b"".join(pack(v)[1] for v in value)


BOOLEAN, INT32, INT64, FLOAT, DOUBLE, BYTES = 0, 1, 2, 4, 5, 6
PLAIN, RLE, BIT_PACKED, RLE_DICTIONARY = 0, 3, 4, 8
NONE, SNAPPY, GZIP, LZO, ZSTD = 0, 1, 2, 3, 6


def page(body, count, encoding=PLAIN, unpacked=None, levels=RLE, kind=0):
    """Returns a data page v1 whose body is already packed, or a dictionary or other page."""
    unpacked = len(body) if unpacked is None else unpacked
    described = {0: {5: Struct({1: count, 2: encoding, 3: levels, 4: levels})},
                 2: {7: Struct({1: count, 2: encoding})}}.get(kind, {})
    return Struct({1: kind, 2: unpacked, 3: len(body), **described}).pack() + body


def page_v2(values, count, nulls, rows, encoding, defs=b"", reps=b"", packed=None):
    body = reps + defs + (values if packed is None else packed)
    header = Struct({1: count, 2: nulls, 3: rows, 4: encoding, 5: len(defs), 6: len(reps),
                     7: packed is not None})
    return Struct({1: 3, 2: len(reps) + len(defs) + len(values), 3: len(body),
                   8: header}).pack() + body


def leaf(name, kind, repetition=0, **more):
    fields = {1: kind, 3: repetition, 4: name}
    if "note" in more:                                  # 0 UTF8, 5 DECIMAL, 14 UINT_64
        fields[6] = more["note"]
    if "scale" in more:
        fields[7] = more["scale"]
    return [Struct(fields)]


def group(name, children, repetition=1, is_list=True):
    fields = {3: repetition, 4: name, 5: len(children)}
    if is_list:
        fields[6] = 3
    return [Struct(fields)] + [e for c in children for e in c]


class Column:
    def __init__(self, schema, kind, pages, values, codec=NONE, size=None, **more):
        self.schema, self.kind, self.pages, self.values = schema, kind, pages, values
        self.codec, self.size, self.more = codec, size, more


def craft(name, columns, rows, footer_rows=None, more_chunks=0):
    out = b"PAR1"
    chunks = []
    for c in columns:
        offset = len(out)
        out += b"".join(c.pages)
        data = {1: c.kind, 2: [PLAIN], 3: [c.schema[0][4]], 4: c.codec, 5: ("i64", c.values),
                6: ("i64", 0), 7: ("i64", len(out) - offset if c.size is None else c.size),
                9: ("i64", offset)}
        if "dictionary_offset" in c.more:
            data[11] = ("i64", c.more["dictionary_offset"])
        chunk = {2: ("i64", 0), 3: Struct(data)}
        if c.more.get("file"):
            chunk[1] = c.more["file"]
        if c.more.get("encrypted"):
            chunk[8] = Struct({1: Struct({})})
        chunks += [Struct(chunk)] * (1 + more_chunks)
    schema = [Struct({4: "schema", 5: len(columns)})] + [e for c in columns for e in c.schema]
    footer_rows = rows if footer_rows is None else footer_rows
    footer = Struct({1: 1, 2: schema, 3: ("i64", footer_rows),
                     4: [Struct({1: chunks, 2: ("i64", 0), 3: ("i64", rows)})],
                     5: [Struct({1: "made by", 2: "hand"})], 6: "bytes by hand"}).pack()
    with open(path(name), "wb") as f:
        f.write(out + footer + struct.pack("<I", len(footer)) + b"PAR1")


def doubles(name, begin, end):
    return b"".join(struct.pack("<d", FORMULAS[name][1](i)) for i in range(begin, end))


def strings(name, begin, end):
    values = [FORMULAS[name][1](i).encode() for i in range(begin, end)]
    return b"".join(struct.pack("<I", len(v)) + v for v in values)


def sized(data):
    return struct.pack("<I", len(data)) + data


def bits(values, width):
    """Packs bits, lowest bit first, padded to complete bytes."""
    number = sum(v << i * width for i, v in enumerate(values))
    return number.to_bytes((len(values) * width + 7) // 8, "little")


def packed_run(values, width, padded=True):
    groups = (len(values) + 7) // 8
    return varint(groups << 1 | 1) + bits(values + [0] * (-len(values) % 8 if padded else 0), width)


def deltas(count, first, step):
    """Encodes first, first + step, ... with DELTA_BINARY_PACKED."""
    return varint(128) + varint(4) + varint(count) + zigzag(first) + zigzag(step) + bytes(4)


def by_hand():
    # A page of two gzip members, then a page with a zlib header. The level encoding is BIT_PACKED
    # although there are no levels.
    first = doubles("f64", 0, 60)
    members = gzip.compress(first[:100], mtime=0) + gzip.compress(first[100:], mtime=0)
    second = doubles("f64", 60, 100)
    craft("hand_gzip", [Column(leaf("f64", DOUBLE), DOUBLE, [
        page(members, 60, unpacked=len(first), levels=BIT_PACKED),
        page(zlib.compress(second), 40, unpacked=len(second), levels=BIT_PACKED)],
        100, GZIP)], 100)

    # Data pages v2: not packed although the column is packed, only nulls, only levels.
    there = [0 if is_null(i) else 1 for i in range(100)]
    values = b"".join(struct.pack("<d", FORMULAS["f64"][1](i)) for i in range(100) if there[i])
    craft("hand_v2", [
        Column(leaf("f64_null", DOUBLE, 1), DOUBLE,
               [page_v2(values, 100, 100 - sum(there), 100, PLAIN, packed_run(there, 1))], 100,
               SNAPPY),
        Column(leaf("f64", DOUBLE), DOUBLE, [page_v2(doubles("f64", 0, 100), 100, 0, 100, PLAIN)],
               100, ZSTD),
        Column(leaf("nothing", DOUBLE, 1), DOUBLE,
               [page_v2(b"", 100, 100, 100, PLAIN, varint(200) + b"\0", packed=b"")], 100,
               SNAPPY)], 100)

    # A dictionary that is missing in the footer or has offset 0, index pages and empty pages
    # between data pages, truncated packed indices, and a plain page at the end.
    words = b"".join(sized(b"id-%d" % n) for n in range(23))
    indices = [mixed(i) % 23 for i in range(100)]
    craft("hand_dictionary", [Column(leaf("text", BYTES, note=0), BYTES, [
        page(words, 23, kind=2),
        page(bytes(9), 0, kind=1),
        page(b"\5" + packed_run(indices[:50], 5, padded=False), 50, RLE_DICTIONARY),
        page(b"", 0, RLE_DICTIONARY),
        page(b"\5" + packed_run(indices[50:66], 5) + varint(2) + bytes([indices[66]]) +
             packed_run(indices[67:75], 5) + varint(1), 25, RLE_DICTIONARY),
        page(strings("text", 75, 100), 25)], 100, dictionary_offset=0)], 100)

    # Lists with the older two levels, repeated without a group, and with unusual names. One list
    # continues in the next page.
    rows = [FORMULAS["list"][1](i) for i in range(40)]
    flat = b"".join(struct.pack("<d", v) for row in rows for v in row)
    reps, defs = [], []
    for row in rows:
        reps += [0] + [1] * (len(row) - 1) if row else [0]
        defs += [1] * len(row) if row else [0]
    cut = 33                                            # inside the three-element list of row 23
    assert reps[cut] == 1
    before = 8 * sum(defs[:cut])

    def list_pages(add):
        """Adds one definition level for each enclosing optional group."""
        width = 2 if add else 1
        return [page(sized(packed_run(reps[a:b], 1)) +
                     sized(packed_run([d + add for d in defs[a:b]], width)) + data, b - a)
                for a, b, data in ((0, cut, flat[:before]), (cut, len(reps), flat[before:]))]
    for name, schema, add in (
            ("two_levels", group("list", [leaf("array", DOUBLE, 2)]), 1),
            ("repeated", leaf("list", DOUBLE, 2), 0),
            ("odd_names", group("list", [group("bag", [leaf("array_element", DOUBLE)], 2,
                                               False)], 1), 1)):
        craft("hand_list_" + name, [Column(schema, DOUBLE, list_pages(add), len(reps))], len(rows))

    # All kinds of columns that fail only when they are read, next to a valid column.
    plain = doubles("f64", 0, 8)
    ones = sized(varint(16) + b"\1")
    craft("hand_refused", [
        Column(leaf("lzo", DOUBLE), DOUBLE, [page(plain, 8)], 8, LZO),
        Column(leaf("codec_99", DOUBLE), DOUBLE, [page(plain, 8)], 8, 99),
        Column(leaf("encoding_77", DOUBLE), DOUBLE, [page(plain, 8, 77)], 8),
        Column(leaf("delta_double", DOUBLE), DOUBLE, [page(plain, 8, 5)], 8),
        Column(leaf("packed_levels", DOUBLE, 1), DOUBLE,
               [page(ones + plain, 8, levels=BIT_PACKED)], 8),
        Column(leaf("encrypted", DOUBLE), DOUBLE, [page(plain, 8)], 8, encrypted=True),
        Column(leaf("elsewhere", DOUBLE), DOUBLE, [page(plain, 8)], 8, file="other.parquet"),
        Column(group("group", [leaf("a", DOUBLE)], 1, False), DOUBLE, [page(plain, 8)], 8),
        Column(group("deep", [group("list", [group("element", [group("list", [
            leaf("element", DOUBLE)], 2, False)])], 2, False)]), DOUBLE, [page(plain, 8)], 8),
        Column(leaf("type_12", 12), 12, [page(plain, 8)], 8),
        Column(leaf("other_type", DOUBLE), INT64, [page(plain, 8)], 8),
        Column(leaf("no_dictionary", DOUBLE), DOUBLE, [page(b"\0", 8, RLE_DICTIONARY)], 8),
        Column(leaf("bad_index", DOUBLE), DOUBLE, [
            page(plain, 8, kind=2), page(b"\4" + varint(16) + b"\x08", 8, RLE_DICTIONARY)], 8),
        Column(leaf("too_few", DOUBLE), DOUBLE, [page(plain, 8)[:-8]], 8),
        Column(leaf("pages_end", DOUBLE), DOUBLE, [page(plain[:32], 4)], 8),
        Column(leaf("bad\nname", DOUBLE), DOUBLE, [page(plain[:8], 8)], 8),
        Column(leaf("null", DOUBLE, 1), DOUBLE,
               [page(sized(varint(10) + b"\1" + varint(2) + b"\0" + varint(4) + b"\1") +
                     plain[:56], 8)], 8),
        Column(leaf("u64", INT64, note=14), INT64, [page(b"\xff" * 64, 8)], 8),
        Column(leaf("two_dictionaries", DOUBLE), DOUBLE, [
            page(plain, 8, kind=2), page(plain, 8, kind=2), page(b"\0", 8, RLE_DICTIONARY)], 8),
        Column(leaf("short_dictionary", DOUBLE), DOUBLE, [
            page(plain[:56], 8, kind=2), page(b"\0" + varint(16), 8, RLE_DICTIONARY)], 8),
        Column(leaf("long_page", DOUBLE), DOUBLE, [page(plain + plain, 16)], 8),
        Column(leaf("more_values", DOUBLE), DOUBLE, [page(plain + plain, 16)], 16),
        Column(leaf("long_chunk", DOUBLE), DOUBLE, [page(plain, 8)], 8, size=10 ** 6),
        Column(leaf("long_streams", DOUBLE), DOUBLE, [page(plain + plain, 8, 9)], 8),
        Column(leaf("more_deltas", INT64), INT64, [page(deltas(9, 1, 0), 8, 5)], 8),
        Column(leaf("long_text", BYTES), BYTES, [page(deltas(8, 1, 0) + bytes(7), 8, 6)], 8),
        Column(leaf("keeps_more", BYTES), BYTES,
               [page(deltas(8, 0, 3) + deltas(8, 2, 0) + bytes(16), 8, 7)], 8),
        Column(leaf("decimal", INT32, note=5, scale=2), INT32,
               [page(struct.pack("<8i", *range(-300, 500, 100)), 8)], 8),
        Column(leaf("f64", DOUBLE), DOUBLE, [page(plain, 8)], 8),
    ], 8)

    # Lists of four rows with invalid levels or nulls.
    def bad_list(name, reps, defs):
        values = struct.pack("<d", 1) * sum(d == 3 for d in defs)
        body = sized(packed_run(reps, 1)) + sized(packed_run(defs, 2)) + values
        return Column(group(name, [group("list", [leaf("element", DOUBLE, 1)], 2, False)]), DOUBLE,
                      [page(body, len(reps))], len(reps))
    craft("hand_bad_lists", [
        bad_list("goes_on", [1, 0, 0, 0, 0], [3] * 5),
        bad_list("after_empty", [0, 1, 0, 0, 0], [1, 3, 3, 3, 3]),
        bad_list("more_rows", [0] * 5, [3] * 5),
        bad_list("fewer_rows", [0, 0, 1, 0], [3] * 4),
        bad_list("null_list", [0, 0, 0, 0], [3, 3, 0, 3]),
        bad_list("null_element", [0, 0, 0, 1, 0], [3, 3, 3, 2, 3]),
        bad_list("list", [0, 0, 0, 1, 0, 1, 1], [1, 3, 3, 3, 3, 3, 3])], 4)

    # False sizes. Rejecting them must not take more memory than the file itself.
    huge = 2 ** 60
    craft("lie_rows", [Column(leaf("f64", DOUBLE), DOUBLE, [page(plain, 8)], huge)], huge)
    craft("lie_list", [Column(leaf("list", DOUBLE, 2), DOUBLE, [page(plain, 8)], huge)], 8)
    craft("lie_run", [Column(leaf("f64", DOUBLE), DOUBLE, [
        page(plain, 8, kind=2), page(b"\0" + varint((2 ** 31 - 1) << 1), 2 ** 31 - 1,
                                     RLE_DICTIONARY)], 2 ** 31 - 1)], 2 ** 31 - 1)
    for codec, name in ((NONE, "none"), (SNAPPY, "snappy"), (GZIP, "gzip"), (ZSTD, "zstd")):
        body = varint(2 ** 31 - 1) + bytes(60)
        craft("lie_page_" + name, [Column(leaf("text", BYTES), BYTES,
                                          [page(body, 8, unpacked=2 ** 31 - 1)], 8, codec)], 8)
    craft("lie_dictionary", [Column(leaf("text", BYTES), BYTES, [
        page(plain, 2 ** 31 - 1, kind=2), page(b"\0", 8, RLE_DICTIONARY)], 8)], 8)
    craft("lie_delta", [Column(leaf("step", INT64), INT64, [
        page(varint(2 ** 30) + varint(2 ** 24) + varint(8) + varint(0) + plain, 8, 5)], 8)],
        8)
    # Each text is the previous one plus a byte: 50 MB from 10 kB.
    count = 10000
    blocks = -(-(count - 1) // 1024)
    keeps = varint(1024) + varint(4) + varint(count) + zigzag(0) + (zigzag(1) + bytes(4)) * blocks
    grows = varint(1024) + varint(4) + varint(count) + zigzag(1) + (zigzag(0) + bytes(4)) * blocks
    craft("lie_prefixes", [Column(leaf("text", BYTES), BYTES,
                                  [page(keeps + grows + bytes(count), count, 7)], count)], count)
    craft("lie_columns", [Column(leaf("f64", DOUBLE), DOUBLE, [page(plain, 8)], 8)], 8,
          more_chunks=40)
    craft("lie_file_rows", [Column(leaf("f64", DOUBLE), DOUBLE, [page(plain, 8)], 8)], 8, 9)


def seeds():
    """Writes mostly uncompressed files, because mutated compressed bytes rarely pass the codec."""
    def seed(name, columns, **settings):
        pq.write_table(table(columns, 12), os.path.join(SEEDS, name + ".parquet"),
                       store_schema=False, write_statistics=False,
                       **{"compression": "none", **settings})

    some = ["flag", "i32", "f64_null", "text", "raw"]
    seed("plain", some, use_dictionary=False)
    seed("dictionary", some)
    seed("fallback_v2", ["few", "text"], dictionary_pagesize_limit=20, data_page_size=20,
         write_batch_size=3, row_group_size=7, data_page_version="2.0")
    seed("deltas_v2", some, use_dictionary=False, data_page_version="2.0", column_encoding={
        "flag": "RLE", "i32": "DELTA_BINARY_PACKED", "f64_null": "BYTE_STREAM_SPLIT",
        "text": "DELTA_BYTE_ARRAY", "raw": "DELTA_BYTE_ARRAY"})
    seed("lengths", ["text_null", "raw", "i64"], use_dictionary=False, column_encoding={
        "text_null": "DELTA_LENGTH_BYTE_ARRAY", "raw": "BYTE_STREAM_SPLIT",
        "i64": "BYTE_STREAM_SPLIT"})
    seed("list", ["list"])
    for codec in ("snappy", "gzip", "zstd"):
        seed(codec, ["f64", "text"], compression=codec)
    for name in ("hand_gzip", "hand_dictionary", "hand_v2", "hand_list_two_levels", "hand_refused",
                 "lie_run", "lie_list"):
        shutil.copyfile(path(name), os.path.join(SEEDS, name + ".parquet"))


os.makedirs(FOLDER, exist_ok=True)
os.makedirs(SEEDS, exist_ok=True)
by_writers()
by_hand()
seeds()
