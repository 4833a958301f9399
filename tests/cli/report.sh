# Tests bjepa report: pages of a campaign before and after its locked evaluation, of seed tables, and of
# campaigns without results.
. "$BJ_ROOT/tests/support/cli.sh"
. "$BJ_ROOT/tests/report/campaign.sh"

payload() { sed -n '/id="scene-data"/,/<\/script>/p' "$1"; }
has() { grep -qF -e "$2" "$1"; verdict $? "$1 does not contain '$2'"; }
lacks() { ! grep -qF -e "$2" "$1"; verdict $? "$1 contains '$2'"; }
count_is() { # count_is FILE TEXT N: lines of the payload with that text
    local found
    found=$(payload "$1" | grep -c -e "$2")
    [ "$found" -eq "$3" ]
    verdict $? "$1 has $found times '$2', expected $3"
}

little_campaign camp

# ------------------------------------------------------------------- before the evaluation
run 0 report camp --out dev.html --count 5 --threads 1
err_has "wrote dev.html with 5 scenes"
out_empty
has dev.html "<h1>little-world</h1>"
lacks dev.html "{{"
has dev.html 'class="tag dev">development scenes'
has dev.html "use a locked evaluation for publication"
has dev.html "development scenes, which are never trained on"
check sh -c '! grep -qE "(src|href)=\"?https?:|url\(http|@import" dev.html'
check test "$(stat -c %s dev.html)" -lt 15000000
count_is dev.html '^{"id":' 5
count_is dev.html '"law":{"w":' 5
check test "$(payload dev.html | grep -o '"arm":' | wc -l)" -eq 6
count_is dev.html '"forecast":\[{"w":.*{"w":.*{"w":.*{"w":.*{"w":.*{"w":' 5
run 0 data split train.bjc --list --part dev
for id in $(payload dev.html | sed -n 's/^{"id":"\([^"]*\)".*/\1/p'); do out_has "$id"; done
# The sections, the paper's numbers, only what was checked about matching.
for id in about scenes results summary support exchange exchange-curves learning parameters \
    provenance; do
    has dev.html "<section id=\"$id\""
done
has dev.html "all arms here see the same scenes in the same order"
has dev.html "These models have different sizes:</strong> they differ by more than 1 %"
lacks dev.html "have the same size"
lacks dev.html "are as large as six branches"
has dev.html "finished</td>"
has dev.html "<code>train.epochs</code></th><td><strong>12</strong></td>"
has dev.html "model.atoms</code></th><td><strong>6</strong> full-set, specialization; <strong>1</strong>"
weights=camp/runs/point/seed-1/ckpt/best/model.safetensors
has dev.html "$(sha256sum $weights | cut -c1-10)</td>"

# The same bytes again, also from elsewhere and with other threads: no clock, no path.
run 0 report camp --out again.html --count 5 --threads 2
check cmp dev.html again.html
lacks dev.html "$PWD"

# What a scene shows is what bjepa predict says, to the centimeter; weights to four digits.
id=$(payload dev.html | sed -n 's/^{"id":"\([^"]*\)".*/\1/p' | head -1)
run 0 predict camp/runs/fullset/seed-0/ckpt/best train.bjc --scene "$id" --json --threads 1
first=$(sed 's/.*"trajectories":\[\[\[\([^]]*\)\].*/\1/' out |
    awk -F, '{printf "%.0f,%.0f", 100 * $1, 100 * $2}')
weight=$(sed 's/.*"weights":\[\([^,]*\),.*/\1/' out | awk '{printf "%.4f", $1}')
check sh -c "grep '^{\"id\":\"$id' dev.html | grep -qF '\"forecast\":[{\"w\":[$weight,'"
check sh -c "grep '^{\"id\":\"$id' dev.html | grep -qF '\"p\":[[$first,'"

# --------------------------------------------------------------------- locked, not evaluated
# Held-out scenes stay closed until the evaluation is over.
run 0 simulate --cache val.bjc --scenes 20 --seed 9 --split val --quiet --jobs 1
run 0 lock camp --data val.bjc
run 0 report camp --out locked.html --count 5 --threads 1
has locked.html 'class="tag dev">development scenes'
has locked.html "development scenes, which are never trained on"

# -------------------------------------------------------------------------------- evaluated
run 0 lock run camp --threads 1
"$BJEPA" audit camp --data val.bjc --a fullset --b specialization --json -q --threads 1 \
    >camp/audit.json 2>err
