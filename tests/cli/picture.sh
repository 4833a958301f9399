# Tests picture formats by file name: SVG always, PNG and PDF if librsvg is installed.
. "$BJ_ROOT/tests/support/cli.sh"

starts_with() { # starts_with FILE HEX
    [ "$(head -c $((${#2} / 2)) "$1" | od -An -tx1 | tr -d ' \n')" = "$2" ]
}

run 0 simulate --cache world.bjc --scenes 3 --seed 2 -q
run 0 world show world.bjc --scene '#1' --out scene.svg
check grep -q '</svg>' scene.svg
run 2 world show world.bjc --scene '#1' --out scene.gif
err_has ".svg, .png or .pdf"
run 2 data show world.bjc '#1' --out scene.gif
err_has ".safetensors, .json, .svg, .png or .pdf"

case $(/sbin/ldconfig -p) in
*librsvg-2.so.2*) ;;
*)
    run 2 world show world.bjc --scene '#1' --out scene.png
    err_has "librsvg2-2"
    check test ! -e scene.png
    echo "skipped: PNG and PDF; scripts/install_deps.sh pictures installs librsvg"
    finish
    ;;
esac
if [ "${BJ_SANITIZE:-}" = thread ]; then
    echo "skipped: PNG and PDF; the libraries that draw them are not built for the thread sanitizer"
    finish
fi
for verb in "world show world.bjc --scene #1" "data show world.bjc #1"; do
    run 0 $verb --out scene.png
    check starts_with scene.png 89504e470d0a1a0a0000000d49484452000007800000 # 1920 pixels wide
    check test "$(stat -c %s scene.png)" -gt 20000                           # not an empty sheet
    run 0 $verb --out scene.pdf
    check starts_with scene.pdf 255044462d
    check sh -c 'tail -c 10 scene.pdf | grep -q %%EOF'
done
run 0 world show world.bjc --scene '#1' --out again.png
run 0 world show world.bjc --scene '#2' --out other.png
run 0 world show world.bjc --scene '#1' --out scene.png
check cmp scene.png again.png
check sh -c '! cmp -s scene.png other.png'
check test -z "$(ls -A | grep tmp)"

finish
