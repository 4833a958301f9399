"""Compares the C Parquet reader with pyarrow on files of pyarrow, polars and DuckDB in many settings.

  TEST_DUMP=path/of/test_dump python3 tests/parquet/peer_reader.py [FILE...]

Every column of every file is read in each way that the C reader supports (integers, doubles, texts,
codes, lists), and must contain the bits that pyarrow reads. Files given as arguments, and those below the
folder in the environment variable BJ_AV2_DATA, are compared, too.
Exit codes: 0 success, 1 failure, 77 skipped because pyarrow is not installed.
"""
import decimal
import glob
import itertools
import os
import random
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    print("skipped: the Python package pyarrow is not installed")
    sys.exit(77)

TOOL = os.environ.get("TEST_DUMP") or os.path.join(
    os.environ["BJ_BUILD"], "tests", "test_parquet_dump")


def fail(what):
    print("FAILED:", what)
    sys.exit(1)


# ------------------------------------------------------------------------------------ the two views

def c_view(paths):
    """Returns {path: (rows, [(name, {kind: fields})])}, with a message instead for rejected files."""
    result = {}
    for begin in range(0, len(paths), 100):
        text = subprocess.run([TOOL, *paths[begin:begin + 100]], stdout=subprocess.PIPE,
                              check=True).stdout.decode("utf-8", "surrogateescape")
        columns = None
        for line in text.splitlines():
            word, _, rest = line.partition(" ")
            if word == "file" and " refused " in rest:
                path, _, message = rest.partition(" refused ")
                result[path] = message
            elif word == "file":
                path, _, counts = rest.rpartition(" rows ")
                columns = []
                result[path] = (int(counts.split()[0]), columns)
            elif word == "column":
                columns.append((rest, {}))
            elif word == "refused":
                columns[-1][1][word] = rest
            else:
                columns[-1][1][word] = rest.split()
    return result


def words(values, form):
    """Formats numbers like the tool."""
    code = "<d" if form == "double" else "<q"
    return ["-" if v is None else "%x" % struct.unpack("<Q", struct.pack(code, v))[0]
            for v in values]


def texts(values):
    return ["-" if v is None else "x" + (v.encode() if isinstance(v, str) else v).hex()
            for v in values]


def codes(values):
    numbers = {}
    for v in values:
        numbers.setdefault(v, len(numbers))
    return texts(numbers) + [str(numbers[v]) for v in values]


