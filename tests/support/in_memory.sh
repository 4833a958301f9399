# in_memory.sh - moves a script to a folder in memory, where the system offers one; source it.
#
# Every checkpoint is synced to disk a dozen times, which a test of many small runs would wait for.
# The folder is removed when the script ends.
if [ -w /dev/shm ] && in_memory=$(mktemp -d /dev/shm/bjepa.XXXXXX); then
    trap 'rm -rf -- "$in_memory"' EXIT
    cd -- "$in_memory" || exit 1
fi
