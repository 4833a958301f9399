# campaign.sh - a campaign small enough to be trained in a test; source it after tests/support/cli.sh.
#
#   little_campaign DIR   three arms and two seeds on train.bjc, which is made too

little_campaign() {
    run 0 simulate --cache train.bjc --scenes 200 --seed 3 --quiet --jobs 1
    cat >little.yaml <<'END'
name: little-world
data: train.bjc
recipe: small
arms: [fullset, specialization, point]
seeds: 2
set:
  model: {embed: 8, heads: 2, token_hidden: 8, latent: 8, proj_hidden: 8, atom_hidden: 8,
    router_hidden: 8, decoder_hidden: 16, trunk: 8}
  train: {epochs: 12, batch: 8, warmup: 0}
  optim: {lr: 1e-2}
END
    run 0 campaign little.yaml --out "$1" --jobs 1 --threads 1 --quiet
}
