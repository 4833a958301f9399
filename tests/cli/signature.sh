# Tests the detached Ed25519 signature of completion.json, made with the openssl command.
. "$BJ_ROOT/tests/support/cli.sh"
. "$BJ_ROOT/tests/support/small_campaign.sh"
command -v openssl >/dev/null || exit 77

for name in author other; do
    openssl genpkey -algorithm ed25519 -out $name.pem 2>/dev/null || exit 77
    openssl pkey -in $name.pem -pubout -out $name.pub
done
openssl pkey -in author.pem -pubout -outform DER | tail -c 32 >raw
signer=$(sha256sum raw | cut -d' ' -f1)

check small_campaign camp point
check "$BJEPA" lock camp --data val.bjc -q >/dev/null
check "$BJEPA" lock run camp -q >/dev/null
run 4 lock verify camp --key author.pub -q
err_has "camp/locked/completion.sig: is missing, but there is a key for it"

sign() { # sign KEY
    openssl pkeyutl -sign -inkey "$1" -rawin -in camp/locked/completion.json \
        -out camp/locked/completion.sig
}
sign author.pem
run 4 lock verify camp -q
err_has "camp/locked/completion.sig: cannot be checked"
run 0 lock verify camp --key author.pub -q
out_has "signed with the key $signer"
run 4 lock verify camp --key other.pub -q
err_has "camp/locked/completion.sig: is not a signature of camp/locked/completion.json"
run 3 lock verify camp --key grid.yaml -q
err_has "grid.yaml: is not an Ed25519 public key"
cp author.pub camp/locked/completion.pub
run 0 lock verify camp --json -q
out_has "\"signer\": \"$signer\""
run 0 table camp
err_empty

# Tests that a complete re-creation, which no digest detects, does not have the signature.
cp camp/locked/completion.json kept
sed -i -E 's/"threads": [0-9]+/"threads": 77/; /"digest"/d; s/("finished": "[^"]*"),/\1/' \
    camp/locked/completion.json
digest=$(sha256sum camp/locked/completion.json | cut -d' ' -f1)
sed -i -E "s/(\"finished\": \"[^\"]*\")/\1,\n  \"digest\": \"$digest\"/" camp/locked/completion.json
for verb in "lock verify" table report "figures --out f"; do
    run 4 $verb camp
    err_has "camp/locked/completion.sig: is not a signature of camp/locked/completion.json"
done
mv camp/locked/completion.sig camp/locked/completion.pub .
run 0 lock verify camp -q
mv completion.sig completion.pub camp/locked
cp kept camp/locked/completion.json

# Flipped bits of the signature and of the key.
for file in completion.sig completion.pub; do
    cp camp/locked/$file kept
    for at in 0 20 40 63; do
        printf "$(printf '\\%03o' $(($(od -An -tu1 -j$at -N1 kept) ^ 4)))" |
            dd of=camp/locked/$file bs=1 seek=$at conv=notrunc 2>/dev/null
        code=0
        "$BJEPA" lock verify camp -q >out 2>err || code=$?
        check test "$code" -eq 3 -o "$code" -eq 4
        err_has "camp/locked/completion."
        cp kept camp/locked/$file
    done
done
run 0 lock verify camp -q

finish
