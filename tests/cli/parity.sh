# Tests bjepa parity: exit codes and output for golden files that pass, that differ, and for other files.
. "$BJ_ROOT/tests/support/cli.sh"
golden=$BJ_ROOT/tests/golden/tiny

# Puts the 4-byte float given in octal over the first number of tensor NAME of FILE.
overwrite() { # overwrite FILE NAME BYTES
    local header begin
    header=$(od -An -td8 -N8 "$1" | tr -d ' ')
    begin=$(head -c $((8 + header)) "$1" | tail -c "$header" | tr -d '\n' |
        sed 's/.*"'"$2"'":{[^}]*"data_offsets":\[\([0-9]*\),.*/\1/')
    case $begin in '' | *[!0-9]*) begin=-1 ;; esac
    check test "$begin" -ge 0
    printf "$3" | dd of="$1" bs=1 seek=$((8 + header + begin)) conv=notrunc status=none
}

# One line a case, with the worst error of each group, and the tally.
run 0 parity "$golden/fullset.safetensors"
err_empty
check test "$(wc -l <out)" -eq 2
check grep -qE '^ok +fullset +o [0-9.e+-]+ +l [0-9.e+-]+ +g [0-9.e+-]+ +m [0-9.e+-]+ +s [0-9.e+-]+ +st [0-9.e+-]+$' out
out_has "1 passed, 0 failed, 0 rejected"

# A folder stands for the golden files in it, in the order of their names.
run 0 parity "$golden"
check test "$(grep -c '^ok ' out)" -eq "$(ls "$golden"/*.safetensors | wc -l)"
check sh -c 'grep "^ok " out | sort -c -k2,2'
out_lacks FAIL
run 0 parity -j 2 --isa c "$golden/k1.safetensors" "$golden/uniform.safetensors"
out_has "2 passed, 0 failed, 0 rejected"
BJ_ISA=c run 0 parity "$golden/k1.safetensors"

run 0 parity --json "$golden/fullset.safetensors" "$golden/anchor_a.safetensors"
check test "$(wc -l <out)" -eq 2
out_has '"type":"parity","case":"fullset"'
out_has '"passed":true'
out_lacks '"passed":false'
cp "$golden/k1.safetensors" 'a "b\c.safetensors'
run 0 parity --json 'a "b\c.safetensors'
out_has '"file":"a \"b\\c.safetensors"'

# A number that was changed: what, found and expected, and exit code 4.
cp "$golden/fullset.safetensors" changed.safetensors
overwrite changed.safetensors l.total '\000\000\200\100' # 4.0
run 4 parity changed.safetensors
check grep -qE '^FAIL fullset ' out
check grep -qE '^     1 of [0-9]+: l.total\[0\] is [0-9.]+, expected 4$' out
out_has "0 passed, 1 failed, 0 rejected"
run 4 parity --json changed.safetensors
out_has '"passed":false'
run 4 parity "$golden/k1.safetensors" changed.safetensors
out_has "1 passed, 1 failed, 0 rejected"

# Not a number where one is needed.
cp "$golden/fullset.safetensors" nan.safetensors
overwrite nan.safetensors x.focal '\000\000\300\177'
run 3 parity nan.safetensors
err_has "nan.safetensors"
err_has "x.focal"

# Files that are no golden files, or only half of one.
head -c 5000 "$golden/fullset.safetensors" >half.safetensors
run 3 parity half.safetensors
err_has "half.safetensors"
echo "hello, world" >hello.safetensors
run 3 parity hello.safetensors
err_has "hello.safetensors"
out_has "0 passed, 0 failed, 1 rejected"
run 3 parity "$BJ_ROOT/tests/golden/checkpoint_v1.safetensors"
err_has "tensor 'w.encoder.gru.weight_ih_l0': is missing"
mkdir empty
run 3 parity empty
err_has "empty: contains neither *.safetensors nor *.npz files"
out_has "0 passed, 0 failed, 0 rejected"

# The rest is looked at nevertheless; a number that differs outweighs a file that cannot be read.
run 3 parity hello.safetensors half.safetensors "$golden/k1.safetensors"
out_has "1 passed, 0 failed, 2 rejected"
check test "$(wc -l <err)" -eq 2
run 4 parity hello.safetensors changed.safetensors "$golden/k1.safetensors"
out_has "1 passed, 1 failed, 1 rejected"
run 5 parity none.safetensors
err_has "none.safetensors"

run 2 parity
out_empty
run 2 parity --isa sse9 "$golden/k1.safetensors"
err_has "instruction set 'sse9' is not available, expected one of: c"
run 2 parity --threads -1 "$golden/k1.safetensors"
err_has "threads"
run 2 parity --treads 1 "$golden/k1.safetensors"
err_has "did you mean '--threads'?"

finish
