"""Compares the C reader of NumPy archives with NumPy on archives of many kinds.

  TEST_NPZ=path/of/test_npz python3 tests/npz/peer_numpy.py [FILE...]

Every array must have the type, shape and bytes that NumPy reads, or be rejected for the reason given
here. Files given as arguments, and those in the folder of the environment variable BJ_MAZE_DATA, are
compared, too. Exit codes: 0 success, 1 failure, 77 skipped because NumPy is not installed.
"""
import glob
import io
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib

try:
    import numpy as np
except ImportError:
    print("skipped: the Python package numpy is not installed")
    sys.exit(77)

TOOL = os.environ.get("TEST_NPZ") or os.path.join(os.environ["BJ_BUILD"], "tests", "test_npz_npz")
READ = {"float32", "float64", "int32", "int64", "uint8", "bool"}


def fail(what):
    print("FAILED:", what)
    sys.exit(1)


def c_view(paths):
    """Returns {path: {name: (type, shape, crc) or message}}."""
    text = subprocess.run([TOOL, "dump", *paths], stdout=subprocess.PIPE,
                          check=True).stdout.decode()
    result = {}
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "file":
            arrays = result[rest] = {}
        elif word == "array":
            name, kind, shape, crc = rest.split(" ")
            arrays[name] = (kind, tuple(int(s) for s in shape[1:-1].split(",") if s), int(crc, 16))
        else:
            name, _, message = rest.partition(" ")
            arrays[name] = message
    return result


def reason(array):
    """Returns the text that the message must contain if an array cannot be read, or None if it can."""
    if array.dtype.hasobject:
        return "Python objects"
    if array.dtype.names:
        return "records"
    if array.dtype.byteorder == ">" and array.dtype.newbyteorder("<").name in READ:
        return "big-endian"
    if array.dtype.name not in READ:
        return "the type is '"
    if array.ndim > 1 and array.flags.fnc:
        return "Fortran order"
    return None


def compare(files):
    """Compares files {path: {name: array}}. Returns the number of arrays that were compared."""
    count = 0
    views = c_view(list(files))
    for path, arrays in files.items():
        found = views[path]
        if set(found) != set(arrays):
            fail(f"{path}: arrays {sorted(found)}, expected {sorted(arrays)}")
        for name, array in arrays.items():
            why = reason(array)
            if why:
                if not isinstance(found[name], str) or why not in found[name]:
                    fail(f"{path}: {name} should be refused ({why}): {found[name]}")
            else:
                crc = zlib.crc32(np.ascontiguousarray(array).tobytes())
                want = (array.dtype.name, array.shape, crc)
                if found[name] != want:
                    fail(f"{path}: {name} is {found[name]}, expected {want}")
            count += 1
    return count


def some_arrays(rng):
    arrays = {}
    for kind in ("f4", "f8", "i4", "i8", "u1", "?"):
        for shape in ((), (0,), (1,), (7,), (3, 0), (0, 4), (5, 2), (1000, 29), (9, 8, 8, 3),
                      (40000,)):
            name = f"{kind.replace('?', 'b')}_{'x'.join(map(str, shape))}"
            arrays[name] = np.asarray(rng.normal(size=shape) * 50).astype(kind)
    return arrays


def refused_arrays(rng):
    x = rng.normal(size=(4, 3))
    return dict(fortran=np.asfortranarray(x), line=np.asfortranarray(x[:, 0]), big=x.astype(">f8"),
                big_int=np.arange(3, dtype=">i4"), half=x.astype("f2"),
                short=np.arange(4, dtype="i2"), unsigned=np.arange(4, dtype="u4"), complex=x + 1j, text=np.array(["a", "bc"]),
                raw=np.array([b"a", b"bc"]), when=np.array(["2020-01-01"], "M8[D]"),
                records=np.zeros(3, [("a", "f4"), ("b", "i4")]), fine=x.astype("f4"),
                objects=np.array([{}, None], object))


def npy(array, version=None):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version)
    return buffer.getvalue()


def write_zip(path, arrays, method, level=None, version=None, stream=False, zip64=False):
    """Writes archives with zipfile: other levels and versions, data descriptors, forced ZIP64."""
    class Pipe(io.RawIOBase):                            # not seekable, so sizes follow the data
        def __init__(self, out):
            self.out = out

        def writable(self):
            return True

        def write(self, data):
            return self.out.write(data)

    with open(path, "wb") as out, zipfile.ZipFile(Pipe(out) if stream else out, "w", method,
                                                  compresslevel=level) as archive:
        archive.comment = b"made by a test"
        archive.writestr("readme.txt", "not an array")
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(name + ".npy") if method == 0 else name + ".npy", "w",
                              force_zip64=zip64) as member:
                member.write(npy(array, version))


def main():
    rng = np.random.default_rng(4)
    given = list(sys.argv[1:])
    root = os.environ.get("BJ_MAZE_DATA")
    if root:
        given += sorted(glob.glob(os.path.join(root, "*.npz")))
    else:
        print("skipped: the datasets; set BJ_MAZE_DATA to a folder that holds some")
    with tempfile.TemporaryDirectory() as folder:
        arrays, odd, files = some_arrays(rng), refused_arrays(rng), {}

        def path():
            return os.path.join(folder, f"{len(files)}.npz")

        for group in (arrays, odd):
            for save in (np.savez, np.savez_compressed):
                name = path()
                save(name, **group)
                files[name] = group
        name = path()
        np.savez(name, *list(arrays.values())[:3])
        files[name] = {f"arr_{i}": a for i, a in enumerate(list(arrays.values())[:3])}
        name = path()
        np.savez(name)
        files[name] = {}
        for level in (0, 1, 9):
            for version in ((1, 0), (2, 0), (3, 0)):
                for stream in (False, True):
                    for zip64 in (False, True):
                        name = path()
                        write_zip(name, arrays, zipfile.ZIP_DEFLATED, level, version, stream, zip64)
                        files[name] = arrays
        for zip64 in (False, True):
            name = path()
            write_zip(name, arrays, zipfile.ZIP_STORED, stream=zip64, zip64=zip64)
            files[name] = arrays
        count = compare(files)
        for method, word in ((zipfile.ZIP_BZIP2, "bzip2"), (zipfile.ZIP_LZMA, "LZMA")):
            name = path()
            write_zip(name, {"x": arrays["f4_5x2"]}, method)
            message = c_view([name])[name]["x"]
            if word not in str(message):
                fail(f"{word}: {message}")
        given_count = compare({p: dict(np.load(p)) for p in given}) if given else 0
    print(f"archives as NumPy {np.__version__} writes them: {len(files)} files, {count} arrays; "
          f"given {len(given)} files, {given_count} arrays")


main()
