# Tests bjepa table: means and SDs of the paper, per-seed tables, every format, invalid files.
. "$BJ_ROOT/tests/support/cli.sh"
av2=$BJ_ROOT/data/paper/av2_seeds.csv

# Without a choice: the main metrics, in at most 100 columns, with units.
run 0 table "$av2"
err_empty
check grep -qE '^arm +n +traj\. ES ↓ +traj\. obs\. ↓ +exp\. ADE ↓ +top-1 ADE ↓ +Brier ↓$' out
check grep -qE '^ +m +m +m +m$' out
check grep -qE '^fullset +5 +2\.077±0\.006\* +3\.619±0\.008\* ' out
# A single trajectory is not ranked against sets of six, whatever its numbers.
check grep -qE '^point +5 +2\.843±0\.005 +2\.843±0\.005 +- +- +0\.121±0\.002$' out
out_has "* best mean among the arms with the same number of branches K"
check test "$(awk '{ if (length > n) n = length } END { print n }' out)" -le 100
check test "$(grep -c . out)" -eq 12 # title, two lines of heading, eight arms, legend
run 0 table "$av2" --format markdown
out_has '| arm | n | traj. ES (m) ↓ | traj. obs. (m) ↓ | exp. ADE (m) ↓ | top-1 ADE (m) ↓ | Brier ↓ |'
run 0 table "$av2" --arms fullset,mdn
out_has "* best mean of the arms shown"

run 0 table "$av2" -m all
err_empty
check grep -qE '^arm +n +traj\. ES ↓ +traj\. obs\. ↓ +end\. ES ↓ ' out
check grep -qE '^fullset +5 +2\.0766 ± 0\.0057\* 3\.6185 ± 0\.0077\* ' out
check grep -qE '^mdn +5 +2\.3828 ± 0\.0839 +4\.0605 ± 0\.1138 .* 0\.10130 ± 0\.00318 ' out
check grep -qE '^outputonly +5 +2\.1142 ± 0\.0046 +- +- +2\.8311 ± 0\.0084 ' out
check test "$(grep -c . out)" -eq 12
# columns are aligned: every row has its point in the same place
check test "$(grep -oE '^[a-z]+ +5 +[0-9]' out | awk '{ print length }' | sort -u | wc -l)" -eq 1

run 0 table "$av2" --arms fullset,mdn -m brier --metric traj_es -a point --digits 3
check test "$(awk 'NR > 2 && NF > 1 { print $1 }' out | head -4 | tr '\n' ' ')" = "arm fullset mdn point "
check grep -qE '^arm +n +Brier ↓ +traj\. ES ↓' out
check grep -qE '^fullset +5 +0\.092 ± 0\.001\* 2\.077 ± 0\.006\*$' out
run 0 table "$av2" --arms fullset
out_lacks "*"

run 0 table "$av2" --per-seed -m traj_es -m exp_ade --arms fullset --arms softwta
check grep -qE '^fullset +0 +2\.0755 +2\.7968$' out
check grep -qE '^fullset +SD +0\.0057 +0\.0059$' out
check grep -qE '^softwta +4 +2\.1952 +-$' out
check grep -qE '^softwta +mean +2\.2041 +-$' out

# What is written as CSV is read again: the same table, to the last bit.
run 0 table "$av2" --per-seed --format csv
cp out again.csv
check test "$(wc -l <again.csv)" -eq "$(wc -l <"$av2")"
check sh -c "sort again.csv | tr -d '\r' >s1; sort '$av2' >s2; test \$(comm -12 s1 s2 | wc -l) -gt 200"
run 0 table again.csv --format csv
cp out first
run 0 table "$av2" --format csv
check cmp out first
check test "$(head -1 out)" = "arm,metric,n,mean,sd,lowest,highest"
check grep -qE '^uniform,exp_entropy,5,6,0,6,6$' out

run 0 table "$av2" --json
out_has '"schema": 1, "type": "table"'
out_has '{"name": "traj_es", "title": "traj. ES", "better": "lower", "digits": 4, "unit": "m"}'
check test "$(grep -c '"arm"' out)" -eq 56
run 0 table "$av2" --json --per-seed -m brier
out_has '"type": "seeds"'
check test "$(grep -c '"value"' out)" -eq 40
out_has '{"arm": "fullset", "seed": 0, "metric": "brier", "value": 0.092245}'
if command -v python3 >/dev/null; then
    check python3 -c 'import json; d = json.load(open("out")); assert len(d["rows"]) == 40'
