"""Reads the Parquet files of the C writer with other readers.

  TEST_WRITER=path/of/test_writer python3 tests/parquet/peer_writer.py

1. pyarrow, pandas, polars and DuckDB, if they are installed, read random tables (several row groups,
   pages and dictionaries, both codecs) with the values that the C program printed, bit for bit.
2. The number of values, the encodings and the sizes of every page are those in the footer.
3. The av2 package loads a scenario with the official columns.
Exit codes: 0 success, 1 failure, 77 skipped because no reader is installed.
"""
import importlib
import os
import subprocess
import sys

TOOL = os.environ.get("TEST_WRITER") or os.path.join(
    os.environ["BJ_BUILD"], "tests", "test_parquet_writer")
NAMES = ["flag", "number", "code", "x", "level", "name \u00e9", "free text", "points"]


def optional(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


pyarrow, pandas, polars, duckdb, av2 = map(
    optional, ["pyarrow.parquet", "pandas", "polars", "duckdb", "av2"])


def check(condition, what):
    if not condition:
        print("FAILED:", what)
        sys.exit(1)


def bits(value):
    """Returns a representation of a float without rounding, in which -0 differs from 0."""
    return float(value).hex()


def expected(text):
    rows = []
    for line in text.splitlines():
        part = line.split(" ")
        rows.append((part[0] == "1", int(part[1]), int(part[2]), bits(float.fromhex(part[3])),
                     bits(float.fromhex(part[4])), bytes.fromhex(part[5][1:]).decode(),
                     bytes.fromhex(part[6][1:]).decode(),
                     tuple(bits(float.fromhex(p)) for p in part[7:])))
    return rows


def canonical(rows):
    return [(bool(r[0]), int(r[1]), int(r[2]), bits(r[3]), bits(r[4]), r[5], r[6],
             tuple(bits(p) for p in r[7])) for r in rows]


def columns_of(path):
    """Returns {reader: rows} for every installed reader."""
    seen = {}
    if pyarrow:
        table = pyarrow.read_table(path)
        check(table.column_names == NAMES, f"pyarrow: columns {table.column_names}")
        seen["pyarrow"] = zip(*(table[n].to_pylist() for n in NAMES))
    if pandas and pyarrow:
        frame = pandas.read_parquet(path)
        seen["pandas"] = zip(*(frame[n].tolist() for n in NAMES))
    if polars:
        seen["polars"] = polars.read_parquet(path, columns=NAMES).rows()
    if duckdb:
        names = ", ".join(f'"{n}"' for n in NAMES)
        seen["duckdb"] = duckdb.sql(
            f"select {names} from read_parquet('{path}', file_row_number = true) "
            "order by file_row_number").fetchall()
    return seen


def check_footer(path):
    """Checks the sizes and offsets in the footer against the bytes of the file."""
    meta = pyarrow.ParquetFile(path).metadata
    at = 4
    for g in range(meta.num_row_groups):
        group, rows = meta.row_group(g), meta.row_group(g).num_rows
        raw = 0
        for c in range(group.num_columns):
            chunk = group.column(c)
            first = chunk.data_page_offset
            if chunk.has_dictionary_page:
                check(chunk.dictionary_page_offset < first, "dictionary behind the data")
                first = chunk.dictionary_page_offset
            check(first == at, f"chunk {g},{c} at {first}, expected {at}")
            at += chunk.total_compressed_size
            raw += chunk.total_uncompressed_size
            check(chunk.num_values == rows or "list" in chunk.path_in_schema, "values of a chunk")
        check(group.total_byte_size == raw, "bytes of a row group")
    size = int.from_bytes(open(path, "rb").read()[-8:-4], "little")
    check(os.path.getsize(path) == at + size + 8, "bytes between the last chunk and the footer")


def check_scenario(path):
    from pathlib import Path
    from av2.datasets.motion_forecasting.scenario_serialization import (
        load_argoverse_scenario_parquet)
    subprocess.run([TOOL, "scenario", path, "made-up"], check=True)
    scenario = load_argoverse_scenario_parquet(Path(path))
    check(scenario.scenario_id == "made-up" and scenario.focal_track_id == "1001", "scenario")
    check(scenario.city_name == "austin" and len(scenario.timestamps_ns) == 110, "scenario")
    check(len(scenario.tracks) == 12, f"{len(scenario.tracks)} tracks")
    for track in scenario.tracks:
        check([s.timestep for s in track.object_states] == list(range(110)), "steps")
        check([s.observed for s in track.object_states] == [t < 50 for t in range(110)], "observed")


def main():
    if not (pyarrow or polars or duckdb):
        print("skipped: none of the packages pyarrow, polars, duckdb is installed")
        return 77
    path, files, rows, readers = "random.parquet", 0, 0, set()
    for seed in range(12):
        codec = "plain" if seed % 3 == 2 else "snappy"
        text = subprocess.run([TOOL, "write", path, str(seed), codec], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        want = expected(text)
        for reader, seen in columns_of(path).items():
            got = canonical(seen)
            check(len(got) == len(want), f"{reader}: {len(got)} rows, expected {len(want)}")
            for r, (a, b) in enumerate(zip(got, want)):
                check(a == b, f"{reader}: seed {seed}, row {r}: {a}, expected {b}")
            readers.add(reader)
        if pyarrow:
            check_footer(path)
        files, rows = files + 1, rows + len(want)
    if av2:
        check_scenario("scenario.parquet")
    print(f"{files} files with {rows} rows equal in {', '.join(sorted(readers))}"
          + ("; the av2 package loads our scenario" if av2 else "; av2 is not installed"))
    return 0


sys.exit(main())