"$BJEPA" truth camp/runs/*/seed-0/ckpt/best val.bjc val.bjc.law.safetensors --json -q --threads 1 \
    --samples 16 --best-scenes 0 >camp/truth.json 2>err
run 0 report camp --out full.html --threads 1
err_has "wrote full.html with 20 scenes"
has full.html 'class="tag locked">locked evaluation, 20 held-out scenes'
has full.html "20 of 20 held-out scenes, shown after their evaluation"
has full.html "lock <span class=\"hash\">$(sha256sum camp/lock.json | cut -c1-16)"
# One trajectory does not compete with sets of six.
check test "$(grep -c '^<tr><th scope="row">full-set</th>.*n best' full.html)" -ge 1
check sh -c "! grep '^<tr><th scope=\"row\">point, K = 1</th>' full.html | grep -q 'n best'"
for id in calibration usage audit truth; do has full.html "<section id=\"$id\""; done
lacks full.html '<section id="pretrained"'

# A model that was trained elsewhere: shown first, with its numbers from truth.json and audit.json.
run 0 export camp/runs/fullset/seed-1 --bf16 --name 'else<where>' --license Apache-2.0 --out other.safetensors
run 0 report camp --pretrained other.safetensors --out alone.html --count 5 --threads 1
has alone.html '<section id="pretrained">'
has alone.html '<a href="#pretrained">Pretrained</a>'
has alone.html 'else&lt;where&gt;<br><span class="soft">pretrained</span></th><td class="n">'
has alone.html "</th><td class=\"n\">$(sed -n 's/.*"scenes":"\([0-9]*\)".*/\1/p' out)"
check test "$(payload alone.html | grep -o '"arm":' | wc -l)" -eq 7
check sh -c 'grep -qF "\"models\":[{\"arm\":\"pretrained\",\"title\":\"else" alone.html'
cp camp/truth.json camp/audit.json .
"$BJEPA" audit camp other.safetensors --data val.bjc --json -q --threads 1 >camp/audit.json 2>err
"$BJEPA" truth camp other.safetensors val.bjc val.bjc.law.safetensors --baseline --json -q --threads 1 \
    --samples 16 --best-scenes 0 >camp/truth.json 2>err
run 0 report camp --pretrained other.safetensors --out beside.html --count 5 --threads 1
number() { # number NAME FIELD: of an entry of truth.json, with three digits
    tr '{' '\n' <camp/truth.json | grep -A9 "^\"name\":\"$1\"" | sed -n "/\"$2\":\$/{n;p;q}" |
        sed 's/^"mean":\([^,]*\),.*/\1/' | awk '{ printf "%.3f", $1 }'
}
has beside.html "<td class=\"n\">$(number other.safetensors discrepancy)</td>"
has beside.html "<td class=\"n\">$(number true-modes discrepancy)</td>"
has beside.html 'true modes<br><span class="soft">six, known only to the simulator</span>'
run 5 report camp --pretrained nowhere.safetensors --out x.html
check test ! -e x.html
mv truth.json audit.json camp/
has full.html "paper 2.0766"
count_is full.html '"future":{"p":' 20

# What happened does not choose, order or change anything but itself: the page of a cache whose
# futures are all zero differs in nothing else.
hide() { sed 's/"future":{[^}]*}/"future":hidden/' "$1" >"$1.hidden"; }
mkdir unseen
check "$TEST_AUDIT" zero val.bjc unseen/val.bjc
cp val.bjc.law.safetensors unseen
run 0 report camp --scenes val.bjc --out seen.html --count 7 --threads 1
run 0 report camp --scenes unseen/val.bjc --out zero.html --count 7 --threads 1
hide seen.html
hide zero.html
check test "$(payload seen.html.hidden | grep -c '"future":hidden')" -eq 7
check sh -c '! cmp -s seen.html zero.html'
check cmp seen.html.hidden zero.html.hidden

# Scenes that were named, a law that was named, none at all, too many for the page.
run 0 report camp --scenes train.bjc --law train.bjc.law.safetensors --count 3 --out named.html \
    --threads 1
has named.html "3 of 200 scenes of the given file"
run 3 report camp --scenes val.bjc --law train.bjc.law.safetensors --count 3 --out x.html --threads 1
err_has "does not contain the true distribution of the scenes in val.bjc"
run 0 report camp --count 0 --out none.html --threads 1
err_has "no scenes: No scenes were requested."
has none.html "There are no scenes on this page. No scenes were requested."
mv val.bjc moved.bjc
run 0 report camp --out gone.html --threads 1
err_has "no scenes: "
err_has "val.bjc"
has gone.html "There are no scenes on this page."
run 5 report camp --scenes val.bjc --out x.html --threads 1
mv moved.bjc val.bjc

# A damaged checkpoint is named, and no page is left.
cp -r camp hurt
weights=hurt/runs/point/seed-0/ckpt/best/model.safetensors
printf 'x' | dd of=$weights bs=1 seek=3000 conv=notrunc 2>dd.err
run 4 report hurt --out x.html --threads 1
err_has "runs/point/seed-0/ckpt/best/model.safetensors"
check test ! -e x.html

# Half a campaign, and one that has hardly begun.
run 0 campaign little.yaml --out half --jobs 1 --threads 1 --quiet --shard 1/2
run 0 report half --out half.html --count 2 --threads 1
has half.html "3 of 6 runs finished"
has half.html "waiting</td>"
lacks half.html "in the same order" # nothing is claimed about runs that are not there
check test "$(payload half.html | grep -o '"arm":' | wc -l)" -eq 3
rm -r half/runs/*
run 0 report half --out begun.html --threads 1
err_has "no scenes: No run is finished"
has begun.html "There are no results yet"
check sh -c '! sed "/id=\"scene-data\"/,\$d" begun.html | grep -qiw nan'

# A table alone: the paper's own numbers.
run 0 report "$BJ_ROOT/data/paper/av2_seeds.csv" --out paper.html
err_has "no scenes: A seed table contains no models"
has paper.html "The numbers are from a seed table"
has paper.html "0.1435 [−0.1574, −0.1295]"

# Misuse.
run 2 report
run 5 report nowhere
run 2 report camp --count 1001
mkdir folder
run 5 report camp --out folder
check test -z "$(ls -A | grep tmp)"

finish
