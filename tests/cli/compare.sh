# Tests bjepa compare: the paper's intervals from its seeds, every format, missing pairs, unknown names.
. "$BJ_ROOT/tests/support/cli.sh"
av2=$BJ_ROOT/data/paper/av2_seeds.csv

run 0 compare "$av2" --a fullset --b specialization
out_has "fullset minus specialization, paired by seed"
check grep -qE '^traj\. ES \(m\) ↓ +2\.0766 ± 0\.0057 +2\.2201 ± 0\.0088 +-0\.1435 +\[-0\.1574, -0\.1295\] +6\.46 % +5/5 better$' out
check grep -qE '^eff\. support \(branches\) ↑ .* 0\.484 +\[0\.440, 0\.527\] +9\.11 % +5/5 better$' out
check grep -qE '^ECE ↓ .* -26\.68 % +1/5 better$' out
check grep -qE '^active \(branches\) ↑ .* 0/5 better, 5 equal$' out
out_lacks "ADE"
err_has "not available in both arms: exp_ade, top1_ade"

# The other control of the paper, with the digits its table has.
run 0 compare "$av2" -a fullset -b outputonly -m exp_ade,exp_entropy --metric brier --digits 5
err_empty
check grep -qE '^exp\. ADE \(m\) ↓ .* -0\.03691 +\[-0\.04834, -0\.02547\]' out
check grep -qE '^eff\. support \(branches\) ↑ .* 0\.54310 +\[0\.45560, 0\.63060\] +10\.34 % +5/5 better$' out
check test "$(sed -n '4,$p' out | cut -c1-5 | tr '\n' ' ')" = "exp.  eff.  Brier "

# A - B is the mirror image of B - A; a wider level, a wider interval.
run 0 compare "$av2" -a specialization -b fullset -m traj_es
out_has "[0.1295, 0.1574]"
out_has "0/5 better"
run 0 compare "$av2" -a fullset -b specialization -m traj_es --level 0.99
out_has "99 % interval"
out_has "[-0.1666, -0.1204]"

run 0 compare "$av2" -a fullset -b mdn -m traj_es --format csv
check test "$(wc -l <out)" -eq 2
check test "$(head -1 out)" = "metric,n,mean_a,sd_a,mean_b,sd_b,difference,difference_sd,low,high,improvement,lower,equal,higher"
check grep -qE '^traj_es,5,2\.0766[0-9]*,0\.0056[0-9]*,2\.38276[0-9]*,.*,5,0,0$' out
run 0 compare "$av2" -a fullset -b mdn -m traj_es --json
out_has '"schema": 1, "type": "compare"'
out_has '"better": "lower", "n": 5, "mean_a": 2.0766'
out_has '"lower": 5, "equal": 0, "higher": 0}'
cp out by_flag
run 0 compare "$av2" -a fullset -b mdn -m traj_es --format json
check cmp out by_flag
run 0 compare "$av2" -a fullset -b mdn -m traj_es --format markdown
out_has '| metric | fullset | mdn | difference | 95 % interval | improvement | seeds |'
out_has '|---|---:|---:|---:|---:|---:|---:|'
run 0 compare "$av2" -a fullset -b mdn -m traj_es --format latex
out_has '\begin{tabular}{@{}lrrrrrr@{}}'
out_has 'traj. ES (m) $\downarrow$ & $2.0766 {\pm} 0.0057$ & $2.3828 {\pm} 0.0839$ & $-0.3061$ &'
out_has '$12.85 \%$ & 5/5 better\\'
out_has '\bottomrule'

# Missing pairs are named; --partial goes on with what both have. One seed has no interval.
cat >gaps.csv <<'END'
arm,seed,metric,value
x,0,traj_es,1
x,1,traj_es,3
x,2,traj_es,9
y,0,traj_es,2
y,1,traj_es,2
z,0,traj_es,2
END
run 3 compare gaps.csv -a x -b y
out_empty
err_has "gaps.csv: metric 'traj_es' has no value for the (arm, seed) pairs (y, 2)"
err_has "hint: --partial"
run 0 compare gaps.csv -a x -b y --partial
out_has "1/2 better"
run 0 compare gaps.csv -a x -b z --partial
check grep -qE '^traj\. ES \(m\) ↓ +1\.0000 +2\.0000 +-1\.0000 +- +50\.00 % +1/1 better$' out
run 0 compare gaps.csv -a x -b z --partial --json
out_has '"low": null, "high": null'

# A metric nobody knows has no better direction.
printf 'metric,value,arm,seed\nwhim,1,"a, b",0\nwhim,2,c,0\nwhim,1,"a, b",1\nwhim,4,c,1\n' >whim.csv
run 0 compare whim.csv --a "a, b" --b c
check grep -qE '^whim .* - +2/2 lower$' out
run 0 compare whim.csv --a "a, b" --b c --json
out_has '"a": "a, b"'
out_has '"better": null'
out_has '"improvement": null'

mkdir campaign
cp whim.csv campaign/seeds.csv
run 0 compare campaign -a c -b "a, b"
out_has "0/2 lower"

run 2 compare "$av2" -a fulset -b mdn
out_empty
err_has "no arm 'fulset'; did you mean 'fullset'?"
err_has "its arms are point, fullset,"
run 2 compare "$av2" -a fullset -b mdn -m traj_se
err_has "no metric 'traj_se'; did you mean 'traj_es'?"
run 2 compare "$av2" -a fullset
err_has "--b is missing"
run 2 compare "$av2" -b fullset
err_has "--a is missing"
run 2 compare "$av2" -a mdn -b mdn
err_has "--a and --b are both 'mdn'"
run 2 compare "$av2" -a fullset -b mdn --level 1
err_has "level"
run 2 compare "$av2" -a fullset -b mdn --level 2
run 2 compare "$av2" -a fullset -b mdn --format tex
err_has "expected text|csv|json|latex|markdown"
run 2 compare -a fullset -b mdn
run 3 compare "$av2" -a fullset -b mdn -m exp_ade
err_has "arm 'mdn' has no value for metric 'exp_ade'"
run 5 compare none.csv -a x -b y
err_has "none.csv"
mkdir empty
run 5 compare empty -a x -b y
err_has "empty/seeds.csv"

finish
