# small_campaign.sh - trains a small campaign within seconds. Source this file after cli.sh.
#
#   small_campaign DIR ARM...   creates train.bjc, dev.bjc and val.bjc in the current folder and
#                               trains the campaign DIR on train.bjc

small_campaign() {
    local dir=$1
    shift
    if [ ! -f train.bjc ]; then
        "$BJEPA" simulate --cache train.bjc --scenes 60 --seed 3 -q >/dev/null
        "$BJEPA" simulate --cache dev.bjc --scenes 20 --seed 3 --split dev -q >/dev/null
        "$BJEPA" simulate --cache val.bjc --scenes 80 --seed 3 --split val -q >/dev/null
    fi
    cat >grid.yaml <<END_YAML
name: small
data: train.bjc
dev: dev.bjc
arms: [$(echo "$@" | tr ' ' ',')]
seeds: [0, 1]
set:
  train: {batch: 16, epochs: 2, warmup: 1}
  model: {embed: 8, heads: 2, token_hidden: 8, latent: 8, proj_hidden: 8, atom_hidden: 8,
          router_hidden: 8, decoder_hidden: 8}
END_YAML
    "$BJEPA" campaign grid.yaml --out "$dir" --jobs 1 --threads 1 -q >/dev/null
}
