# Medians, ratios with their spread, and verdicts, from a part's claims (first file) and its rows (second file).
#
# A row: the case's columns, `round`, `tool`, then the metrics that the heading names; `-` where a tool does not tell,
# `failed` where it failed. A claim: METRIC|high or low is better|OURS|AGAINST|BOUND|COLUMN=LEVEL,..|TEXT, where AGAINST is a
# tool, `best` (the best of the tools that are not stacklab, in each round), `each` of them, or `none` (OURS itself stays
# below BOUND). A ratio is OURS over AGAINST within one round; the target is met where their median keeps to BOUND: one
# round that something else disturbed decides nothing.

BEGIN { FS = "|" }

FNR == NR { claim[++claims] = $0; next }

FNR == 1 {
    FS = " "; $0 = $0
    while ($(keys + 1) != "round") { keys++; column[keys] = $keys }
    columns = NF
    for (i = keys + 3; i <= NF; i++) { at[$i] = i; metric[i] = $i }
    next
}

{
    c = $1
    for (i = 2; i <= keys; i++) c = c SUBSEP $i
    if (!(c in seen)) { seen[c] = 1; kase[++cases] = c }
    round = $(keys + 1); tool = $(keys + 2)
    if (round + 0 > rounds) rounds = round + 0
    if (!(tool in known)) { known[tool] = 1; name[++tools] = tool; if (length(tool) > wide) wide = length(tool) }
    present[c, tool] = 1
    for (i = keys + 3; i <= columns; i++) if ($i ~ /^[-+0-9.e]+$/ && $i != "-") figure[c, tool, round, metric[i]] = $i
}

END {
    if (!cases) { print "no rows"; exit 1 }
    print "Medians of " rounds " rounds"
    heading(); printf "%-*s", wide + 2, "tool"
    for (i = keys + 3; i <= columns; i++) printf "%11s", metric[i]
    print ""
    for (k = 1; k <= cases; k++) for (t = 1; t <= tools; t++) if ((kase[k], name[t]) in present) {
        levels(kase[k]); printf "%-*s", wide + 2, name[t]
        for (i = keys + 3; i <= columns; i++) printf "%11s", middle(kase[k], name[t], metric[i])
        print ""
    }
    for (j = 1; j <= claims; j++) table(claim[j])
    if (met + missed + none) printf "\nTargets: %d met, %d missed, %d without a figure\n", met, missed, none
}

function heading(   i) { for (i = 1; i <= keys; i++) printf "%-10s", column[i] }

function levels(c,   i, n, part) { n = split(c, part, SUBSEP); for (i = 1; i <= n; i++) printf "%-10s", part[i] }

# Enough digits to tell two figures apart.
function short(x) { return sprintf(x >= 100 ? "%.1f" : x >= 1 ? "%.2f" : "%.4f", x) }

function middle(c, tool, m,   r, n, all) {
    for (r = 1; r <= rounds; r++) if ((c, tool, r, m) in figure) all[++n] = figure[c, tool, r, m]
    return n ? short(median(all, n)) : "-"
}

# Of the numbers 1..n of a list, which it sorts.
function median(list, n,   i, j, v) {
    for (i = 2; i <= n; i++) {
        v = list[i]
        for (j = i - 1; j > 0 && list[j] + 0 > v + 0; j--) list[j + 1] = list[j]
        list[j + 1] = v
    }
    return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}

# The tool that AGAINST means in one round, or nothing where none has a figure.
function rival(c, against, r, m, better,   t, v, best, who) {
    if (against != "best") return ((c, against, r, m) in figure) ? against : ""
    for (t = 1; t <= tools; t++) {
        if (name[t] ~ /^stacklab/ || !((c, name[t], r, m) in figure)) continue
        v = figure[c, name[t], r, m]
        if (who == "" || (better == "high" ? v > best : v < best)) { best = v; who = name[t] }
    }
    return who
}

# Sets n, typical, least, most of the ratio in this case, and whose: the rival of most rounds.
function ratios(c, ours, against, m, better,   r, who, v, often, all) {
    n = typical = 0; whose = ""; split("", often)
    for (r = 1; r <= rounds; r++) {
        who = rival(c, against, r, m, better)
        if (who == "" || !((c, ours, r, m) in figure) || figure[c, who, r, m] <= 0) continue
        v = figure[c, ours, r, m] / figure[c, who, r, m]
        if (!n || v < least) least = v
        if (!n || v > most) most = v
        all[++n] = v
        if (++often[who] > often[whose] + 0) whose = who
    }
    if (n) typical = median(all, n)
}

# Whether the claim is about this case.
function asked(c, only,   i, n, part, side, level, l, k) {
    if (only == "") return 1
    split(only, side, "="); n = split(c, part, SUBSEP)
    for (i = 1; i <= n; i++) if (column[i] == side[1]) { k = split(side[2], level, ","); for (l = 1; l <= k; l++) if (part[i] == level[l]) return 1 }
    return 0
}

function judge(known, x, better, bound) {
    if (bound == "") return ""
    if (!known) { none++; return "no figure" }
    if (better == "high" ? x >= bound : x <= bound) { met++; return "met" }
    missed++
    return "missed"
}

function table(line,   part, m, better, ours, against, bound, k, t, c, x, how) {
    split(line, part, "|"); m = part[1]; better = part[2]; ours = part[3]; against = part[4]; bound = part[5]
    how = bound == "" ? "" : (better == "high" ? "; target: at least " : "; target: at most ") bound
    print ""
    if (against == "each") { each(part[7], m, better, ours); return }
    if (against == "none") {
        print ours ": " part[7] how
        heading(); printf "%11s  %s\n", m, "verdict"
        for (k = 1; k <= cases; k++) if (asked(kase[k], part[6])) {
            levels(kase[k]); x = middle(kase[k], ours, m)
            printf "%11s  %s\n", x, judge(x != "-", x + 0, better, bound + 0)
        }
        return
    }
    print ours " over " (against == "best" ? "the best peer" : against) ": " part[7] " (" better " is better)" how
    heading(); printf "%11s %11s  %-14s %7s  %-14s  %s\n", "ours", "theirs", "whose", "ratio", "least..most", bound == "" ? "" : "verdict"
    for (k = 1; k <= cases; k++) {
        c = kase[k]
        if (!asked(c, part[6]) || !((c, ours) in present)) continue
        if (against != "best" && !((c, against) in present)) continue
        ratios(c, ours, against, m, better); levels(c)
        if (n) printf "%11s %11s  %-14s %7.2f  %-14s  %s\n", middle(c, ours, m), middle(c, whose, m), whose, typical,
            sprintf("%.2f..%.2f", least, most), judge(1, typical, better, bound)
        else printf "%11s %11s  %-14s %7s  %-14s  %s\n", middle(c, ours, m), "-", "-", "-", "-", judge(0, 0, better, bound)
    }
}

function each(text, m, better, ours,   k, t, c) {
    print ours " over each peer: " text " (" better " is better), median ratio and least..most"
    heading()
    for (t = 1; t <= tools; t++) if (name[t] !~ /^stacklab/) printf "%-22s", name[t]
    print ""
    for (k = 1; k <= cases; k++) {
        c = kase[k]; levels(c)
        for (t = 1; t <= tools; t++) if (name[t] !~ /^stacklab/) {
            ratios(c, ours, name[t], m, better)
            printf "%-22s", n ? sprintf("%.2f (%.2f..%.2f)", typical, least, most) : "-"
        }
        print ""
    }
}
