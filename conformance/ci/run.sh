#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs the conformance suite in a CI job: the GitHub action and the GitLab template call it.
#
#   run.sh PROGRAM [ARGUMENT...]
#
# KMES_CONFORMANCE         the suite (default: kmes-conformance on the path)
# KMES_OPTIONS             options of the suite, one a line
# KMES_KNOWN_FAILURES      the file of --known-failures; empty: none
# KMES_REPORTS             the folder of the reports (default: kmes-reports)
# GITHUB_STEP_SUMMARY      gets the sums, where it is set
#
# The exit status is that of the suite.
set -uo pipefail

readonly SUITE=${KMES_CONFORMANCE:-kmes-conformance}
readonly REPORTS=${KMES_REPORTS:-kmes-reports}

if [ $# -eq 0 ] || [ -z "$1" ]; then
    echo 'run.sh: no program to test is named; expected run.sh PROGRAM [ARGUMENT...]' >&2
    exit 2
fi
if ! command -v -- "$SUITE" >/dev/null; then
    echo "run.sh: there is no program '$SUITE'; install the package of the suite, or set" \
        "KMES_CONFORMANCE" >&2
    exit 3
fi
mkdir -p -- "$REPORTS" || exit 3
options=()
while IFS= read -r option; do
    option=${option%$'\r'}
    [ -z "$option" ] || options+=("$option")
done <<<"${KMES_OPTIONS-}"
[ -z "${KMES_KNOWN_FAILURES-}" ] || options+=(--known-failures "$KMES_KNOWN_FAILURES")

"$SUITE" "${options[@]}" \
    --report "json:$REPORTS/report.json" \
    --report "html:$REPORTS/report.html" \
    --report "junit:$REPORTS/junit.xml" \
    --report "statement:$REPORTS/statement.txt" \
    -- "$@" | tee "$REPORTS/report.txt"
status=${PIPESTATUS[0]}
if [ -n "${GITHUB_STEP_SUMMARY-}" ]; then
    {
        echo '### KMES conformance'
        echo
        # A block of four spaces is shown verbatim, whatever markup a consumer's text has.
        tail -n 1 -- "$REPORTS/report.txt" | sed 's/^/    /'
    } >>"$GITHUB_STEP_SUMMARY"
fi
exit "$status"