fi

run 0 table "$av2" --format latex --arms fullset,uniform -m traj_es,exp_entropy
out_has '\begin{tabular}{@{}lrrr@{}}'
out_has 'fullset & $5$ & $\mathbf{2.0766 {\pm} 0.0057}$ & $5.797 {\pm} 0.036$\\'
out_has 'arm & n & traj. ES (m) $\downarrow$ & eff. support (branches) $\uparrow$\\'
run 0 table "$av2" --format latex --per-seed --arms fullset,uniform -m traj_es
check test "$(grep -c midrule out)" -eq 2
run 0 table "$av2" --format markdown --arms fullset,uniform -m traj_es
out_has '| fullset | 5 | **2.0766 ± 0.0057** |'
out_has '|---|---:|---:|'

# A name given twice counts once.
run 0 table "$av2" --arms mdn,mdn --arms mdn -m ece,ece -m ece --format csv
check test "$(wc -l <out)" -eq 2

# Alignment counts characters, not bytes: the line with one of two bytes is one byte longer.
printf 'arm,seed,metric,value\n\303\251t\303\251,0,ece,1\nete,0,ece,1\n' >accent.csv
run 0 table accent.csv
check test "$(LC_ALL=C awk '/^ete/ { n = length($0) } /^\303/ { m = length($0) } END { print m - n }' out)" -eq 2

# Names that mean something to the format are quoted.
printf 'arm,seed,metric,value\n"a_b & 50%% | ""x""",0,ece,1\n"a_b & 50%% | ""x""",1,ece,1\n' >odd.csv
run 0 table odd.csv --format latex
out_has 'a\_b \& 50\% | "x" & $2$ & $1.00000 {\pm} 0.00000$\\'
run 0 table odd.csv --format markdown
out_has '| a\_b & 50% \| "x" | 2 |'
run 0 table odd.csv --format csv --per-seed
check cmp out odd.csv
run 0 table odd.csv --json
out_has '"arm": "a_b & 50% | \"x\""'

# A mean that rounds to zero from below has no sign; a single seed has no SD.
printf 'arm,seed,metric,value\na,0,traj_es,-0.00001\n' >one.csv
run 0 table one.csv
check grep -qE '^a +1 +0\.000$' out
run 0 table one.csv --format csv
out_has "a,traj_es,1,-1e-05,,-1e-05,-1e-05"

# Bad files: line, what was found, what was expected; exit code 3.
printf 'arm,seed,metric,value\na,0,traj_es,1\na,1,traj_es,2\nb,1,traj_es,2\n' >gap.csv
run 3 table gap.csv
out_empty
err_has "gap.csv: metric 'traj_es' has no value for the (arm, seed) pairs (b, 0)"
err_has "hint: --partial"
run 0 table gap.csv --partial
check grep -qE '^b +1 +2\.000' out
run 0 table gap.csv --arms a
printf 'arm,seed,metric,value\na,0,traj_es,1\na,0,traj_es,1\n' >twice.csv
run 3 table twice.csv
err_has "twice.csv: line 3: duplicate value for arm 'a', seed 0, metric 'traj_es'; the first is in line 2"
printf 'arm,seed,metric\na,0,traj_es\n' >short.csv
run 3 table short.csv
err_has "short.csv: line 1: no column 'value'"
run 2 table "$av2" --arms fulset
err_has "did you mean 'fullset'?"
run 2 table "$av2" --metric breir
err_has "did you mean 'brier'?"
run 2 table
run 2 table "$av2" "$av2"
run 5 table none.csv
err_has "none.csv"
run 0 table /dev/stdin <"$av2"
check grep -q '2.077±0.006' out

# The other tables of the paper.
run 0 table "$BJ_ROOT/data/paper/anchor_seeds.csv" -m all
check grep -qE '^fullset +3 .* 4\.260 ± 0\.052( |$)' out
out_lacks "*" # K = 1 and K = 6
run 0 table "$BJ_ROOT/data/paper/anchor_gates.csv"
check grep -qE '^anchor-a +3 .* 12\.989 ± 0\.181$' out

finish
