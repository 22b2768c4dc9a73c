#!/bin/sh
# Runs the nvcc command in its arguments. Fails if ptxas has ignored setmaxnreg or serialized wgmma:
# the kernel would still be correct, but several times as slow. ptxas reports that as information,
# which none of its options, such as --warning-as-error, makes an error.
{ messages=$("$@" 2>&1 >&3); } 3>&1
status=$?
# C7519: ptxas added a fence between accumulators and products, as it does for zeros.
messages=$(printf '%s\n' "$messages" | grep -v '(C7519)')
[ -z "$messages" ] || printf '%s\n' "$messages" >&2
case $messages in
*'Potential Performance Loss'*)
  echo 'error: ptxas did not compile a kernel as it is written (see above)' >&2
  exit 1
  ;;
esac
exit $status
