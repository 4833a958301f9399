# Tests bjepa config: values and their origins, valid and invalid files, differences, lists, and that the
# tables in docs/TRAINING.md are the output of the program.
. "$BJ_ROOT/tests/support/cli.sh"
settings=$(grep -cE '^(SETTING|ADDED)\(' "$BJ_ROOT/src/run/settings.def")
unset BJEPA_ARM BJEPA_SEED BJEPA_RECIPE BJEPA_CONFIG BJEPA_SET

# -------------------------------------------------------------------------------------------- show

run 0 config show --arm fullset
err_empty
check grep -qE '^arm +fullset +--arm$' out
check grep -qE '^optim\.lr +0\.0003 +paper$' out
check grep -qE '^train\.save_minutes +10 +default$' out
check grep -qE '^anchor +- +default$' out
check grep -qE '^digest [0-9a-f]{64}$' out
check test "$(wc -l <out)" -eq $((settings + 1))
cp out plain

cat >run.yaml <<'END'
# a file for several arms
recipe: small
optim:
  lr: 5e-4
train: {batch: 32, epochs: 4}
END
run 0 config show -a mdn -c run.yaml --set optim.lr=.002 --set loss.sigma_y=3 --seed 7
check grep -qE '^recipe +small +run\.yaml:2$' out
check grep -qE '^optim\.lr +0\.002 +--set$' out
check grep -qE '^train\.batch +32 +run\.yaml:5$' out
check grep -qE '^train\.warmup +[0-9]+ +recipe small$' out
check grep -qE '^loss\.sigma_z +0\.5 +arm mdn$' out
check grep -qE '^seed +7 +--seed$' out

# An option with a name of its own wins over --set, and that over the file.
run 0 config show --arm point --set arm=fullset --set arm=mdn
check grep -qE '^arm +point +--arm$' out
run 0 config show --set arm=fullset --set arm=mdn --set anchor=
check grep -qE '^arm +mdn +--set$' out
BJEPA_ARM=point run 0 config show
check grep -qE '^model\.atom_hidden +3204 +arm point$' out

run 0 config show --arm anchor-b --set 'anchor=a = "b"' --json
out_has '{"schema": 1, "type": "config", "digest": "'
out_has '{"key": "optim.lr", "value": 0.0003, "origin": "paper"},'
out_has '{"key": "anchor", "value": "a = \"b\"", "origin": "--set"}'
if command -v python3 >/dev/null; then
    check python3 -c 'import json; d = json.load(open("out")); assert len(d["settings"]) == '$settings
fi

run 2 config show
out_empty
err_has "'arm' is missing"
run 2 config show --arm fulset
err_has "--arm: no arm 'fulset'; did you mean 'fullset'?"
run 2 config show --arm fullset --recipe smal
err_has "--recipe: no recipe 'smal'; did you mean 'small'?"
run 2 config show --arm fullset --set lr=1
err_has "--set: no setting 'lr'; did you mean 'optim.lr'?"
run 2 config show --arm fullset --set optim.lr
err_has "--set: found 'optim.lr', expected KEY=VALUE"
run 2 config show --arm fullset --set =3
err_has "--set: found '=3', expected KEY=VALUE"
run 2 config show --arm fullset --seed -1
err_has "--seed: seed is '-1'"
run 2 config show --arm anchor-b
err_has "--arm: arm anchor-b needs 'anchor'"
run 5 config show --arm fullset -c none.yaml
err_has "none.yaml"
run 2 config show --arm fullset extra
err_has "unexpected argument 'extra'"

# ------------------------------------------------------------------------------------------- check

run 0 config check run.yaml
out_has "run.yaml: arm fullset (default; the file does not name one), recipe small, seed 0; 4 of $settings settings are in the file"
run 0 config check run.yaml --arm mdn
out_has "run.yaml: arm mdn, recipe small"
printf '{"arm": "point", "seed": 2}' >point.json
run 0 config check point.json --json
out_has '"type": "config_check", "file": "point.json", "arm": "point", "recipe": "paper", "seed": 2, "given": 2'

printf 'arm: fullset\noptim:\n  lr: fast\n' >bad.yaml
run 2 config check bad.yaml
out_empty
err_has "bad.yaml:3: optim.lr is 'fast', expected a number in (0, 1]"
printf 'arm: fullset\ntrain:\n  batchs: 3\n' >bad.yaml
run 2 config check bad.yaml
err_has "bad.yaml:3: no setting 'train.batchs'; did you mean 'train.batch'?"
printf 'arm: fullset\nseed: 1\nseed: 2\n' >bad.yaml
run 2 config check bad.yaml
err_has "bad.yaml:3: 'seed' occurs twice, first in line 2"
printf 'arm: fullset\nseed: [1\n' >bad.yaml
run 2 config check bad.yaml
err_has "bad.yaml:3: not YAML or JSON"
printf 'arm: point\nmodel: {atoms: 6}\n' >bad.yaml
run 2 config check bad.yaml
err_has "bad.yaml:2: model.atoms is 6, but arm point has only one"
run 5 config check none.yaml
run 2 config check

# -------------------------------------------------------------------------------------------- diff

mkdir run_folder
cp point.json run_folder/config.resolved.json
run 0 config diff point.json run_folder
out_has "no difference"
run 4 config diff run.yaml run_folder
check grep -qE '^arm +fullset +point$' out
check grep -qE '^optim\.lr +0\.0005 +0\.0003$' out
out_lacks "optim.clip"
run 4 config diff run.yaml run_folder --json
out_has '{"key": "train.batch", "a": 32, "b": 256}'
out_has '{"key": "recipe", "a": "small", "b": "paper"}'
run 0 config diff run.yaml run.yaml --json
out_has '"differences": []}'
mkdir empty
run 5 config diff run.yaml empty
err_has "empty/config.resolved.json"
run 5 config diff none.yaml run.yaml
run 2 config diff run.yaml bad.yaml
run 2 config diff run.yaml

# ------------------------------------------------------------------------------------------- lists

run 0 config arms
check test "$(wc -l <out)" -eq 39
check grep -qE '^mdn-z0\.25-y2 +mdn +mixture likelihood' out
# Every arm of the list is one.
for arm in $(awk 'NR > 1 { print $1 }' out); do
    case $arm in
    anchor-b*) run 0 config show --arm "$arm" --set anchor=x ;;
    *) run 0 config show --arm "$arm" ;;
    esac
done
run 0 config arms --json
out_has '"type": "arms", "arms": ['
out_has '{"arm": "point", "family": "main", "summary": "one branch'
run 0 config keys --json
out_has '{"key": "optim.lr", "default": "0.0003", "range": "number in (0, 1]"'
run 0 config recipes
check grep -qE '^paper +0 +0\.0003 +256 +30 ' out
run 2 config arms --format latex
err_has "expected text|json|markdown"

# The documents have the same tables.
for list in arms recipes keys; do
    run 0 config $list --format markdown
    awk -v mark="<!-- bjepa config $list -->" '
        $0 == mark { on = 1; next } on && /^\|/ { print; next } on && NF { exit }' \
        "$BJ_ROOT/docs/TRAINING.md" >documented
    check test -s documented
    check diff documented out
done

run 2 config
out_empty
err_has "Usage: bjepa config VERB"
run 2 config shwo
err_has "unknown verb 'shwo'; did you mean 'show'?"

finish