def expected(column):
    """Returns {kind: fields} of a pyarrow column, or None if the tool must reject every kind."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        return None
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        item = kind.value_type
        if not (pa.types.is_integer(item) or pa.types.is_float32(item) or
                pa.types.is_float64(item)):
            return None
        values = column.to_pylist()
        if any(v is None or any(e is None for e in v) for v in values):
            return None
        starts = list(itertools.accumulate((len(v) for v in values), initial=0))
        flat = [float(e) for v in values for e in v]
        return {"starts": [str(s) for s in starts], "list": words(flat, "double")}
    if pa.types.is_boolean(kind):
        return {"int64": words(map(lambda v: None if v is None else int(v), column.to_pylist()),
                               "int64")}
    if pa.types.is_decimal(kind):
        if kind.bit_width > 64 and kind.precision > 18:
            return "any"
        return {"double": words([None if v is None else float(v) for v in column.to_pylist()],
                                "double")}
    if pa.types.is_temporal(kind):
        if pa.types.is_date32(kind) or pa.types.is_time32(kind):
            column = column.cast(pa.int32())
        column = column.cast(pa.int64())
        kind = column.type
    if pa.types.is_integer(kind):
        values = column.to_pylist()
        result = {"double": words([None if v is None else float(v) for v in values], "double")}
        if all(v is None or v < 2 ** 63 for v in values):
            result["int64"] = words(values, "int64")
        return result
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return {"double": words(column.to_pylist(), "double")}
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind) or \
            pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind) or \
            pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        values = column.to_pylist()
        result = {"text": texts(values)}
        if None not in values:
            result["codes"] = codes(values)
        return result
    return "any"


def reference(path):
    """Returns a file as pyarrow reads it, or DuckDB for its own files. DuckDB packs differences of 32-bit
    integers in more than 32 bits, which no other reader supports."""
    try:
        return pq.ParquetFile(path).read()
    except OSError:
        import duckdb
        return duckdb.connect().sql(f"SELECT * FROM '{path}'").to_arrow_table()


def compare(paths):
    """Returns the number of columns compared."""
    seen = c_view(paths)
    compared = 0
    for path in paths:
        if isinstance(seen.get(path), str):
            fail(f"{path}: refused: {seen[path]}")
        table = reference(path)
        rows, columns = seen[path]
        if rows != table.num_rows or [n for n, _ in columns] != table.column_names:
            fail(f"{path}: {rows} rows of {[n for n, _ in columns]}, pyarrow has "
                 f"{table.num_rows} of {table.column_names}")
        for (name, got), column in zip(columns, table.columns):
            want = expected(column)
            if want == "any" or (pa.types.is_decimal(column.type) and "text" in got):
                continue                        # the reader returns raw bytes for decimals
            if want is None:
                if "refused" not in got:
                    fail(f"{path}: column {name} ({column.type}) was read as {list(got)}")
            elif got != want:
                for kind in sorted(set(got) | set(want)):
                    if got.get(kind) != want.get(kind):
                        pairs = list(itertools.zip_longest(got.get(kind) or [],
                                                           want.get(kind) or []))
                        first = next((i for i, (a, b) in enumerate(pairs) if a != b), 0) \
                            if kind != "refused" else 0
                        fail(f"{path}: column {name} ({column.type}) as {kind}, place {first}: "
                             f"{pairs[first] if pairs else got}")
            compared += 1
    return compared


# ------------------------------------------------------------------------------------------ tables

def numbers(rng, rows, nulls):
    """Returns one column of each kind with `rows` rows and some nulls."""
    def column(kind, make):
        return pa.array([None if rng.random() < nulls else make(i) for i in range(rows)], kind)

    words_ = ["", "a", "vehicle", "pedestrian", "\u00e9t\u00e9", "cyclist" * 5]
    deltas = list(itertools.accumulate((rng.randrange(-40, 90) for _ in range(rows)), initial=7))
    return {
        "flag": column(pa.bool_(), lambda i: rng.random() < 0.3),
        "flags_runs": column(pa.bool_(), lambda i: i // 37 % 2 == 0),
        "i8": column(pa.int8(), lambda i: rng.randrange(-128, 128)),
        "u16": column(pa.uint16(), lambda i: rng.randrange(2 ** 16)),
        "i32": column(pa.int32(), lambda i: rng.randrange(-2 ** 31, 2 ** 31)),
        "u32": column(pa.uint32(), lambda i: rng.randrange(2 ** 32)),
        "i64": column(pa.int64(), lambda i: rng.randrange(-2 ** 63, 2 ** 63)),
        "u64": column(pa.uint64(), lambda i: rng.randrange(2 ** 63)),
        "step": column(pa.int64(), lambda i: i % 110),
        "walk": column(pa.int64(), lambda i: deltas[i]),
        "walk32": column(pa.int32(), lambda i: deltas[i]),
        "f32": column(pa.float32(), lambda i: rng.gauss(0, 100)),
        "f64": column(pa.float64(), lambda i: rng.gauss(0, 100)),
        "few": column(pa.float64(), lambda i: rng.randrange(9) / 7),
        "many": column(pa.float64(), lambda i: rng.randrange(5000) / 7),
        "odd": column(pa.float64(), lambda i: rng.choice([0.0, -0.0, float("inf"), 5e-324])),
        "same": column(pa.int64(), lambda i: 77),
        "word": column(pa.string(), lambda i: rng.choice(words_)),
        "track": column(pa.string(), lambda i: str(138902 + i // 60)),
        "large": column(pa.large_string(), lambda i: "id-%d" % rng.randrange(10 ** 6)),
        "bytes": column(pa.binary(), lambda i: rng.randbytes(rng.randrange(20))),
        "fixed": column(pa.binary(5), lambda i: rng.randbytes(5)),
        "category": column(pa.string(), lambda i: words_[i // 50 % 6]).dictionary_encode(),
        "price": column(pa.decimal128(9, 2),
                        lambda i: decimal.Decimal(rng.randrange(-10 ** 7, 10 ** 7)).scaleb(-2)),
        "when": column(pa.timestamp("us"), lambda i: 1600000000000000 + 100000 * i),
        "day": column(pa.date32(), lambda i: 18000 + i),
        "nothing": pa.nulls(rows, pa.float64()),
    }


def lists(rng, rows):
    """Returns lists without nulls, like those in submissions, and lists that the reader must reject."""
    def of(kind, make):
        return pa.array([make(i) for i in range(rows)], kind)

    return {
        "x": of(pa.list_(pa.float64()), lambda i: [rng.gauss(0, 9) for _ in range(60)]),
        "ragged": of(pa.list_(pa.float32()), lambda i: [0.5 * e for e in range(i % 5)]),
        "whole": of(pa.large_list(pa.int32()), lambda i: [i] * rng.randrange(4)),
        "exact": of(pa.list_(pa.field("element", pa.int64(), nullable=False)),
                    lambda i: [i, -i]),
        "few": of(pa.list_(pa.float64()), lambda i: [rng.randrange(5) / 3] * (i % 3)),
        "null_list": of(pa.list_(pa.float64()), lambda i: None if i == rows // 2 else [1.0]),
        "null_element": of(pa.list_(pa.float64()),
                           lambda i: [1.0, None] if i == rows // 2 else [1.0]),
        "deep": of(pa.list_(pa.list_(pa.float64())), lambda i: [[1.0]]),
        "group": of(pa.struct([("a", pa.int64()), ("b", pa.string())]),
                    lambda i: {"a": i, "b": "b"}),
        "map": of(pa.map_(pa.string(), pa.int64()), lambda i: [("k", i)]),
        "plain": of(pa.int64(), lambda i: i),
    }


def required(table):
    """Returns the same columns, declared as required."""
    return table.cast(pa.schema([f.with_nullable(False) for f in table.schema]))


INTEGERS = ["i8", "u16", "i32", "u32", "i64", "u64", "step", "walk", "walk32", "same"]
FLOATS = ["f32", "f64", "few", "many", "odd"]
TEXTS = ["word", "track", "large", "bytes"]


def encodings(kind):
    if kind == "default":
        return {}
    if kind == "plain":
        return {"use_dictionary": False}
    if kind == "fallback":                      # the dictionary exceeds its page limit early
        return {"dictionary_pagesize_limit": 1500}
    chosen = {}
    if kind == "delta":
        chosen = {**{c: "DELTA_BINARY_PACKED" for c in INTEGERS},
                  **{c: "BYTE_STREAM_SPLIT" for c in FLOATS},
                  **{c: "DELTA_BYTE_ARRAY" for c in TEXTS + ["fixed"]},
                  "flag": "RLE", "flags_runs": "RLE"}
    elif kind == "split":
        chosen = {**{c: "BYTE_STREAM_SPLIT" for c in
                     ["i32", "u32", "i64", "u64", "step", "walk", "walk32", "fixed"] + FLOATS},
                  **{c: "DELTA_LENGTH_BYTE_ARRAY" for c in TEXTS}}
    return {"use_dictionary": False, "column_encoding": chosen}


def write_matrix(folder):
    rng = random.Random(11)
    tables = {}
    for rows, nulls in ((0, 0), (1, 0), (7, 0.5), (2500, 0), (2500, 0.1), (2500, 0.97)):
        tables[rows, nulls] = pa.table(numbers(rng, rows, nulls))
    paths = []

    def write(table, **settings):
        path = os.path.join(folder, f"{len(paths)}.parquet")
        pq.write_table(table, path, **settings)
        paths.append(path)

    codecs = ["none", "snappy", "gzip", "zstd"]
    turn = 0
    for (rows, nulls), table in tables.items():
        for kind in ("default", "plain", "fallback", "delta", "split"):
            for page in ("1.0", "2.0"):
                for size in (None, 700):
                    turn += 1
                    if size and rows < 100:
                        continue
                    settings = encodings(kind)
                    settings["data_page_version"] = page
                    settings["compression"] = codecs[turn % 4]
                    settings["write_page_checksum"] = turn % 3 == 0
                    settings["store_decimal_as_integer"] = turn % 2 == 0
                    if size:
                        settings.update(data_page_size=size, write_batch_size=64,
                                        row_group_size=rows // 3 + 1)
                    write(table, **settings)
    flat = tables[2500, 0].drop_columns(["nothing"])
    for codec in codecs:
        for version in ("1.0", "2.4", "2.6"):
            write(required(flat), compression=codec, version=version, use_dictionary=version != "2.4",
                  data_page_version="2.0" if version == "2.6" else "1.0")
    for rows in (0, 1, 300):
        table = pa.table(lists(rng, rows)) if rows else pa.table(lists(rng, 1)).slice(0, 0)
        for page in ("1.0", "2.0"):
            for compliant in (True, False):
                write(table, data_page_version=page, compression="snappy",
                      use_compliant_nested_type=compliant)
                write(table, data_page_version=page, compression="zstd", use_dictionary=False,
                      data_page_size=900, write_batch_size=50, row_group_size=max(1, rows // 2),
                      use_compliant_nested_type=compliant)
                write(table, data_page_version=page, compression="none",
                      dictionary_pagesize_limit=400, write_batch_size=32)
    return tables, paths


def write_polars(folder, tables):
    try:
        import polars
    except ImportError:
        return []
    paths = []
    for key in ((0, 0), (2500, 0), (2500, 0.1)):
        table = tables[key].drop_columns(["price", "fixed"])
        for settings in ({}, {"compression": "snappy", "row_group_size": 600},
                         {"compression": "uncompressed", "data_page_size": 1000},
                         {"compression": "gzip", "statistics": False}):
            path = os.path.join(folder, f"polars{len(paths)}.parquet")
            polars.from_arrow(table).write_parquet(path, **settings)
            paths.append(path)
    path = os.path.join(folder, f"polars{len(paths)}.parquet")
    rng = random.Random(5)
    table = pa.table(lists(rng, 200)).select(["x", "ragged", "whole", "null_list", "plain"])
    polars.from_arrow(table).write_parquet(path)
    return paths + [path]


def write_duckdb(folder, tables):
    try:
        import duckdb
    except ImportError:
        return []
    paths = []
    rng = random.Random(6)
    some = pa.table(lists(rng, 200)).select(["x", "ragged", "whole", "null_list", "plain"])
    connection = duckdb.connect()
    for table in (tables[0, 0], tables[2500, 0], tables[2500, 0.1], some):
        if "category" in table.column_names:            # DuckDB would store it as an ENUM
            table = table.drop_columns(["category"])
        for settings in ("", ", COMPRESSION zstd, ROW_GROUP_SIZE 2048", ", COMPRESSION gzip",
                         ", PARQUET_VERSION V2", ", COMPRESSION uncompressed"):
            path = os.path.join(folder, f"duckdb{len(paths)}.parquet")
            connection.register("made", table)
            connection.execute(f"COPY made TO '{path}' (FORMAT parquet{settings})")
            paths.append(path)
    return paths


def main():
    given = sys.argv[1:]
    root = os.environ.get("BJ_AV2_DATA")
    if root:
        given += sorted(glob.glob(os.path.join(root, "**", "*.parquet"), recursive=True))
    else:
        print("skipped: the official files; set BJ_AV2_DATA to a folder that holds some")
    with tempfile.TemporaryDirectory() as folder:
        tables, paths = write_matrix(folder)
        counts = {"pyarrow": paths, "polars": write_polars(folder, tables),
                  "duckdb": write_duckdb(folder, tables), "given": given}
        parts = [f"{name} {len(some)} files, {compare(some)} columns"
                 for name, some in counts.items()]
    print(f"Parquet as pyarrow {pa.__version__} reads it: " + "; ".join(parts))


main()
