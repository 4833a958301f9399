# in_memory.sh - changes to a temporary folder in /dev/shm if it is available. Source this file.
#
# Every checkpoint is synced to disk a dozen times, which slows down tests with many small runs. The
# folder is removed when the script ends.
if [ -w /dev/shm ] && in_memory=$(mktemp -d /dev/shm/bjepa.XXXXXX); then
    trap 'rm -rf -- "$in_memory"' EXIT
    cd -- "$in_memory" || exit 1
fi
